package probe

import (
	"context"
	"errors"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/detent-go/detent/clock"
)

// A machineOf makes ClocksData of costs in nanoseconds: of the runtime's reading,
// the vDSO's (0: there is none), the coarse clock's, the system call's, and the
// counter's.
type machineOf struct {
	runtime, vdso, coarse, syscall, counter float64
	mapped                                  Served
	resolution, step                        time.Duration
	fallback                                string
	noise                                   float64 // what the median is above the least
}

func (m machineOf) data() *ClocksData {
	cost := func(ns float64) Cost { return Cost{ns, ns * (1 + m.noise)} }
	served := func(ns float64) Served {
		if m.syscall == 0 {
			return ServedUnknown
		}
		return judgeServed(m.syscall/ns, m.syscall/ns)
	}
	d := &ClocksData{Mapped: m.mapped, Fallback: m.fallback, Runtime: served(m.runtime)}
	if m.counter > 0 {
		c := cost(m.counter)
		d.Counter = &c
	}
	how, mono, coarse := clock.VDSO, m.vdso, m.coarse
	if m.vdso == 0 {
		how, mono, coarse = clock.Syscall, m.syscall, m.syscall
	}
	if m.syscall == 0 {
		how = clock.PackageTime
	}
	call := cost(m.syscall)
	d.Clocks = []ClockCost{
		{Package: "time", Name: "Now", How: "runtime", Cost: cost(2*m.runtime - 5), Served: served(2*m.runtime - 5)},
		{Package: "time", Name: "Since", How: "runtime", Cost: cost(m.runtime), Served: d.Runtime},
		{Package: "clock", Name: "Mono", How: how.String(), Cost: cost(mono), Syscall: &call, Served: served(mono), Resolution: m.resolution, Step: m.step},
		{Package: "clock", Name: "MonoCoarse", How: how.String(), Cost: cost(coarse), Syscall: &call, Served: served(coarse)},
	}
	return d
}

