package explain

import (
	"time"

	"github.com/detent-go/detent/probe"
	"github.com/detent-go/detent/trace"
)

// Facts are what is known of a process.
type Facts struct {
	// Process is what it did in Elapsed.
	Process trace.Process
	Elapsed time.Duration
	// Clocksource is the kernel's.
	Clocksource string
	Cost        Cost
	// Machine are the findings on the machine as a whole.
	Machine []probe.Finding
}

// Cost is what reading the clock costs a process that has nothing the matter with
// it, on this machine: one that was measured just now. 0 is unknown.
type Cost struct {
	Now  time.Duration // time.Now
	VDSO time.Duration // one clock by the vDSO
	Call time.Duration // the same clock by system call
}

// CostOf is what a report has measured of that; what it has not is 0.
func CostOf(r *probe.Report) (cost Cost) {
	for _, result := range r.Results {
		d, ok := result.Data.(*probe.ClocksData)
		if !ok {
			continue
		}
		for _, c := range d.Clocks {
			switch {
			case c.Package == "time" && c.Name == "Now":
				cost.Now = nanoseconds(c.Cost.Least)
			case c.Package == "clock" && c.Name == "Mono":
				cost.VDSO = nanoseconds(c.Cost.Least)
				if c.Syscall != nil {
					cost.Call = nanoseconds(c.Syscall.Least)
				}
			}
		}
	}
	return cost
}

func nanoseconds(ns float64) time.Duration { return time.Duration(ns + 0.5) }

// call is what a system call for the time costs, with the way there and back.
func (f *Facts) call() time.Duration {
	if f.Cost.Call > 0 {
		return f.Cost.Call
	}
	return typicalCall
}

// typicalCall stands where the cost was not measured.
const typicalCall = 200 * time.Nanosecond

// cpu is how many CPUs' worth of time d is.
func (f *Facts) cpu(d time.Duration) float64 {
	if f.Elapsed <= 0 {
		return 0
	}
	return d.Seconds() / f.Elapsed.Seconds()
}

// A demand says how many CPUs a process wanted, and what became of that.
type demand struct{ running, throttled, waiting float64 }

func (f *Facts) demand() demand {
	d := demand{running: f.cpu(f.Process.CPU)}
	if w := f.Process.Wait; w != nil {
		d.throttled, d.waiting = f.cpu(w.Throttled.Sum), f.cpu(w.RunQueue.Sum)
	}
	return d
}

func (d demand) total() float64 { return d.running + d.throttled + d.waiting }

// kernelLateness is how late the timers of a process made its threads run, by all
// kinds of timers that a program arms to be on time. Plain nanosleep is left out:
// the Go runtime's own threads pass their time in it.
func (f *Facts) kernelLateness() (total trace.Lateness) {
	for _, l := range f.Process.Lateness {
		if l.Kind == trace.KindNanosleep && f.isGo() {
			continue
		}
		total.Slack.Add(&l.Slack)
		total.Interrupt.Add(&l.Interrupt)
		total.Wake.Add(&l.Wake)
		total.Throttled.Add(&l.Throttled)
		total.RunQueue.Add(&l.RunQueue)
		total.Total.Add(&l.Total)
	}
	return total
}

func (f *Facts) isGo() bool { return f.Process.Go != nil || f.Process.GoTimers != nil }

// finding returns the machine's finding with this ID.
func (f *Facts) finding(ids ...string) *probe.Finding {
	for _, id := range ids {
		for i := range f.Machine {
			if f.Machine[i].ID == id {
				return &f.Machine[i]
			}
		}
	}
	return nil
}
