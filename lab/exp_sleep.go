package lab

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/detent-go/detent/lab/engine"
	"github.com/detent-go/detent/lab/engines"
	"github.com/detent-go/detent/probe"
)

// requests are the sleeps of the article.
var requests = []time.Duration{1, 50, 50 * time.Microsecond, time.Millisecond, 50 * time.Millisecond}

var sleepPrecision = Experiment{
	Name:  "sleep",
	Title: "How long a sleep takes",
	About: "Durations of sleeps that were asked for 1 ns to 50 ms, by each way to sleep, one after another; and by the engines that work as the Go runtime did before.",
	Takes: func(p Plan) time.Duration {
		var sum time.Duration
		for _, d := range requests {
			sum += min(time.Duration(p.Sleeps)*(d+500*time.Microsecond), sleepTime(p))
		}
		return sum * time.Duration(len(probe.SleepNames())+len(historic()))
	},
	run: runSleep,
}

// historic are the engines that Go programs used once.
func historic() []engine.Info {
	return slices.DeleteFunc(engines.All(), func(i engine.Info) bool { return i.Years == "" || i.Name == "std" })
}

// sleepTime bounds the time that each way has for each request.
func sleepTime(p Plan) time.Duration { return time.Duration(p.Sleeps) * 10 * time.Millisecond }

// sleptFor is the durations of one way's sleeps, as the tables and plots show them.
type sleptFor struct {
	who                           string
	mean, min, p50, p90, p99, max time.Duration
	tail, share                   [][2]float64 // for the plots
}

func runSleep(ctx context.Context, p Plan, r *Result) error {
	open, closeAll := historicOpen(ctx, r)
	defer closeAll()
	for _, d := range requests {
		var list []sleptFor
		data, err := probe.MeasureSleeps(ctx, probe.SleepOptions{Requested: d, Count: p.Sleeps, Time: sleepTime(p)})
		if err != nil {
			return err
		}
		for _, w := range data.Ways {
			if w.Error != "" {
				r.Skipped = append(r.Skipped, w.Name+": "+w.Error)
				continue
			}
			list = append(list, sleptOf(w.Name, d, w.Lateness))
		}
		for _, e := range open {
			if e.lost {
				continue
			}
			took, err := within(ctx, func() []time.Duration { return engineSleeps(e, d, p) })
			if err != nil {
				e.lost = true
				r.skipOnce(e.info.Name+", and what follows", err)
				continue
			}
			slices.Sort(took)
			at := func(q float64) time.Duration { return time.Duration(quantile(took, q)) }
			late := make([]time.Duration, len(took))
			shares := shares{}
			var sum time.Duration
			for i, v := range took {
				sum += v
				late[i] = max(v-d, 0)
				shares.add(late[i], 1)
			}
			list = append(list, sleptFor{e.info.Name, sum / time.Duration(len(took)), at(0), at(0.5), at(0.9), at(0.99), at(1), tail(late), shares.points()})
		}
		tails := Plot{ID: fmt.Sprintf("sleep-%d", d), Title: fmt.Sprintf("How much longer a sleep of %v takes: the part that is later", d), Kind: Tails, Unit: Nanoseconds}
		hist := Plot{ID: fmt.Sprintf("sleep-histogram-%d", d), Title: fmt.Sprintf("How much longer a sleep of %v takes: a histogram", d), Kind: Histogram, Unit: Nanoseconds}
		for _, s := range list {
			s.add(r, d)
			tails.Series = append(tails.Series, Series{Name: s.who, Points: s.tail})
			hist.Series = append(hist.Series, Series{Name: s.who, Points: s.share})
		}
		r.Plots = append(r.Plots, hist, tails)
	}
	return nil
}

// historicOpen starts the engines of old.
func historicOpen(ctx context.Context, r *Result) (list []*opened, closeAll func()) {
	for _, info := range historic() {
		e, err := started(ctx, info, 0)
		if err != nil {
			r.skipOnce(info.Name, err)
			continue
		}
		list = append(list, &opened{Engine: e, info: info})
	}
	return list, func() {
		for _, e := range list {
			if !e.lost {
				e.close(r)
			}
		}
	}
}

// engineSleeps sleeps again and again, in time, and returns how long each took.
func engineSleeps(e engine.Engine, d time.Duration, p Plan) (list []time.Duration) {
	for begin := time.Now(); len(list) < p.Sleeps && (len(list) == 0 || time.Since(begin) < sleepTime(p)); {
		from := time.Now()
		e.Sleep(d)
		list = append(list, time.Since(from))
	}
	return list
}

// sleptOf is what a probe found.
func sleptOf(who string, d time.Duration, l probe.Distribution) sleptFor {
	s := sleptFor{who: who, mean: l.Mean + d, min: l.Min + d, p50: l.P50 + d, p90: l.P90 + d, p99: l.P99 + d, max: l.Max + d}
	above := l.Count
	shares := shares{}
	for _, b := range l.Buckets {
		s.tail = append(s.tail, [2]float64{max(float64(b.From), 1), max(100*float64(above)/float64(l.Count), 0.001)})
		above -= int64(b.Count)
		shares.add(b.From, float64(b.Count))
	}
	s.share = shares.points()
	return s
}

func (s sleptFor) add(r *Result, d time.Duration) {
	for _, f := range []struct {
		name, column string
		v            time.Duration
	}{{"mean", "avg_ns", s.mean}, {"min", "min_ns", s.min}, {"p50", "p50_ns", s.p50}, {"p90", "p90_ns", s.p90}, {"p99", "p99_ns", s.p99}, {"max", "max_ns", s.max}} {
		r.add(Figure{What: f.name, Who: s.who, Case: d.String(), Unit: Nanoseconds, Here: is(float64(f.v)), Published: publishedSleep(s.who, f.column, d)})
	}
}

// shares counts durations in classes of a quarter of an octave, for a histogram.
type shares map[int]float64

// octave is how many classes there are until a duration has doubled.
const octave = 4

func (s shares) add(d time.Duration, n float64) {
	s[int(math.Floor(math.Log2(max(float64(d), 1))*octave))] += n
}

// points are the beginnings of the classes in nanoseconds, and which part of all is in
// each, in percent: also those between with nothing in them, and one after the last.
func (s shares) points() (list [][2]float64) {
	if len(s) == 0 {
		return nil
	}
	first, last, sum := math.MaxInt, math.MinInt, 0.0
	for k, n := range s {
		first, last, sum = min(first, k), max(last, k), sum+n
	}
	for k := first; k <= last+1; k++ {
		list = append(list, [2]float64{math.Exp2(float64(k) / octave), 100 * s[k] / sum})
	}
	return list
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