func TestJudgeClocks(t *testing.T) {
	for _, test := range []struct {
		name string
		m    machineOf
		id   string // of the only finding; "" for none
		sure Confidence
	}{
		{"tsc in a virtual machine", machineOf{runtime: 20.4, vdso: 17.5, coarse: 3.9, syscall: 122, counter: 7.9, mapped: ServedYes, resolution: 1, step: 16}, "", 0},
		{"the same, and noise", machineOf{runtime: 31, vdso: 22, coarse: 5, syscall: 130, counter: 12, mapped: ServedYes, resolution: 1, step: 16, noise: 3}, "", 0},
		{"kvm-clock", machineOf{runtime: 27, vdso: 24, coarse: 4, syscall: 128, counter: 8, mapped: ServedYes, resolution: 1, step: 20}, "", 0},
		{"Hyper-V's TSC page", machineOf{runtime: 33, vdso: 29, coarse: 5, syscall: 210, counter: 11, mapped: ServedYes, resolution: 1, step: 100}, "", 0},
		{"no mitigations", machineOf{runtime: 22, vdso: 20, coarse: 3, syscall: 52, counter: 8, mapped: ServedYes, resolution: 1, step: 20}, "", 0},
		{"Graviton", machineOf{runtime: 31, vdso: 28, coarse: 5, syscall: 96, counter: 12, mapped: ServedYes, resolution: 1, step: 41}, "", 0},
		{"steps of 19.2 MHz", machineOf{runtime: 60, vdso: 50, coarse: 9, syscall: 190, counter: 30, mapped: ServedYes, resolution: 1, step: 52}, "", 0},
		{"other systems", machineOf{runtime: 40, vdso: 41, step: 100_000}, "", 0},

		{"hpet", machineOf{runtime: 1400, vdso: 1395, coarse: 4, syscall: 1390, counter: 9, mapped: ServedYes, resolution: 1, step: 1400}, "clocks.vdso-falls-back", Certain},
		{"acpi_pm", machineOf{runtime: 3900, vdso: 3880, coarse: 4, syscall: 3870, counter: 9, mapped: ServedYes, resolution: 1, step: 3900}, "clocks.vdso-falls-back", Certain},
		{"xen without a vDSO mode", machineOf{runtime: 178, vdso: 170, coarse: 4, syscall: 165, counter: 9, mapped: ServedYes, resolution: 1, step: 170}, "clocks.vdso-falls-back", Certain},
		{"an architecture that package clock does not know", machineOf{runtime: 178, syscall: 165, mapped: ServedUnknown, resolution: 1, step: 170}, "clocks.vdso-falls-back", Likely},
		{"no vDSO mapped", machineOf{runtime: 135, syscall: 122, counter: 8, mapped: ServedNo, resolution: 1, step: 130, fallback: "vdso: the process has no vDSO"}, "clocks.process-without-vdso", Certain},
		{"no vDSO mapped, and noise", machineOf{runtime: 135, syscall: 122, counter: 8, mapped: ServedNo, resolution: 1, step: 130, noise: 2, fallback: "vdso: the process has no vDSO"}, "clocks.process-without-vdso", Certain},
		{"a runtime that has not found it", machineOf{runtime: 136, vdso: 17.5, coarse: 4, syscall: 122, counter: 8, mapped: ServedYes, resolution: 1, step: 17}, "clocks.process-without-vdso", Certain},
		{"RDTSC trapped", machineOf{runtime: 1120, vdso: 1110, coarse: 4, syscall: 1210, counter: 1060, mapped: ServedYes, resolution: 1, step: 1200}, "clocks.counter-trapped", Certain},
		{"RDTSC trapped, clock not made of it", machineOf{runtime: 30, vdso: 28, coarse: 4, syscall: 150, counter: 320, mapped: ServedYes, resolution: 1, step: 28}, "clocks.counter-trapped", Likely},
		{"version of Go unknown", machineOf{runtime: 31, syscall: 96, counter: 12, mapped: ServedYes, resolution: 1, step: 100, fallback: "signal"}, "clocks.package-clock-falls-back", Certain},
		{"highres=off", machineOf{runtime: 20, vdso: 17, coarse: 4, syscall: 122, counter: 8, mapped: ServedYes, resolution: 4e6, step: 17}, "clocks.low-resolution-timers", Certain},
		{"jiffies in the vDSO", machineOf{runtime: 20, vdso: 17, coarse: 4, syscall: 122, counter: 8, mapped: ServedYes, resolution: 1, step: 4e6}, "clocks.coarse-step", Certain},
	} {
		t.Run(test.name, func(t *testing.T) {
			found := judgeClocks(test.m.data())
			if test.id == "" {
				if len(found) != 0 {
					t.Errorf("a healthy machine has %+v", found)
				}
				return
			}
			if len(found) != 1 || found[0].ID != test.id || found[0].Confidence != test.sure {
				t.Fatalf("found %+v, want %s, %v", found, test.id, test.sure)
			}
			f := found[0]
			if len(f.Evidence) == 0 || f.Title == "" {
				t.Errorf("finding without evidence or title: %+v", f)
			}
		})
	}
	if f := judgeClocks(&ClocksData{Stopped: true}); len(f) != 1 || f[0].ID != "clocks.stopped" {
		t.Errorf("a clock that stands still: %+v", f)
	}
	refused := machineOf{runtime: 20, vdso: 17, coarse: 4, counter: 8, mapped: ServedYes, resolution: 1, step: 17}.data()
	refused.Refused = "operation not permitted"
	if f := judgeClocks(refused); len(f) != 1 || f[0].ID != "clocks.call-refused" || f[0].Severity != Notice {
		t.Errorf("a system call that is refused: %+v", f)
	}
	if f := judgeClocks(&ClocksData{}); len(f) != 0 {
		t.Errorf("of nothing: %+v", f)
	}
}

