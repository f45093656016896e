package probe

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/detent-go/detent/clock"
	"github.com/detent-go/detent/internal/tsc"
	"github.com/detent-go/detent/internal/vdso"
)

// ClocksData is the data of the check "clocks": what reading each clock costs this
// process, in steps of what size each advances, and how it is read.
type ClocksData struct {
	Clocks []ClockCost `json:"clocks"`

	// Counter is an unordered reading of the cycle counter; nil where this build
	// has none.
	Counter *Cost `json:"counter,omitempty"`

	// Mapped says whether the kernel has mapped a vDSO into this process, by the
	// auxiliary vector.
	Mapped Served `json:"mapped"`
	// Fallback says why package clock does not call it: "" if it does.
	Fallback string `json:"fallback,omitempty"`
	// Refused says why the system call clock_gettime does not work here.
	Refused string `json:"refused,omitempty"`

	// Runtime says whether the Go runtime's clock readings are served by the vDSO
	// without a system call, as measured.
	Runtime Served `json:"runtime"`
	// Stopped says that the clock stands still: nothing else was measured.
	Stopped bool `json:"stopped,omitempty"`
}

// A ClockCost is of one way to read a clock.
type ClockCost struct {
	// Package and Name say what a Go program calls: "time" and "Now".
	Package string `json:"package,omitempty"`
	Name    string `json:"name"`
	// Clock is the kernel's clock id, or -1 for what reads no single one.
	Clock int32 `json:"clock_id"`
	// How the clock is read: "vDSO", "system call", "counter", "package time",
	// "runtime".
	How string `json:"how"`
	// Why is the reason if it is not read as it should be.
	Why string `json:"why,omitempty"`

	Cost Cost `json:"cost"`
	// Syscall is the cost of the system call clock_gettime for the same clock, nil
	// if that was not measured.
	Syscall *Cost `json:"syscall,omitempty"`
	// Served says whether a reading costs so much less than the system call that
	// it cannot have made one.
	Served Served `json:"served"`

	// Resolution is the step of the clock as the kernel states it, and Step the
	// smallest that was seen: 0 if not known. No step smaller than the time that
	// a reading takes can be seen.
	Resolution time.Duration `json:"resolution_ns"`
	Step       time.Duration `json:"step_ns"`
	// Bound is the largest error against CLOCK_MONOTONIC that the clock has stated;
	// 0 for clocks that are the kernel's own.
	Bound time.Duration `json:"bound_ns,omitempty"`
}

// A Cost is that of a reading, in nanoseconds: the least of all rounds, which is
// what it takes when nothing disturbs it, and the median.
type Cost struct {
	Least   float64 `json:"least_ns"`
	Typical float64 `json:"typical_ns"`
}

func (c costs) cost() Cost { return Cost{c.least(), c.typical()} }

// A clockReading is what is measured of a ClockCost.
type clockReading struct {
	ClockCost
	read    func(n int) int64
	syscall func(n int) int64 // nil: not measured
}

// nanosOf makes a reading of a function that returns nanoseconds.
func nanosOf(read func() int64) func(n int) int64 {
	return func(n int) (sum int64) {
		for range n {
			sum += read()
		}
		return sum
	}
}

func syscallOf(id int32) func(n int) int64 {
	return func(n int) (sum int64) {
		for range n {
			ns, _ := vdso.Syscall(id)
			sum += ns
		}
		return sum
	}
}

// idNone is the Clock of what reads no single clock of the kernel.
const idNone = -1

