package lab

import (
	"fmt"
	"runtime"

	"github.com/detent-go/detent/probe"
)

// claims are the articles', C1 to C12 with a figure and K1 to K12 without.
var claims = []claim{
	{"C1", "time.Now steps backward 10 to 500 times in a million calls", func(r *Report) (Verdict, string) {
		back, n, ok := stepsBack(r, "time.Now")
		if !ok {
			return NotRun, `needs the experiment "steps"`
		}
		moved, _ := r.result("steps").here("wall clock set meanwhile", "somebody", "during the run")
		if moved != 0 {
			return NotTestable, fmt.Sprintf("somebody set the wall clock by %s during the run", ns(moved))
		}
		return verdict(back/n*1e6 >= 10), fmt.Sprintf("%.0f of %.0f readings", back, n)
	}},
	{"C2", "TSCs of different NUMA nodes differ by up to 217 cycles, of one node by 8", func(r *Report) (Verdict, string) {
		hz, ok := r.result("offsets").here("frequency", "cycle counter", "by CLOCK_MONOTONIC_RAW")
		if !ok || hz <= 0 {
			return NotRun, `needs the experiment "offsets"`
		}
		return apart(r, 217/hz*1e9, "a machine with two NUMA nodes", "sockets", "nodes of a socket")
	}},
	{"C3", "timer interrupts are later by HPET (2.1 us) than by the ACPI PM timer (1.3 us)", decideC3},
	{"C4", "clock_gettime costs 25 ns by the vDSO and 300 ns by system call", func(r *Report) (Verdict, string) {
		a, why, ok := need(r, "clocks", "reading", "clock.Mono", "one thread")
		if !ok {
			return NotRun, why
		}
		b, why, ok := need(r, "clocks", "system call", "clock.Mono", "one thread")
		if !ok {
			return NotRun, why
		}
		// In order of size: a system call is several times as expensive.
		return verdict(b > 3*a), fmt.Sprintf("%s by the vDSO, %s by system call: %.1f times as much (the article: 12)", ns(a), ns(b), b/a)
	}},
	{"C5", "preemption jitter is 5 ms at HZ=100, 0.3 ms at HZ=1000, 15 to 50 ms with NO_HZ_FULL", decideC5},
	{"C6", "siblings of a core see more wobble of time.Now (83 ns) than different cores (12 ns)", func(r *Report) (Verdict, string) {
		const what = wobbleMean
		x := r.result("offsets")
		if x == nil {
			return NotRun, `needs the experiment "offsets"`
		}
		smt, ok := x.here(what, string(probe.SameCore), wobbleCase)
		core, ok2 := x.here(what, string(probe.SameNode), wobbleCase)
		if !ok || !ok2 {
			because := "needs a machine whose CPUs are known to share cores (SMT), with more than one core"
			if ok2 {
				because += fmt.Sprintf(". Here, different cores: %s", ns(core))
			}
			return NotTestable, because
		}
		because := fmt.Sprintf("mean wobble of threads of a core %s, of different cores %s", ns(smt), ns(core))
		switch {
		case smt >= 1.25*core:
			return Confirmed, because
		case smt <= core:
			return Refuted, because
		}
		return NotTestable, undecided + because
	}},
	{"C7", "the clocks of two NUMA nodes are 98 ns apart", func(r *Report) (Verdict, string) {
		return apart(r, 98, "a machine with two NUMA nodes", "sockets", "nodes of a socket")
	}},
	{"C8", "a difference of more than 10,000 cycles between two readings signals a discontinuity of the TSC", func(r *Report) (Verdict, string) {
		in := fmt.Sprintf("%d pairs", readPairs)
		over, why, ok := need(r, "offsets", "pairs of readings over the threshold", "cycle counter", in)
		if !ok {
			return NotRun, why
		}
		jumps, ok := jumpsOf(r)
		if !ok {
			return NotRun, "the jumps of the counter were not measured"
		}
		more, _ := r.result("offsets").here("pairs of readings over the threshold", "cycle counter", morePairs)
		pairs, _ := r.result("offsets").here("pairs of readings", "cycle counter", morePairs)
		worst, _ := r.result("offsets").here("largest difference", "cycle counter", morePairs)
		if over+more == 0 {
			return NotTestable, fmt.Sprintf("no pair of %.0f was over the threshold in this run (largest %.0f cycles); an interrupt or a preemption of 4 us makes one", readPairs+pairs, worst)
		}
		return verdict(jumps > 0), fmt.Sprintf("%.0f of the first %d pairs over the threshold, %.0f of %.0f more, up to %.0f cycles, and %.0f jumps of the counter against CLOCK_MONOTONIC_RAW: it is interruptions that make them", over, readPairs, more, pairs, worst, jumps)
	}},
	{"C9", "RDTSC on a locked thread costs 1.2 ns", func(r *Report) (Verdict, string) {
		v, why, ok := need(r, "clocks", "reading", "cycle counter, unordered", "one thread")
		if !ok {
			return NotRun, why
		}
		return verdict(v < 2.4), ns(v) + " for the bare counter, unordered"
	}},
	{"C10", "a timer pool for each P is late by p99 3.1 us at 10,000 timers a second than one lock's 82 us", func(r *Report) (Verdict, string) {
		const what, of, tail = "p99 of the pool by that of one lock, ", "pool / pool1", "lateness p99, median of rounds"
		v, why, ok := needAll(r, key{"pool", what + "least", of, poolCase}, key{"pool", what + "median", of, poolCase}, key{"pool", what + "most", of, poolCase},
			key{"pool", tail, "pool", poolCase}, key{"pool", tail, "pool1", poolCase})
		if !ok {
			return NotRun, why
		}
		because := fmt.Sprintf("p99 of the pool is %.2f times that of one lock, median of rounds from %.2f to %.2f (%s and %s; the article: 0.04 times)", v[1], v[0], v[2], ns(v[3]), ns(v[4]))
		// Rounds that disagree whether it is half as late or less decide nothing.
		switch {
		case v[2] < 0.5:
			return Confirmed, because
		case v[0] >= 0.5:
			return Refuted, because
		}
		return NotTestable, undecided + because
	}},
	{"C11", "time.Now takes 1.8 us where the vDSO cannot be used, 23 ns where it can", func(r *Report) (Verdict, string) {
		a, why, ok := need(r, "clocks", "reading", "time.Now", "one thread")
		if !ok {
			return NotRun, why
		}
		b, why, ok := need(r, "clocks", "system call", "clock.Mono", "one thread")
		if !ok {
			return NotRun, why
		}
		// Without a vDSO time.Now makes two system calls.
		return verdict(2*b > 1000), fmt.Sprintf("%s with the vDSO; two system calls, which it makes without, take %s here", ns(a), ns(2*b))
	}},
	{"C12", "the runtime's monitor wakes up every 20 ms", func(r *Report) (Verdict, string) {
		v, why, ok := needAll(r, key{"monitor", "sleeps a second", "monitor", "idle program"}, key{"monitor", "sleeps a second", "monitor", "one goroutine computing"})
		if !ok {
			return NotRun, why
		}
		idle, busy := v[0], v[1]
		near := func(v float64) bool { return v > 35 && v < 65 }
		return verdict(near(idle) && near(busy)), fmt.Sprintf("%.0f sleeps a second while the program is idle, %.0f while it computes: the monitor doubles its delay from 20 us to 10 ms, and rests when nothing runs (runtime/proc.go)", idle, busy)
	}},

	{"K1", "Go 1.13's timer goroutines cost more context switches than Go 1.14's timers in the netpoller", decideK1},
	{"K2", "a coarse timing wheel still beats Go 1.14's timers", func(r *Report) (Verdict, string) {
		return overPending(r, 0, "wheel", "netpoll114", func(a, b []float64) float64 { return b[len(b)-1] / a[len(a)-1] })
	}},
	{"K3", "with 10 million pending the wheel's cost rises while the standard timer's stays flat", func(r *Report) (Verdict, string) {
		rise := func(v []float64) float64 { return v[len(v)-1] / v[0] }
		return overPending(r, 10_000_000, "wheel", "std", func(a, b []float64) float64 { return rise(a) / rise(b) })
	}},
	{"K4", "since Go 1.16 time.Sleep on Linux is coarser than before", func(r *Report) (Verdict, string) {
		v, why, ok := needAll(r, key{"sleep", "p50", "time.Sleep", "50µs"}, key{"sleep", "p50", "buckets64", "50µs"}, key{"sleep", "p50", "heap1", "50µs"})
		if !ok {
			return NotRun, why
		}
		now, old, older := v[0], v[1], v[2]
		later, _ := r.result("sleep").here("p50", "netpoll114", "50µs")
		because := fmt.Sprintf("a sleep of 50 us takes %s (p50) by time.Sleep of %s; as Go slept before 1.10 %s (heap1), until 1.13 %s (buckets64), of 1.14 %s (netpoll114)",
			ns(now), runtime.Version(), ns(older), ns(old), ns(later))
		// Coarser is more than a clock's noise: of the order of a millisecond's grain.
		switch old = max(old, older); {
		case now > 2*old:
			return Confirmed, because
		case now <= 1.25*old:
			return Refuted, because
		}
		return NotTestable, undecided + because
	}},
	{"K5", "nanosleep is much more precise than time.Sleep at microseconds, equal at 1 ms and above", func(r *Report) (Verdict, string) {
		of := func(who, d string) key { return key{"sleep", "p50", who, d} }
		v, why, ok := needAll(r, of("nanosleep", "50µs"), of("time.Sleep", "50µs"), of("nanosleep", "1ms"), of("time.Sleep", "1ms"),
			of("nanosleep", "50ms"), of("time.Sleep", "50ms"))
		if !ok {
			return NotRun, why
		}
		equal := func(a, b float64) bool { return a < 1.1*b && b < 1.1*a }
		return verdict(2*v[0] < v[1] && equal(v[2], v[3]) && equal(v[4], v[5])),
			fmt.Sprintf("p50 of nanosleep and time.Sleep at 50 us: %s and %s; at 1 ms: %s and %s; at 50 ms: %s and %s", ns(v[0]), ns(v[1]), ns(v[2]), ns(v[3]), ns(v[4]), ns(v[5]))
	}},
	{"K6", "the runtime never gives threads used by nanosleep back", func(r *Report) (Verdict, string) {
		of := func(when, in string) key { return key{"threads", "threads " + when, "nanosleep", in} }
		v, why, ok := needAll(r, of("before", "as they are"), of("during", "as they are"), of("after", "as they are"), of("before", "ending locked"), of("after", "ending locked"))
		if !ok {
			return NotRun, why
		}
		before, during, after, lockedBefore, lockedAfter := v[0], v[1], v[2], v[3], v[4]
		if during < before+sleepers/2 {
			return NotTestable, fmt.Sprintf("%.0f threads were there before, idle: the sleepers took those (%.0f during)", before, during)
		}
		return verdict(after >= during-(during-before)/4), fmt.Sprintf("threads: %.0f before, %.0f during, %.0f after; with goroutines that end locked %.0f before and %.0f after", before, during, after, lockedBefore, lockedAfter)
	}},
	{"K7", "Go falls from the vDSO to system calls silently, and each call then costs 1 to 2 us", func(r *Report) (Verdict, string) {
		b, why, ok := need(r, "clocks", "system call", "clock.Mono", "one thread")
		if !ok {
			return NotRun, why
		}
		return verdict(b >= 1000), fmt.Sprintf("a system call that reads the clock takes %s here. Silently, in part: Go decides at its start; later the vDSO itself makes the system call, when the kernel's clocksource has no mode for it", ns(b))
	}},
	{"K8", "CLOCK_MONOTONIC_RAW is free of slewing, while CLOCK_MONOTONIC can jump", func(r *Report) (Verdict, string) {
		back, n, ok := stepsBack(r, "clock.Mono")
		if !ok {
			return NotRun, `needs the experiments "steps" and "offsets"`
		}
		v, why, ok := needAll(r, key{"offsets", "slew", "CLOCK_MONOTONIC against RAW", "during the run"}, key{"offsets", "slew error", "CLOCK_MONOTONIC against RAW", "during the run"})
		if !ok {
			return NotRun, why
		}
		slew, bound := v[0], v[1]
		return verdict(back > 0), fmt.Sprintf("MONOTONIC stepped back in %.0f of %.0f readings; against RAW it ran %+.0f ppb fast, +-%.0f: it is slewed, and does not jump", back, n, slew, bound)
	}},
	{"K9", "runtime.nanotime reads CLOCK_MONOTONIC and never runs backward, time.Now can", func(r *Report) (Verdict, string) {
		mono, n, ok := stepsBack(r, "time.Now, monotonic")
		if !ok {
			return NotRun, `needs the experiment "steps"`
		}
		return verdict(mono == 0), fmt.Sprintf("the monotonic part stepped back in %.0f of %.0f readings; the wall part steps back when somebody sets the clock, and not otherwise", mono, n)
	}},
	{"K10", "frequency scaling makes the TSC jump or stop unless constant_tsc and nonstop_tsc are set", func(r *Report) (Verdict, string) {
		v, why, ok := needAll(r, key{"offsets", "flag", "constant_tsc", flagCase}, key{"offsets", "flag", "nonstop_tsc", flagCase})
		if !ok {
			if r.result("offsets") == nil {
				return NotRun, why
			}
			return NotTestable, "needs an amd64 CPU without these flags, from before 2008; this machine does not tell of them"
		}
		jumps, ok := jumpsOf(r)
		switch {
		case v[0] == 1 && v[1] == 1:
			return NotTestable, fmt.Sprintf("needs a CPU without these flags, from before 2008: this one has both, and its counter made %.0f jumps", jumps)
		case !ok:
			return NotRun, "the jumps of the counter were not measured"
		}
		return verdict(jumps > 0), fmt.Sprintf("this CPU has constant_tsc: %v, nonstop_tsc: %v, and its counter made %.0f jumps", v[0] == 1, v[1] == 1, jumps)
	}},
	{"K11", "/proc/sys/kernel/tsc shows the TSC policy, and go tool dist test -run=^TestTimeNowStability$ checks a host", decideK11},
	{"K12", "GODEBUG=asyncpreemptoff=1 reduces clock trouble", func(r *Report) (Verdict, string) {
		back, n, ok := stepsBack(r, "time.Now")
		if !ok {
			return NotRun, `needs the experiment "steps"`
		}
		if back > 0 {
			return NotTestable, "time.Now stepped back in this run: run it again with the setting, and compare"
		}
		return Refuted, fmt.Sprintf("there is no trouble to reduce: none of %.0f readings of time.Now stepped back with asynchronous preemption", n)
	}},
}

