package doctor

import (
	"fmt"
	"strconv"

	"github.com/detent-go/detent/cmd/internal/page"
	"github.com/detent-go/detent/probe"
)

// counterSections shows the cycle counter's rate, and how far apart CPUs may be.
func counterSections(d *probe.CounterData) []section {
	rate := section{
		title: "The cycle counter",
		head:  []string{"", "", "may be off by"},
		text:  1,
		rows: [][]string{
			{"frequency by CLOCK_MONOTONIC_RAW", fmt.Sprintf("%.6f MHz", d.Frequency/1e6), fmt.Sprintf("%.6f MHz", d.FrequencyError/1e6)},
		},
	}
	if d.Stated > 0 {
		rate.rows = append(rate.rows, []string{"frequency as stated by " + d.StatedBy, fmt.Sprintf("%.6f MHz", d.Stated/1e6), ""})
	}
	rate.rows = append(rate.rows,
		[]string{"CLOCK_MONOTONIC against it (slewing)", fmt.Sprintf("%+.0f ppb", d.Slew), fmt.Sprintf("%.0f ppb", d.SlewError)},
		[]string{fmt.Sprintf("jumps in %d samples over %s", d.Samples, nanos(float64(d.Over))), strconv.Itoa(len(d.Jumps)), ""},
	)
	list := []section{rate}
	if len(d.Pairs) == 0 {
		return list
	}
	apart := section{
		title: "How far apart the counters of two CPUs may be",
		note: "Messages between two CPUs bound the offset of their counters: an answer cannot have come before it was sent. " +
			"What is smaller than the bound is not distinguishable from none. Compared: " + d.Plan + ".",
		head:  []string{"pairs by relation", "pairs", "least round trip", "median", "offset at most", "certainly apart"},
		text:  1,
		minor: []int{3, 2},
	}
	for _, g := range d.Groups {
		apart.rows = append(apart.rows, []string{
			string(g.Relation), strconv.Itoa(g.Pairs), nanos(g.RoundTrip), nanos(g.MedianTrip), nanos(g.Bound), strconv.Itoa(g.Apart),
		})
	}
	apart.charts = []page.Chart{offsetMatrix(d)}
	return append(list, apart)
}

// offsetMatrix is a heat map of the largest offset that each pair may have, both
// ways round.
func offsetMatrix(d *probe.CounterData) page.Chart {
	index := map[int]int{}
	var names []string
	for i, c := range d.CPUs {
		index[c.CPU] = i
		names = append(names, "CPU "+strconv.Itoa(c.CPU))
	}
	var cells []page.Cell
	most := 1000.0 // what is less than a microsecond looks harmless
	for _, p := range d.Pairs {
		if p.Error != "" {
			continue
		}
		most = max(most, p.Largest())
		from, to := index[p.From], index[p.To]
		cells = append(cells,
			page.Cell{Column: to, Row: from, Value: p.Largest(), Text: offsetText(p.Low, p.High, p.Apart)},
			page.Cell{Column: from, Row: to, Value: p.Largest(), Text: offsetText(-p.High, -p.Low, p.Apart)})
	}
	return page.Chart{
		ID: "offsets", About: "For each pair of CPUs, how far their counters may be apart at most, as a heat map",
		Height: min(180+34*len(names), 900), Option: page.Matrix(names, names, cells, most),
	}
}

// offsetText says by how much a CPU is ahead.
func offsetText(low, high float64, apart bool) string {
	if !apart {
		return "not distinguishable, at most " + nanos(max(high, -low))
	}
	return fmt.Sprintf("ahead by %s to %s", nanos(low), nanos(high))
}
