package doctor

import (
	"fmt"
	"math/bits"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/detent-go/detent/cmd/internal/page"
	"github.com/detent-go/detent/probe"
)

// sleepSection shows how late sleeps ended.
func sleepSection(d *probe.SleepData) section {
	requested := strings.Replace(d.Requested.String(), "µ", "u", 1) // as it is typed
	s := section{
		title: fmt.Sprintf("How late sleeps of %s end", requested),
		note:  "By how much longer than requested they took. Busy is while one goroutine a P spins.",
		head:  []string{"way", "load", "sleeps", "least", "p50", "p90", "p99", "p999", "most"},
		text:  2,
		minor: []int{2, 5, 3, 7},
	}
	if !slices.ContainsFunc(d.Ways, func(w probe.SleepWay) bool { return w.Load != d.Ways[0].Load }) {
		s.minor = append([]int{1}, s.minor...) // one load is that of the whole table
	}
	curves := map[probe.Load][]page.Curve{}
	for i := range d.Ways {
		w := &d.Ways[i]
		l := w.Lateness
		row := []string{w.Name, string(w.Load), strconv.FormatInt(l.Count, 10), "", "", "", "", "", ""}
		if l.Count > 0 {
			row[3], row[4], row[8] = late(l.Min), late(l.P50), late(l.Max)
			row[5], row[6], row[7] = quantile(l, l.P90, 10), quantile(l, l.P99, 100), quantile(l, l.P999, 1000)
			curves[w.Load] = append(curves[w.Load], page.Curve{Name: w.Name, Points: later(l)})
			b := lateBars(fmt.Sprintf("%s, %s", w.Name, w.Load), l)
			b.detail = w.Load != probe.Idle || w.Name != probe.SleepTime && w.Name != probe.SleepDetent
			s.bars = append(s.bars, b)
		}
		s.rows = append(s.rows, row)
		if w.Error != "" {
			s.rows = append(s.rows, []string{"  " + w.Error})
		}
		if w.Early > 0 {
			s.rows = append(s.rows, []string{fmt.Sprintf("  %d EARLY, by up to %s", w.Early, late(w.EarlyBy))})
		}
	}
	for _, load := range []probe.Load{probe.Idle, probe.Busy} {
		if c := curves[load]; len(c) > 0 {
			s.charts = append(s.charts, page.Chart{
				ID: "sleep-" + string(load), About: fmt.Sprintf("What part of the sleeps of %s is later than what, %s", requested, load),
				Height: 380, Option: page.Distribution(c, "lateness, "+string(load)),
			})
		}
	}
	return s
}

func late(d time.Duration) string { return nanos(float64(d)) }

// quantile is empty where there are too few values for it to be anything but the
// largest.
func quantile(l probe.Distribution, d time.Duration, needs int64) string {
	if l.Count < needs {
		return ""
	}
	return late(d)
}

// later returns points of duration, and of the part of the values, in percent, that
// is above it.
func later(l probe.Distribution) [][2]float64 {
	if len(l.Buckets) == 0 {
		return nil
	}
	points := [][2]float64{{float64(max(l.Buckets[0].From, 1)), 100}}
	left := float64(l.Count)
	for _, b := range l.Buckets {
		if left -= float64(b.Count); left > 0 {
			points = append(points, [2]float64{float64(max(b.To, 1)), 100 * left / float64(l.Count)})
		}
	}
	return append(points, [2]float64{float64(max(l.Max, 1)), 100 / float64(l.Count) / 2})
}

// lateBars is a histogram of at most some twenty rows, which are half a power of two
// wide, or a whole one where that would be too many.
func lateBars(title string, l probe.Distribution) bars {
	b := bars{title: title}
	if len(l.Buckets) == 0 {
		return b
	}
	// Nothing less than 2 ns is told apart.
	at := func(k probe.Bucket) uint64 { return uint64(max(k.From, 2)) }
	first, last := at(l.Buckets[0]), at(l.Buckets[len(l.Buckets)-1])
	halves := 2
	if bits.Len64(last)-bits.Len64(first) > 8 {
		halves = 1
	}
	// class numbers the rows; edge is where one begins.
	class := func(ns uint64) int {
		n := bits.Len64(ns) // ns is from 1<<(n-1)
		if halves == 1 {
			return n
		}
		return 2*n + int(ns>>(n-2))&1
	}
	edge := func(c int) string {
		n := c / halves
		return nanos(float64(uint64(1)<<(n-1) + uint64(c%halves)<<(n-2)))
	}
	counts := make([]uint64, class(last)-class(first)+1)
	for _, k := range l.Buckets {
		counts[class(at(k))-class(first)] += k.Count
	}
	for i, n := range counts {
		c := class(first) + i
		part := ""
		if n > 0 {
			part = fmt.Sprintf("%.1f %%", 100*float64(n)/float64(l.Count))
		}
		b.rows = append(b.rows, bar{
			label: edge(c) + " - " + edge(c+1),
			value: float64(n),
			text:  fmt.Sprintf("%6d %7s", n, part),
		})
	}
	return b
}
