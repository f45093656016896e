package lab

import (
	"context"
	"fmt"
	"time"

	"github.com/detent-go/detent/probe"
)

// requests are the sleeps of the article.
var requests = []time.Duration{1, 50, 50 * time.Microsecond, time.Millisecond, 50 * time.Millisecond}

var sleepPrecision = Experiment{
	Name:  "sleep",
	Title: "How long a sleep takes",
	About: "Durations of sleeps that were asked for 1 ns to 50 ms, by each way to sleep, one after another.",
	Takes: func(p Plan) time.Duration {
		var sum time.Duration
		for _, d := range requests {
			sum += min(time.Duration(p.Sleeps)*(d+500*time.Microsecond), sleepTime(p))
		}
		return sum * time.Duration(len(probe.SleepNames()))
	},
	run: runSleep,
}

// sleepTime bounds the time that each way has for each request.
func sleepTime(p Plan) time.Duration { return time.Duration(p.Sleeps) * 10 * time.Millisecond }

func runSleep(ctx context.Context, p Plan, r *Result) error {
	for _, d := range requests {
		data, err := probe.MeasureSleeps(ctx, probe.SleepOptions{Requested: d, Count: p.Sleeps, Time: sleepTime(p)})
		if err != nil {
			return err
		}
		plot := Plot{ID: fmt.Sprintf("sleep-%d", d), Title: fmt.Sprintf("How much longer a sleep of %v takes", d), Kind: Tails, Unit: Nanoseconds}
		for _, w := range data.Ways {
			if w.Error != "" {
				r.Skipped = append(r.Skipped, w.Name+": "+w.Error)
				continue
			}
			l := w.Lateness
			for _, s := range []struct {
				name, column string
				v            time.Duration
			}{{"min", "min_ns", l.Min}, {"p50", "p50_ns", l.P50}, {"p90", "p90_ns", l.P90}, {"p99", "p99_ns", l.P99}, {"max", "max_ns", l.Max}} {
				f := Figure{What: s.name, Who: w.Name, Case: d.String(), Unit: Nanoseconds, Here: is(float64(s.v + d))}
				f.Published = publishedSleep(w.Name, s.column, d)
				r.add(f)
			}
			above := l.Count
			var points [][2]float64
			for _, b := range l.Buckets {
				points = append(points, [2]float64{max(float64(b.From), 1), max(100*float64(above)/float64(l.Count), 0.001)})
				above -= int64(b.Count)
			}
			plot.Series = append(plot.Series, Series{Name: w.Name, Points: points})
		}
		r.Plots = append(r.Plots, plot)
	}
	return nil
}

// publishedSleep is of the article's host B, which corrects host A, or of A where B
// has none.
func publishedSleep(way, column string, d time.Duration) *float64 {
	for _, host := range []string{"B", "A"} {
		if v := published("sleep_precision", column, map[string]string{"host": host, "method": way, "requested_ns": fmt.Sprint(int64(d))}); v != nil {
			return v
		}
	}
	return nil
}
