package lab

import (
	"context"
	"fmt"
	"runtime"
	"time"

	"github.com/detent-go/detent/lab/engines"
)

var wheelAgainstStandard = Experiment{
	Name:  "wheel",
	Title: "A timing wheel against the standard timer, with millions pending",
	About: "Nanoseconds, bytes and allocations to start a timer and stop it, while so many others are pending, by one goroutine.",
	Takes: func(p Plan) time.Duration {
		sum := 0
		for _, n := range p.Pending {
			sum += n
		}
		return time.Duration(len(engines.All())) * (time.Duration(sum)*1500*time.Nanosecond + time.Duration(len(p.Pending)*p.Rounds)*p.Window)
	},
	run: runWheel,
}

func pendingCase(n int) string { return fmt.Sprintf("%d pending", n) }

// startStops is how many timers are started and stopped in a measurement of what
// they allocate.
const startStops = 10_000

func runWheel(ctx context.Context, p Plan, r *Result) error {
	for _, n := range p.Pending {
		in := pendingCase(n)
		for _, info := range engines.All() {
			if err := alive(ctx); err != nil {
				return err
			}
			e, err := info.New(0)
			if err != nil {
				r.skipOnce(info.Name, err)
				continue
			}
			pending, err := p.pendingTimers(info, e, n, func() bool { return ctx.Err() != nil })
			if err != nil {
				r.skip(info.Name+" with "+in, err)
				for _, t := range pending {
					t.Stop()
				}
				pending = nil
				if err := e.Close(); err != nil {
					r.skip("closing "+info.Name, err)
				}
				continue
			}
			runtime.GC()
			op := func() { e.AfterFunc(time.Minute, nop).Stop() }
			if err := alive(ctx); err != nil {
				return err
			}
			var took []float64
			for range p.Rounds {
				took = append(took, perCall(p.Window, op))
			}
			bytes, objects := allocated(func() {
				for range startStops {
					op()
				}
			})
			for _, t := range pending {
				t.Stop()
			}
			if err := e.Close(); err != nil {
				r.skip("closing "+info.Name, err)
			}
			add := func(what, column string, unit Unit, here float64) {
				f := Figure{What: what, Who: info.Name, Case: in, Unit: unit, Here: is(here)}
				name := map[string]string{"wheel": "TimingWheel_StartStop", "netpoll114": "StandardTimer_StartStop"}[info.Name]
				if name != "" {
					f.Published = published("wheel_vs_std", column, map[string]string{"benchmark": name, "pending_timers": fmt.Sprint(n)})
				}
				if f.Published != nil && info.Name == "netpoll114" {
					f.By = "Go 1.14's package time"
				}
				r.add(f)
			}
			add("start and stop", "ns_per_op", Nanoseconds, median(took))
			add("bytes", "bytes_per_op", Bytes, bytes/startStops)
			add("allocations", "allocs_per_op", Count, objects/startStops)
			runtime.GC()
		}
	}
	r.plotBars("wheel", "Start and stop, by engine and pending timers", "start and stop")
	return nil
}
