package lab

import (
	"context"
	"fmt"
	"time"

	"github.com/detent-go/detent/lab/engine"
	"github.com/detent-go/detent/lab/engines"
)

var whoSleeps = Experiment{
	Name:  "asleep",
	Title: "Who sleeps in futex, nanosleep and epoll",
	About: "Threads of this process that run, or are asleep in each system call, while it does nothing but have one timer pending, by every engine, on average over many looks. The first row has no engine: what it shows is the Go runtime's own, of which idle threads wait in futex without a timeout, and the monitor with one or in nanosleep. What an engine adds, it sleeps in.",
	Takes: func(p Plan) time.Duration {
		return time.Duration(len(engines.All())+1) * (time.Duration(sleepLooks(p))*lookEvery + 50*time.Millisecond)
	},
	run: func(ctx context.Context, p Plan, r *Result) error {
		if err := r.asleep(ctx, p, "no engine"); err != nil {
			return err
		}
		for _, info := range engines.All() {
			err := r.asleepWith(ctx, p, info)
			if e := alive(ctx); e != nil {
				return e
			}
			if err != nil {
				r.skipOnce(info.Name, err)
			}
		}
		plot := Plot{ID: "asleep", Title: r.Title, Kind: Bars, Unit: Count, Linear: true}
		for _, place := range places[:len(places)-2] {
			s := Series{Name: place.name}
			plot.Labels = nil
			for _, f := range r.Figures {
				if f.What == place.name {
					plot.Labels, s.Values = append(plot.Labels, f.Who), append(s.Values, *f.Here)
				}
			}
			plot.Series = append(plot.Series, s)
		}
		r.Plots = append(r.Plots, plot)
		return nil
	},
}

// lookEvery is how often the threads are looked at, out of step with the runtime's
// monitor and with ticks of whole milliseconds, and sleepLooks how many times.
const lookEvery = 7300 * time.Microsecond

func sleepLooks(p Plan) int { return max(10*p.Rounds, 10) }

// A place is where a thread may be: running, or asleep in a system call.
type place struct{ name string }

const running = "running"

// places are in the order of the tables.
var places = []place{
	{"futex, timed"}, {"futex"}, {"epoll, timed"}, {"epoll"}, {"nanosleep"}, {running}, {"elsewhere"},
}

// asleepWith looks at the threads while an engine has one timer pending.
func (r *Result) asleepWith(ctx context.Context, p Plan, info engine.Info) error {
	e, err := started(ctx, info, 0)
	if err != nil {
		return err
	}
	t := e.AfterFunc(time.Hour, nop)
	err = r.asleep(ctx, p, info.Name)
	t.Stop()
	if e := e.Close(); e != nil {
		r.skipOnce("closing "+info.Name, e)
	}
	return err
}

// asleep adds how many threads are in each place.
func (r *Result) asleep(ctx context.Context, p Plan, who string) error {
	counts, err := within(ctx, func() counted { return lookAtThreads(sleepLooks(p)) })
	if err == nil {
		err = counts.err
	}
	if err != nil {
		return fmt.Errorf("where the threads are: %w", err)
	}
	for _, place := range places {
		r.add(Figure{What: place.name, Who: who, Case: "one timer pending", Here: is(counts.mean[place.name])})
	}
	return nil
}

// counted is how many threads were in each place, on average.
type counted struct {
	mean map[string]float64
	err  error
}
