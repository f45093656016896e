package doctor

import (
	"strconv"

	"github.com/detent-go/detent/probe"
)

// stepsSection shows how often time stepped back.
func stepsSection(d *probe.StepsData) section {
	s := section{
		title: "Whether time steps back",
		note: "Readings that were smaller than one taken before, by threads that stay on a CPU, move, or share their largest reading. " +
			"The wall clock steps back when somebody sets it; an unordered reading of the counter may be overtaken by another CPU's.",
		head:  []string{"clock", "promise", "read by", "threads", "readings", "back", "worst"},
		text:  3,
		minor: []int{3, 1},
	}
	for _, c := range d.Counts {
		s.rows = append(s.rows, []string{
			c.Clock, c.Promise, string(c.Method), strconv.Itoa(c.Threads),
			strconv.FormatUint(c.Readings, 10), strconv.FormatUint(c.Back, 10), duration(c.Worst),
		})
	}
	return s
}
