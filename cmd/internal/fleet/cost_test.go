package fleet

import (
	"compress/gzip"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
)

// BenchmarkScrape measures what a host of a fleet costs, of a real detent serve: the
// series and bytes of a scrape, and the CPU time that one takes of the host, less what
// the process uses anyway.
//
// Of the classic form, which Prometheus stores unless told otherwise, and of the
// native one, where a histogram is one series.
func BenchmarkScrape(b *testing.B) {
	address := startServe(b)
	// The first probe is over when its report is there.
	for end := time.Now().Add(patience); ; time.Sleep(100 * time.Millisecond) {
		if _, err := get(address, "/api/report"); err == nil {
			break
		} else if time.Now().After(end) {
			b.Fatal(err)
		}
	}
	for _, form := range []struct{ name, accept string }{
		{"classic", "application/openmetrics-text;version=1.0.0"},
		{"native", "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited"},
	} {
		b.Run(form.name, func(b *testing.B) {
			first := scrape(b, address, form.accept)
			begin, idle := time.Now(), first.cpu
			time.Sleep(5 * time.Second)
			before := scrape(b, address, form.accept)
			idle = (before.cpu - idle) / time.Since(begin).Seconds()
			begin = time.Now()
			var last scraped
			n := 0
			for b.Loop() {
				last = scrape(b, address, form.accept)
				n++
			}
			used := last.cpu - before.cpu - idle*time.Since(begin).Seconds()
			b.ReportMetric(float64(last.series), "series")
			b.ReportMetric(float64(last.bytes), "B/scrape")
			b.ReportMetric(float64(last.wire), "wire-B/scrape")
			// The kernel counts a process's time in ticks of 10 ms.
			if n >= 100 {
				b.ReportMetric(used/float64(n)*1e6, "host-cpu-us/scrape")
			}
			b.ReportMetric(idle*100, "idle-cpu-%")
		})
	}
}

// scraped is one answer.
type scraped struct {
	series, bytes, wire int
	cpu                 float64 // seconds that the process has used so far
}

type counting struct {
	r io.Reader
	n int
}

func (c *counting) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += n
	return n, err
}

func scrape(b *testing.B, address, accept string) (s scraped) {
	b.Helper()
	req, err := http.NewRequest("GET", "http://"+address+"/metrics", nil)
	if err != nil {
		b.Fatal(err)
	}
	req.Header.Set("Accept", accept)
	req.Header.Set("Accept-Encoding", "gzip")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		b.Fatal(err)
	}
	defer res.Body.Close()
	wire := &counting{r: res.Body}
	unzipped, err := gzip.NewReader(wire)
	if err != nil {
		b.Fatal(err)
	}
	plain := &counting{r: unzipped}
	if strings.Contains(accept, "protobuf") {
		for d := expfmt.NewDecoder(plain, expfmt.ResponseFormat(res.Header)); ; {
			var f dto.MetricFamily
			if err := d.Decode(&f); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				b.Fatal(err)
			}
			s.series += samples(&f)
			if f.GetName() == "process_cpu_seconds_total" {
				s.cpu = f.GetMetric()[0].GetCounter().GetValue()
			}
		}
	} else {
		text, err := io.ReadAll(plain)
		if err != nil {
			b.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			if strings.HasPrefix(line, "#") {
				continue
			}
			s.series++
			if rest, ok := strings.CutPrefix(line, "process_cpu_seconds_total "); ok {
				s.cpu = number(b, strings.TrimSpace(rest))
			}
		}
	}
	s.bytes, s.wire = plain.n, wire.n
	return s
}

// samples is how many series a server that stores native histograms makes of a family.
func samples(f *dto.MetricFamily) (n int) {
	for _, m := range f.GetMetric() {
		switch h := m.GetHistogram(); {
		case h != nil && len(h.GetPositiveSpan()) == 0: // a classic one
			n += len(h.GetBucket()) + 3
		case m.GetSummary() != nil:
			n += len(m.GetSummary().GetQuantile()) + 2
		default:
			n++
		}
	}
	return n
}

func number(b *testing.B, text string) float64 {
	b.Helper()
	v, err := strconv.ParseFloat(text, 64)
	if err != nil {
		b.Fatal(err)
	}
	return v
}