// Between a clock that is served and one that is not there is room for noise.
func TestJudgeServed(t *testing.T) {
	for _, test := range []struct {
		least, typical float64
		want           Served
	}{
		{6, 5, ServedYes}, {2, 1.3, ServedYes}, {1, 1, ServedNo}, {0.9, 1.5, ServedNo},
		{1.4, 1.4, ServedUnknown}, {6, 1.1, ServedUnknown}, {1, 3, ServedUnknown}, {0, 0, ServedUnknown},
	} {
		if got := judgeServed(test.least, test.typical); got != test.want {
			t.Errorf("%v, %v: %v, want %v", test.least, test.typical, got, test.want)
		}
	}
}

// What this machine's clocks cost is its affair; that every clock has a cost and a
// consistent story is ours.
func TestMeasureClocks(t *testing.T) {
	d, err := measureClocks(context.Background(), 20, time.Minute)
	if err != nil || d.Stopped {
		t.Fatalf("stopped %v, error %v", d.Stopped, err)
	}
	var names []string
	for _, c := range d.Clocks {
		names = append(names, c.Package+"."+c.Name)
		if !(c.Cost.Least > 0) || c.Cost.Typical < c.Cost.Least || math.IsInf(c.Cost.Typical, 0) {
			t.Errorf("%s: cost %+v", c.Name, c.Cost)
		}
		if c.How == "" || c.Served == "" || c.Step < 0 {
			t.Errorf("%+v", c)
		}
		if c.Syscall != nil && !(c.Syscall.Least > 0) {
			t.Errorf("%s: system call %+v", c.Name, c.Syscall)
		}
	}
	for _, want := range []string{"time.Now", "time.Since", "clock.Mono", "clock.RealCoarse", "clock.TSC.Ordered", "clock.Now"} {
		if !slices.Contains(names, want) {
			t.Errorf("no %s among %v", want, names)
		}
	}
	if clock.Fallback() == nil && d.Mapped != ServedYes {
		t.Errorf("package clock has found a vDSO, mapped: %v", d.Mapped)
	}
}

func TestMeasureClocksEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := measureClocks(ctx, 1<<30, time.Hour); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}

// However little time there is, every clock is looked at.
func TestMeasureClocksHurry(t *testing.T) {
	d, err := measureClocks(context.Background(), 1<<30, time.Nanosecond)
	if err != nil || d.clock("clock", "TSC.Ordered").Cost.Least <= 0 || d.clock("time", "Now").Cost.Least <= 0 {
		t.Errorf("%+v, %v", d, err)
	}
}

func TestStepOf(t *testing.T) {
	n := int64(0)
	if got := stepOf(func() int64 { n++; return n / 10 * 7 }, time.Second); got != 7 {
		t.Errorf("step %d, want 7", got)
	}
	// The thread lost its CPU for the whole of the first look.
	n = 0
	coarse := func() int64 {
		switch n++; {
		case n == 1:
			return 0
		case n == 2:
			time.Sleep(25 * time.Millisecond)
		}
		return 60 + n/100*4
	}
	if got := stepOf(coarse, 10*time.Millisecond); got != 4 {
		t.Errorf("a coarse clock on a busy machine: step %d, want 4", got)
	}
	if got := stepOf(func() int64 { return 5 }, time.Millisecond); got != 0 {
		t.Errorf("step %d of a clock that stands still", got)
	}
}

func TestCosts(t *testing.T) {
	c := costs{12, 10, 500, 11}
	if c.least() != 10 || c.typical() != 11 || c[0] != 12 {
		t.Errorf("least %v, typical %v of %v", c.least(), c.typical(), c)
	}
	if l, m := (costs{60, 50, 55, 5000}).over(c); l != 5 || m != 5 {
		t.Errorf("over: %v, %v", l, m)
	}
	if l, m := c.over(nil); l != 0 || m != 0 {
		t.Errorf("over nothing: %v, %v", l, m)
	}
}
