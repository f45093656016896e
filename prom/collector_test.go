package prom

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"math"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"

	"github.com/detent-go/detent/clock"
	"github.com/detent-go/detent/timer"
)

func mustService(t testing.TB) *timer.Service {
	t.Helper()
	s, err := timer.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func gather(t testing.TB, c prometheus.Collector) map[string]*dto.MetricFamily {
	t.Helper()
	r := prometheus.NewPedanticRegistry()
	if err := r.Register(c); err != nil {
		t.Fatal(err)
	}
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	m := map[string]*dto.MetricFamily{}
	for _, f := range families {
		m[f.GetName()] = f
	}
	return m
}

// TestCounts: what a service counts is what is exported, under its name.
func TestCounts(t *testing.T) {
	a, b := mustService(t), mustService(t)
	c := NewCollector(Options{Services: map[string]*timer.Service{"a": a, "b": b}, TSC: new(clock.TSC)})
	hour := a.AfterFunc(time.Hour, func() {})
	a.AfterFunc(time.Hour, func() {}).Stop()
	hour.Reset(2 * time.Hour)
	for range 10 {
		a.Sleep(time.Microsecond)
	}
	m := gather(t, c)
	for name, want := range map[string]float64{
		"detent_timer_started_total": 12, "detent_timer_stopped_total": 1, "detent_timer_reset_total": 1,
		"detent_timer_fired_total": 10, "detent_timer_pending": 1,
	} {
		f := m[name]
		if len(f.GetMetric()) != 2 {
			t.Fatalf("%s: %v", name, f)
		}
		for _, x := range f.GetMetric() {
			got, service := x.GetCounter().GetValue()+x.GetGauge().GetValue(), x.GetLabel()[0].GetValue()
			if service == "a" && got != want || service == "b" && got != 0 {
				t.Errorf("%s of %s is %v", name, service, got)
			}
		}
	}
	h := m["detent_timer_lateness_seconds"].GetMetric()[0].GetHistogram()
	if h.GetSampleCount() != 10 || h.GetSampleSum() <= 0 {
		t.Errorf("lateness: %v", h)
	}
	sum := 0.0
	for _, x := range m["detent_timer_lateness_cause_seconds"].GetMetric() {
		for _, l := range x.GetLabel() {
			if l.GetName() == "service" && l.GetValue() == "a" {
				sum += x.GetHistogram().GetSampleSum()
			}
		}
	}
	if math.Abs(sum-h.GetSampleSum()) > 1e-9 {
		t.Errorf("the causes add up to %v, the lateness to %v", sum, h.GetSampleSum())
	}
	if n := len(m["detent_clock_info"].GetMetric()); n != len(clock.Clocks()) {
		t.Errorf("%d clocks", n)
	}
	for _, name := range []string{"detent_clock_trusted", "detent_clock_error_bound_seconds", "detent_clock_jumps_total", "detent_time_now_duration_seconds"} {
		if m[name] == nil {
			t.Errorf("%s is missing", name)
		}
	}
}

// families that are of a label's value, by name: their counters and gauges, and the
// counts of their histograms.
func valuesOf(m map[string]*dto.MetricFamily, label, value string) map[string]float64 {
	values := map[string]float64{}
	for name, f := range m {
		for _, x := range f.GetMetric() {
			for _, l := range x.GetLabel() {
				if l.GetName() == label && l.GetValue() == value {
					values[name] += x.GetCounter().GetValue() + x.GetGauge().GetValue() + float64(x.GetHistogram().GetSampleCount())
				}
			}
		}
	}
	return values
}

// TestQueue: a queue's counts are exported, also of one that is closed.
func TestQueue(t *testing.T) {
	s, err := timer.NewManual(time.Now(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	q := timer.NewQueue(s.Service, func([]timer.Expired[string]) {})
	c := NewCollector(Options{
		Services: map[string]*timer.Service{"virtual": s.Service}, Queues: map[string]Queue{"leases": q}, NoTimeNow: true,
	})
	for range 3 {
		q.Add(time.Second, "a")
	}
	h := q.Add(time.Hour, "b")
	q.Reset(h, 2*time.Hour)
	q.Stop(q.Add(time.Hour, "c"))
	s.Advance(time.Minute)
	want := map[string]float64{
		"detent_queue_started_total": 5, "detent_queue_stopped_total": 1, "detent_queue_reset_total": 1,
		"detent_queue_delivered_total": 3, "detent_queue_pending": 1, "detent_queue_lateness_seconds": 3,
	}
	check := func() {
		t.Helper()
		got := valuesOf(gather(t, c), "queue", "leases")
		if got["detent_queue_wakeups_total"] == 0 {
			t.Error("it has never been woken")
		}
		delete(got, "detent_queue_wakeups_total")
		if !maps.Equal(got, want) {
			t.Errorf("%v, want %v", got, want)
		}
	}
	check()
	if err := q.Close(); err != nil {
		t.Fatal(err)
	}
	want["detent_queue_pending"], want["detent_queue_stopped_total"] = 0, valuesOf(gather(t, c), "queue", "leases")["detent_queue_stopped_total"]
	check()
}

// TestLane: a lane is a service like another, and says that it is one.
func TestLane(t *testing.T) {
	lane, err := timer.NewLane(nil)
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { _ = lane.Close() })
	done := make(chan struct{})
	lane.AfterFunc(time.Microsecond, func() { close(done) })
	<-done
	m := gather(t, NewCollector(Options{Services: map[string]*timer.Service{"lane": lane}, NoTimeNow: true}))
	got := valuesOf(m, "service", "lane")
	if got["detent_timer_fired_total"] != 1 || got["detent_timer_waker_fallback"] != number(lane.Stats().WakerErr != nil) {
		t.Errorf("%v", got)
	}
	if _, ok := got["detent_timer_kept_seconds_total"]; !ok {
		t.Error("what it keeps its P for is missing")
	}
	if w := valuesOf(m, "waker", lane.Stats().Waker); w["detent_timer_waker_info"] != 1 {
		t.Errorf("its waker %q is not named: %v", lane.Stats().Waker, w)
	}
}

// TestClocks: services on every clock are exported alike.
func TestClocks(t *testing.T) {
	services := map[string]*timer.Service{}
	for _, k := range []timer.Clock{timer.Monotonic, timer.Boottime, timer.Realtime} {
		s, err := timer.New(&timer.Options{Clock: k})
		if err != nil {
			t.Logf("%v: %v", k, err)
			continue
		}
		t.Cleanup(func() { _ = s.Close() })
		s.Sleep(time.Microsecond)
		services[k.String()] = s
	}
	m := gather(t, NewCollector(Options{Services: services, NoTimeNow: true}))
	for name := range services {
		if got := valuesOf(m, "service", name); got["detent_timer_fired_total"] != 1 || got["detent_timer_lateness_seconds"] != 1 || got["detent_timer_waker_info"] != 1 {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// TestContexts: contexts with deadlines are counted like timers.
func TestContexts(t *testing.T) {
	s := mustService(t)
	c := NewCollector(Options{Services: map[string]*timer.Service{"s": s}, NoTimeNow: true})
	_, cancel := s.WithTimeout(context.Background(), time.Hour)
	ended, cancelEnded := s.WithTimeout(context.Background(), time.Microsecond)
	defer cancelEnded()
	<-ended.Done()
	if got := valuesOf(gather(t, c), "service", "s"); got["detent_timer_started_total"] != 2 || got["detent_timer_fired_total"] != 1 || got["detent_timer_pending"] != 1 {
		t.Errorf("%v", got)
	}
	cancel()
	if got := valuesOf(gather(t, c), "service", "s"); got["detent_timer_stopped_total"] != 1 || got["detent_timer_pending"] != 0 {
		t.Errorf("%v", got)
	}
}

// TestHistogram: no value is lost in either form, and every value of the service's
// histogram lies in a bucket that holds it, up to the eighth that both are coarse by.
func TestHistogram(t *testing.T) {
	s := mustService(t)
	for range 50 {
		s.Sleep(time.Microsecond)
	}
	s.WithSlack(10 * time.Millisecond).Sleep(time.Millisecond)
	from := s.Stats().Lateness
	var out dto.Metric
	if err := newHistogram(latenessDesc, from, "service", "x").Write(&out); err != nil {
		t.Fatal(err)
	}
	h := out.GetHistogram()
	// The native form, spelled out: index -> count.
	got := map[int32]int64{}
	index, count, k, total := int32(0), int64(0), 0, int64(h.GetZeroCount())
	for _, span := range h.GetPositiveSpan() {
		index += span.GetOffset()
		for range span.GetLength() {
			count += h.GetPositiveDelta()[k]
			got[index] += count
			total += count
			index++
			k++
		}
	}
	if k != len(h.GetPositiveDelta()) || total != int64(from.Count()) {
		t.Fatalf("%d deltas of %d, %d values of %d", k, len(h.GetPositiveDelta()), total, from.Count())
	}
	want := map[int32]int64{}
	for upper, n := range from.Buckets() {
		if upper > 0 {
			i := nativeIndex(upper.Seconds())
			if v := upper.Seconds(); v > math.Exp2(float64(i)/8)*(1+1e-9) || v <= math.Exp2(float64(i-1)/8)*(1-1e-9) {
				t.Errorf("%v is not in bucket %d", upper, i)
			}
			want[i] += int64(n)
		}
	}
	for i, n := range want {
		if got[i] != n {
			t.Errorf("bucket %d holds %d, want %d", i, got[i], n)
		}
	}
	if len(got) != len(want) {
		t.Errorf("%d buckets, want %d", len(got), len(want))
	}
	last := uint64(0)
	for _, b := range h.GetBucket() {
		want := uint64(0)
		for upper, n := range from.Buckets() {
			if upper.Seconds() <= b.GetUpperBound() {
				want += n
			}
		}
		if b.GetCumulativeCount() != want || want < last {
			t.Errorf("up to %v: %d, want %d", b.GetUpperBound(), b.GetCumulativeCount(), want)
		}
		last = want
	}
	var empty dto.Metric
	if err := newHistogram(latenessDesc, timer.Histogram{}, "service", "x").Write(&empty); err != nil || empty.GetHistogram().GetSampleCount() != 0 || len(empty.GetHistogram().GetPositiveSpan()) != 1 {
		t.Errorf("an empty one: %v", &empty)
	}
}

// TestLint asks client_golang's linter and, where it is installed, promtool.
func TestLint(t *testing.T) {
	q := timer.NewQueue[int](timer.Default(), nil)
	t.Cleanup(func() { _ = q.Close() })
	c := NewCollector(Options{TSC: new(clock.TSC), Queues: map[string]Queue{"q": q}})
	problems, err := testutil.CollectAndLint(c)
	if err != nil || len(problems) > 0 {
		t.Errorf("%v %v", problems, err)
	}
	promtool, err := exec.LookPath("promtool")
	if err != nil {
		t.Skip("promtool is not installed")
	}
	var text bytes.Buffer
	for _, f := range gather(t, c) {
		if _, err := expfmt.MetricFamilyToText(&text, f); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command(promtool, "check", "metrics")
	cmd.Stdin = &text
	if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("promtool: %v\n%s", err, out)
	}
}

// TestConcurrent: scrapes may overlap, and series do not multiply.
func TestConcurrent(t *testing.T) {
	s := mustService(t)
	c := NewCollector(Options{Services: map[string]*timer.Service{"s": s}})
	before := testutil.CollectAndCount(c)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 20 {
				s.Sleep(time.Microsecond)
				testutil.CollectAndCount(c)
			}
		})
	}
	wg.Wait()
	if after := testutil.CollectAndCount(c); after != before {
		t.Errorf("%d series have become %d", before, after)
	}
}

func TestNilService(t *testing.T) {
	defer func() {
		if p := recover(); p == nil || !strings.Contains(p.(string), "web") {
			t.Errorf("panic %v", p)
		}
	}()
	NewCollector(Options{Services: map[string]*timer.Service{"web": nil}})
}

func TestNilQueue(t *testing.T) {
	defer func() {
		if p := recover(); p == nil || !strings.Contains(p.(string), "leases") {
			t.Errorf("panic %v", p)
		}
	}()
	NewCollector(Options{Queues: map[string]Queue{"leases": nil}})
}

// TestClosed: the counts of a closed service are still there.
func TestClosed(t *testing.T) {
	s := mustService(t)
	s.Sleep(time.Microsecond)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	m := gather(t, NewCollector(Options{Services: map[string]*timer.Service{"s": s}, NoTimeNow: true}))
	if v := m["detent_timer_fired_total"].GetMetric()[0].GetCounter().GetValue(); v != 1 {
		t.Error(errors.New("counts of a closed service are gone"), v)
	}
	if m["detent_time_now_duration_seconds"] != nil {
		t.Error("time.Now has been measured unasked")
	}
}

// BenchmarkScrape is what a scrape costs, with and without a look at time.Now.
func BenchmarkScrape(b *testing.B) {
	s := mustService(b)
	for i := range 1000 {
		s.Sleep(time.Duration(i % 7))
	}
	services := map[string]*timer.Service{"s": s}
	for name, o := range map[string]Options{"counts": {Services: services, NoTimeNow: true}, "now": {Services: services}} {
		b.Run(name, func(b *testing.B) {
			c := NewCollector(o)
			r := prometheus.NewRegistry()
			r.MustRegister(c)
			b.ReportAllocs()
			for b.Loop() {
				if c.now != nil {
					c.now.last = time.Time{}
				}
				if _, err := r.Gather(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