// overPending decides by the costs of two engines as more timers are pending, up to
// most at least: by a ratio that is more than 1 if the claim holds. It has to be 1.25 to
// tell from noise, either way.
func overPending(r *Report, most int, one, other string, ratio func(a, b []float64) float64) (Verdict, string) {
	x := r.result("wheel")
	if x == nil {
		return NotRun, `needs the experiment "wheel"`
	}
	costs := func(who string) (list []float64, last string) {
		for _, f := range x.Figures {
			if f.What == "start and stop" && f.Who == who && f.Here != nil {
				list, last = append(list, *f.Here), f.Case
			}
		}
		return list, last
	}
	a, last := costs(one)
	b, _ := costs(other)
	if len(a) < 2 || len(a) != len(b) {
		return NotRun, fmt.Sprintf("needs the engines %s and %s", one, other)
	}
	because := fmt.Sprintf("start and stop up to %s: %s %s to %s, %s %s to %s", last, one, ns(a[0]), ns(a[len(a)-1]), other, ns(b[0]), ns(b[len(b)-1]))
	if most > 0 && last != pendingCase(most) {
		return NotRun, fmt.Sprintf("needs %s, which the full form has. Here, %s", pendingCase(most), because)
	}
	switch q := ratio(a, b); {
	case q >= 1.25:
		return Confirmed, because
	case q <= 0.8:
		return Refuted, because
	}
	return NotTestable, undecided + because
}
