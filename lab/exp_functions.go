package lab

import (
	"context"
	"fmt"
	"time"

	"github.com/detent-go/detent/clock"
)

// A function is one of package time's that is not a timer.
type function struct {
	name string
	who  string
	call func()
}

// keep has results looked at, lest the calls be left out.
var keep struct {
	t time.Time
	d time.Duration
	n int
	i int64
	b []byte
	s string
}

// subs are as many pairs of times as the benchmark of Sub subtracted in each operation
// when the table was made, alike in kind: near, far, and farther than a Duration goes.
func subs() (list [][2]time.Time) {
	day := func(year, day int) time.Time { return time.Date(year, 11, day, 0, 0, 0, 0, time.UTC) }
	for _, p := range [][2]time.Time{
		{{}, {}}, {day(2009, 23).Add(1), day(2009, 23)}, {day(2009, 23), day(2009, 24)}, {day(2009, 24), day(2009, 23)},
		{day(-2009, 24), day(-2009, 23)}, {{}, day(2109, 23)}, {day(2109, 23), {}},
	} {
		list = append(list, p, [2]time.Time{p[1], p[0]})
	}
	return list
}

func functions() []function {
	now, then, pairs := time.Now(), time.Unix(1265346057, 0), subs()
	const stamp = "Mon Jan  2 15:04:05 2006"
	list := []function{
		{"Sub", "time", func() {
			for _, p := range pairs {
				keep.d = p[0].Sub(p[1])
			}
		}},
		{"Now", "time", func() { keep.t = time.Now() }},
		{"NowUnixNano", "time", func() { keep.i = time.Now().UnixNano() }},
		{"Format", "time", func() { keep.s = then.Format(stamp) }},
		{"FormatNow", "time", func() { keep.s = now.Format(stamp) }},
		{"MarshalJSON", "time", func() { keep.b, _ = now.MarshalJSON() }},
		{"MarshalText", "time", func() { keep.b, _ = now.MarshalText() }},
		{"Parse", "time", func() { keep.t, _ = time.Parse(time.ANSIC, stamp) }},
		{"ParseDuration", "time", func() { keep.d, _ = time.ParseDuration("9007199254.740993ms") }},
		{"Hour", "time", func() { keep.n = now.Hour() }},
		{"Second", "time", func() { keep.n = now.Second() }},
		{"Year", "time", func() { keep.n = now.Year() }},
		{"Day", "time", func() { keep.n = now.Day() }},
		{"Now", "clock", func() { keep.t = clock.Now() }},
		{"NowUnixNano", "clock", func() { keep.i = clock.Real.Nanos() }},
	}
	return list
}

var timeFunctions = Experiment{
	Name:  "functions",
	Title: "Package time's other functions",
	About: "Nanoseconds an operation of what else the article's table has, as package time's benchmarks had it (that of Sub subtracts fourteen times); and a call of package clock where it has the function.",
	Takes: func(p Plan) time.Duration { return time.Duration(len(functions())*p.Rounds) * p.Window / 2 },
	run: func(ctx context.Context, p Plan, r *Result) error {
		list := functions()
		took := make([][]float64, len(list))
		for range p.Rounds {
			for i, f := range list {
				if err := alive(ctx); err != nil {
					return err
				}
				took[i] = append(took[i], perCall(p.Window/2, f.call))
			}
		}
		for i, f := range list {
			x := Figure{What: f.name, Who: f.who, Case: "one goroutine", Unit: Nanoseconds, Here: is(median(took[i]))}
			if f.who == "time" {
				x.Published, x.By = published("go114_time_12procs", "after_ns_per_op", map[string]string{"benchmark": f.name}), "Go 1.14"
			}
			r.add(x)
		}
		p2 := Plot{ID: "functions", Title: "Functions of package time", Kind: Bars, Unit: Nanoseconds}
		here, there := Series{Name: "here"}, Series{Name: "published"}
		for _, f := range r.Figures {
			p2.Labels = append(p2.Labels, fmt.Sprintf("%s.%s", f.Who, f.What))
			there.Values = append(there.Values, deref(f.Published))
			here.Values = append(here.Values, deref(f.Here))
		}
		p2.Series = []Series{here, there}
		r.Plots = append(r.Plots, p2)
		return nil
	},
}

func deref(v *float64) float64 {
	if v == nil {
		return 0
	}
	return *v
}
