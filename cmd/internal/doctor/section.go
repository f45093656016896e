package doctor

import (
	"fmt"

	"github.com/detent-go/detent/cmd/internal/page"
	"github.com/detent-go/detent/probe"
)

// A section is what was measured of one thing.
type section struct {
	title  string
	note   string // what the figures mean, in a sentence or two
	head   []string
	rows   [][]string
	text   int          // how many of the first columns are text: the others are figures
	minor  []int        // columns that a narrow terminal is spared, the first ones first
	charts []page.Chart // for the page
	bars   []bars       // for the terminal
}

// bars is a histogram for a terminal.
type bars struct {
	title string
	rows  []bar
	// detail is left out of a report on everything.
	detail bool
}

type bar struct {
	label string
	value float64
	text  string
}

// sections returns what is to be shown of the report, in the order of its results.
func sections(r *probe.Report) []section {
	var list []section
	for _, result := range r.Results {
		switch d := result.Data.(type) {
		case *probe.ClocksData:
			if len(d.Clocks) > 0 {
				list = append(list, clockSection(d))
			}
		case *probe.CounterData:
			list = append(list, counterSections(d)...)
		case *probe.StepsData:
			list = append(list, stepsSection(d))
		case *probe.SleepData:
			list = append(list, sleepSection(d))
		case *probe.PausesData:
			list = append(list, pausesSection(d))
		}
	}
	return list
}

// nanos formats nanoseconds with three digits or so.
func nanos(ns float64) string {
	a := ns
	if a < 0 {
		a = -a
	}
	scaled := func(v float64, unit string) string {
		switch a := max(v, -v); {
		case a < 10 && unit != "ns":
			return fmt.Sprintf("%.2f %s", v, unit)
		case a < 100 && (unit != "ns" || v != float64(int64(v))):
			return fmt.Sprintf("%.1f %s", v, unit)
		}
		return fmt.Sprintf("%.0f %s", v, unit)
	}
	switch {
	case a < 1e3:
		return scaled(ns, "ns")
	case a < 1e6:
		return scaled(ns/1e3, "us")
	case a < 1e9:
		return scaled(ns/1e6, "ms")
	}
	return scaled(ns/1e9, "s")
}
