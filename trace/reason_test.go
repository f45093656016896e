package trace

import (
	"testing"

	"github.com/detent-go/detent/trace/internal/proc"
)

func TestJudge(t *testing.T) {
	with := map[uint64]uint64{proc.SysinfoEHDR: 0x7f0000000000, 6: 4096}
	without := map[uint64]uint64{6: 4096}
	goClock := Frame{Func: "runtime.nanotime1.abi0", Object: "/bin/program"}
	libc := Frame{Func: "clock_gettime", Object: "/lib/libc.so.6"}
	xsys := Frame{Func: "internal/runtime/syscall/linux.Syscall6", Object: "/bin/program"}
	vdso := Frame{Func: "__vdso_clock_gettime", Object: "[vdso]"}
	fallsBack := func(clocks ...int) map[int]bool {
		m := make(map[int]bool)
		for _, c := range clocks {
			m[c] = true
		}
		return m
	}
	for name, c := range map[string]struct {
		bypass
		want Reason
	}{
		"a thread's CPU time":           {bypass{clock: 3, caller: xsys, process: &proc.Process{Aux: with, Found: with}}, ReasonClock},
		"another process's CPU time":    {bypass{clock: -6, caller: libc}, ReasonClock},
		"an alarm clock":                {bypass{clock: 9}, ReasonClock},
		"hpet":                          {bypass{clock: 1, caller: vdso, fallsBackFor: fallsBack(1), process: &proc.Process{Aux: with}}, ReasonClocksource},
		"hpet, the raw clock":           {bypass{clock: 4, caller: vdso, fallsBackFor: fallsBack(0, 4)}, ReasonClocksource},
		"an old kernel's raw clock":     {bypass{clock: 4, caller: vdso, fallsBackFor: fallsBack(4)}, ReasonOldVDSO},
		"vdso=0":                        {bypass{clock: 1, caller: goClock, process: &proc.Process{Aux: without, Found: without}}, ReasonNoVDSO},
		"vdso=0, the stack unreadable":  {bypass{clock: 1, caller: libc, process: &proc.Process{Aux: without}}, ReasonNoVDSO},
		"a tracer's doing":              {bypass{clock: 1, caller: goClock, process: &proc.Process{Aux: with, Found: without}}, ReasonHidden},
		"a tracer's doing, in C":        {bypass{clock: 0, caller: libc, process: &proc.Process{Aux: with, Found: without}}, ReasonHidden},
		"a vDSO of another version":     {bypass{clock: 1, caller: goClock, process: &proc.Process{Aux: with, Found: with}}, ReasonUnusable},
		"Go, the stack unreadable":      {bypass{clock: 1, caller: goClock, process: &proc.Process{Aux: with}}, ReasonUnknown},
		"x/sys":                         {bypass{clock: 1, caller: xsys, process: &proc.Process{Aux: with, Found: with}}, ReasonDirect},
		"x/sys, the stack unreadable":   {bypass{clock: 1, caller: xsys, process: &proc.Process{Aux: with}}, ReasonDirect},
		"no symbols":                    {bypass{clock: 1, caller: Frame{Object: "/bin/stripped"}, process: &proc.Process{Aux: with, Found: with}}, ReasonUnknown},
		"ended before it was looked at": {bypass{clock: 1}, ReasonUnknown},
	} {
		got, evidence := c.judge()
		if got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
		if got != ReasonUnknown && len(evidence) == 0 {
			t.Errorf("%s: %s without evidence", name, got)
		}
		for _, e := range evidence {
			if e.Name == "" || e.Value == "" || e.Source == "" {
				t.Errorf("%s: incomplete evidence %+v", name, e)
			}
		}
	}
}

func TestClockName(t *testing.T) {
	for id, want := range map[int]string{
		0: "realtime", 1: "monotonic", 3: "thread-cpu", 11: "tai", 12: "unknown", 17: "auxiliary", 24: "unknown",
		-8: "another process's cpu", -6: "another process's cpu", -2: "another thread's cpu", -5: "device", -1: "device",
	} {
		if got := ClockName(id); got != want {
			t.Errorf("clock %d is %q, want %q", id, got, want)
		}
	}
}

func TestParseFeatures(t *testing.T) {
	for s, want := range map[string]Features{
		"lateness": WatchLateness, "timers,clock-calls": WatchTimers | WatchClockCalls,
		"+profile": DefaultFeatures | WatchProfile,
	} {
		got, err := ParseFeatures(s)
		if err != nil || got != want {
			t.Errorf("%q: %v, %v", s, got, err)
		}
	}
	for _, s := range []string{"", "everything", "lateness,", "+"} {
		if f, err := ParseFeatures(s); err == nil {
			t.Errorf("%q: %v", s, f)
		}
	}
	all, err := ParseFeatures(DefaultFeatures.String())
	if err != nil || all != DefaultFeatures {
		t.Errorf("%v, %v", all, err)
	}
}