// clockReadings are those that are timed in turn.
func clockReadings(syscalls bool) []clockReading {
	began := time.Now()
	list := []clockReading{
		{
			ClockCost: ClockCost{Package: "time", Name: "Now", Clock: idNone, How: "runtime"},
			read: func(n int) (sum int64) {
				for range n {
					sum += int64(time.Now().Nanosecond())
				}
				return sum
			},
			// It reads two clocks; the system call is that of the one.
			syscall: syscallOf(int32(clock.Real)),
		},
		{
			ClockCost: ClockCost{Package: "time", Name: "Since", Clock: int32(clock.Mono), How: "runtime"},
			read: func(n int) (sum int64) {
				for range n {
					sum += int64(time.Since(began))
				}
				return sum
			},
			syscall: syscallOf(int32(clock.Mono)),
		},
	}
	for _, c := range clock.Clocks() {
		r := clockReading{
			ClockCost: ClockCost{
				Package: "clock", Name: c.String(), Clock: int32(c),
				How: c.Source().String(), Resolution: c.Resolution(),
			},
			read: func(n int) (sum int64) {
				for range n {
					sum += c.Nanos()
				}
				return sum
			},
			syscall: syscallOf(int32(c)),
		}
		if err := clock.Fallback(); err != nil {
			r.Why = err.Error()
		}
		list = append(list, r)
	}
	for i := range list {
		if !syscalls {
			list[i].syscall = nil
		}
	}
	if !syscalls {
		return list
	}
	for _, c := range []struct {
		name string
		id   int32
	}{{"CLOCK_PROCESS_CPUTIME_ID", 2}, {"CLOCK_THREAD_CPUTIME_ID", 3}} {
		if _, err := vdso.Syscall(c.id); err == nil {
			list = append(list, clockReading{
				ClockCost: ClockCost{Name: c.name, Clock: c.id, How: clock.Syscall.String(), Served: ServedNo},
				read:      syscallOf(c.id),
			})
		}
	}
	return list
}

// settle waits until a TSC knows what it thinks of the counter. On a busy machine the
// first 20 ms of use take longer.
func settle(c *clock.TSC) {
	const patience = 60 * time.Millisecond
	for s := newStopwatch(); errors.Is(c.Health().Err, clock.ErrCalibrating) && s.ns() < int64(patience); {
		time.Sleep(time.Millisecond)
	}
}

// measureTSC measures the clocks that renew themselves by being read: each
// is timed by itself, for in turn with the others they would be read too rarely.
func measureTSC(c *clock.TSC, more func(round int) bool) []clockReading {
	settle(c)
	list := []clockReading{
		{ClockCost: ClockCost{Package: "clock", Name: "TSC.Ordered"}, read: nanosOf(c.Ordered)},
		{ClockCost: ClockCost{Package: "clock", Name: "TSC.Unordered"}, read: nanosOf(c.Unordered)},
		{
			ClockCost: ClockCost{Package: "clock", Name: "Now"},
			read: func(n int) (sum int64) {
				for range n {
					sum += int64(clock.Now().Nanosecond())
				}
				return sum
			},
		},
	}
	var bound time.Duration
	for i := range list {
		r := &list[i]
		t := timeReadings([]reading{{r.Name, r.read}}, func(round int) bool {
			_, b := c.Bounded()
			bound = max(bound, b)
			return more(round)
		})
		r.Cost = t[0].cost()
	}
	list = slices.DeleteFunc(list, unread)
	health := c.Health()
	for i := range list {
		r := &list[i].ClockCost
		r.Clock, r.Served = idNone, ServedUnknown
		if r.How = "counter"; health.Err != nil {
			r.How, r.Why = clock.Mono.Source().String(), health.Err.Error()
			continue
		}
		if r.Bound = bound; r.Name == "Now" {
			r.Bound = nowBound
		}
	}
	return list
}

// unread tells whether a clock has not been read, for want of time.
func unread(r clockReading) bool { return r.Cost == Cost{} }

// nowBound is what package clock promises for Now.
const nowBound = time.Microsecond

// leastRounds are made however long they take.
const leastRounds = 10

