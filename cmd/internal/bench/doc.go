// Package bench measures package time and detent side by side on the machine
// that it runs on, and reports in which respects detent is better, the same
// or worse. It is what stands behind the command detent bench.
//
// # How it measures
//
// A [Scenario] is one part of the benchmark. It starts worker processes, one
// for each engine, so that neither's heap, goroutines or pending timers are
// the other's burden: a worker serves measurements over its standard input
// and output ([Serve]), and is started by a [Spawner]. In each round the
// scenario has the two workers measure the same thing one after the other,
// and what is compared is always the two figures of one round.
//
// A [Row] holds the figures of all rounds, their medians, and the comparison:
// the median over the rounds, and the narrowest range of rounds that holds the
// true median with 85 % confidence (with up to six rounds: all of them).
// By ratio it is how many times better detent is, and above 1 is better
// whichever direction is good; where a figure may well be zero it is by
// difference, detent less the other. A verdict other than "same within noise"
// needs the whole range on one side and a median that is 5 % off, or off by
// the resolution of what is measured.
//
// Every deadline is checked by CLOCK_MONOTONIC, read before the timer is
// started: a timer that fires before it counts as early.
//
// # What it is not
//
// It says nothing about a program's own mix of timers, and nothing about
// other machines. A virtual machine with busy neighbours, a CPU that throttles
// and other work on the machine move the figures; the range shows by how much.
//
// # JSON
//
// [Report.WriteJSON] writes one object, whose "schema" is "detent.bench/1".
// Fields may be added under that name; a field that changes its meaning or
// goes changes the name.
//
//	schema        "detent.bench/1"
//	machine       cpu_model, cpus, memory_bytes (0: unknown), os, arch, kernel,
//	              clocksource, go_version, gomaxprocs (of the command itself),
//	              waker ("timerfd" or "portable"), waker_reason,
//	              environment (GOGC=..., GOMEMLIMIT=..., GODEBUG=... where set)
//	settings      form ("short" or "full"), rounds, procs (GOMAXPROCS of the
//	              workers), scenarios (those selected)
//	rows          see below
//	missing       scenario, case, reason, failed (true: it should have worked)
//	notes         sentences about what disturbed a measurement
//	summary       better, same_within_noise, worse: the rows with that verdict
//	stopped       why the run ended early; absent if it did not
//	elapsed_s     the run's duration
//
// A row:
//
//	scenario, case, label   what was measured; label is for people
//	metric                  its name, which ends in its unit: _ns, _us, _ms, _s,
//	                        _bytes, _allocs, _per_s, _ratio; a plain count has
//	                        none (early, goroutines_more, waits, wakeups)
//	lower_is_better         the good direction
//	against                 "time"; or "nanosleep", "cyclictest",
//	                        "arithmetic", "zero"
//	median                  two figures, named <side>_<metric>: time_op_ns and
//	                        detent_op_ns
//	rounds                  all figures, under the same names, in order
//	compare                 kind ("ratio" or "difference"), median, low, high,
//	                        pairs (by round). A ratio has no unit and is null
//	                        if infinite: detent's figure is zero, the other's
//	                        not. A difference is in the metric's unit.
//	verdict                 "better", "same within noise" or "worse"
package bench
