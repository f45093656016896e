package lab

import "fmt"

// decideK1 compares what the two engines cost in context switches.
//
// The timer goroutines of buckets64 are goroutines of this program's scheduler, as
// they were in Go 1.13: what they cost is what the program switches more often than
// without them. netpoll114 brings the scheduler along to whose loop Go 1.14's timers
// belong, and each of its threads has to be lent a P by this program's scheduler
// whenever it wakes up: hand-overs that Go 1.14, which had one scheduler, did not
// make. So its cost is how often its threads went to sleep, by its own count.
// Package time, whose timers are in the loop of this program's own scheduler, is
// named beside them.
func decideK1(r *Report) (Verdict, string) {
	x := r.result("syscalls")
	if x == nil {
		return NotRun, `needs the experiment "syscalls"`
	}
	of := func(what, who string) (float64, bool) {
		for _, f := range x.Figures {
			if f.What == what && f.Who == who && f.Here != nil {
				return *f.Here, true
			}
		}
		return 0, false
	}
	driver, ok1 := of(whileStarting, driverAlone)
	old, ok2 := of("voluntary switches", "buckets64")
	young, ok3 := of("sleeps, by the engine", "netpoll114")
	if !ok1 || !ok2 || !ok3 {
		return NotRun, "needs the engines buckets64 and netpoll114, on Linux"
	}
	old -= driver
	because := fmt.Sprintf("on the articles' workload buckets64 adds %.0f voluntary switches to the %.0f of the program alone; the threads of netpoll114 sleep %.0f times", old, driver, young)
	if std, ok := of("voluntary switches", "std"); ok {
		because += fmt.Sprintf("; package time, whose scheduler looks after timers as Go 1.14's did, adds %.0f", std-driver)
	}
	if young < 1.25*old && old < 1.25*young {
		return NotTestable, undecided + because
	}
	return verdict(young < old), because
}