// measureClocks takes rounds rounds of all readings, or fewer if they take longer
// than within. It ends early with ctx.
func measureClocks(ctx context.Context, rounds int, within time.Duration) (*ClocksData, error) {
	if err := clockStopped(); err != nil || newStopwatch().grain() == 0 {
		d := &ClocksData{Stopped: true, Runtime: ServedUnknown, Mapped: ServedUnknown}
		if err != nil {
			d.Refused = err.Error()
		}
		return d, err
	}
	d := &ClocksData{Runtime: ServedUnknown, Mapped: ServedUnknown}
	switch _, err := vdso.Image(); {
	case err == nil:
		d.Mapped = ServedYes
	case errors.Is(err, vdso.ErrNoImage):
		d.Mapped = ServedNo
	}
	if err := clock.Fallback(); err != nil {
		d.Fallback = err.Error()
	}
	_, refused := vdso.Syscall(int32(clock.Mono))
	if refused != nil && !errors.Is(refused, errors.ErrUnsupported) {
		d.Refused = refused.Error()
	}

	// The TSC measures the counter in its first 20 ms of use; meanwhile the
	// others are timed.
	var counter clock.TSC
	counter.Health()
	clock.Now()

	list := clockReadings(refused == nil)
	readings, calls := plan(list)
	// Where the instruction is forbidden, it ends the process.
	hasCounter := tsc.Check() == nil
	if hasCounter {
		readings = append(readings, reading{"counter", func(n int) (sum int64) {
			for range n {
				sum += int64(tsc.Unordered())
			}
			return sum
		}})
	}
	s := newStopwatch()
	more := func(round int) bool {
		return round < rounds && (round < leastRounds || s.ns() < int64(within)) && ctx.Err() == nil
	}
	times := timeReadings(readings, more)
	if len(times[0]) == 0 {
		return d, ended(ctx)
	}
	for i := range list {
		c := &list[i].ClockCost
		c.Cost = times[i].cost()
		if at := calls[i]; at >= 0 {
			cost := times[at].cost()
			c.Syscall = &cost
			c.Served = judgeServed(times[at].over(times[i]))
		}
		if c.Served == "" {
			c.Served = ServedUnknown
		}
		if c.Package == "time" && c.Name == "Since" {
			d.Runtime = c.Served
		}
	}
	if hasCounter {
		cost := times[len(readings)-1].cost()
		d.Counter = &cost
	}

	list = append(list, measureTSC(&counter, more)...)
	measureSteps(ctx, list, &counter)
	for _, r := range list {
		d.Clocks = append(d.Clocks, r.ClockCost)
	}
	return d, ended(ctx)
}

// plan lists what is to be timed: list's readings in its order, then the system
// calls, one for each id. calls says which reading is the system call of which of
// list, -1 for none.
func plan(list []clockReading) (readings []reading, calls []int) {
	for _, r := range list {
		readings = append(readings, reading{r.Name, r.read})
	}
	byID := map[int32]int{}
	for _, r := range list {
		id := r.Clock
		if r.Package == "time" && r.Name == "Now" {
			id = int32(clock.Real)
		}
		at, known := byID[id]
		switch {
		case r.syscall == nil:
			at = -1
		case !known:
			at = len(readings)
			byID[id] = at
			readings = append(readings, reading{r.Name + " by system call", r.syscall})
		}
		calls = append(calls, at)
	}
	return readings, calls
}

// coarseStep is longer than the longest tick, of a kernel with 100 Hz.
const coarseStep = 12 * time.Millisecond

// measureSteps looks how the clocks advance.
func measureSteps(ctx context.Context, list []clockReading, counter *clock.TSC) {
	began := time.Now()
	for i := range list {
		if ctx.Err() != nil {
			return
		}
		c := &list[i].ClockCost
		read := func() int64 { return int64(time.Since(began)) }
		switch {
		case c.Package == "time" && c.Name == "Now":
			read = func() int64 { return time.Now().UnixNano() }
		case c.Package == "clock" && c.Clock != idNone:
			read = clock.Clock(c.Clock).Nanos
		case c.Name == "TSC.Ordered":
			read = counter.Ordered
		case c.Name == "TSC.Unordered":
			read = counter.Unordered
		case c.Package == "clock":
			read = func() int64 { return clock.Now().UnixNano() }
		case c.Package == "":
			read = func() int64 { ns, _ := vdso.Syscall(c.Clock); return ns }
		}
		c.Step = time.Duration(stepOf(read, coarseStep))
	}
}
