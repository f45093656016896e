//go:build amd64 || arm64

package trace

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestLogText(t *testing.T) {
	for record, want := range map[string]string{
		"6,123,456789,-;clocksource: Switched to clocksource hpet\n SUBSYSTEM=x\n": "clocksource: Switched to clocksource hpet",
		"4,1,2,c;a;b\n": "a;b",
		"6,1,2,-":       "",
	} {
		if got := logText([]byte(record)); got != want {
			t.Errorf("%q: %q, want %q", record, got, want)
		}
	}
	if !aboutClock("tsc: Marking TSC unstable due to clocksource watchdog") || aboutClock("eth0: link up") {
		t.Error("messages about clocks are not told from others")
	}
}

func TestSlewed(t *testing.T) {
	base := ClockPart{PPM: 10, Tick: 10000}
	for name, c := range map[string]struct {
		was, is ClockPart
		want    bool
	}{
		"nothing":                      {base, base, false},
		"a daemon's correction":        {base, ClockPart{PPM: 10.4, Tick: 10000}, false},
		"another rate":                 {base, ClockPart{PPM: -90, Tick: 10000}, true},
		"another tick":                 {base, ClockPart{PPM: 10, Tick: 9999}, true},
		"an offset to make up":         {base, ClockPart{PPM: 10, Tick: 10000, Offset: -time.Second}, true},
		"a little offset":              {base, ClockPart{PPM: 10, Tick: 10000, Offset: time.Microsecond}, false},
		"the offset, being made up":    {ClockPart{Offset: time.Second}, ClockPart{Offset: time.Second / 2}, false},
		"the offset has been made up ": {ClockPart{Offset: time.Second}, ClockPart{}, false},
	} {
		if got := slewed(c.was, c.is); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// TestClockChanges changes the machine's clock in each way, and puts it back.
func TestClockChanges(t *testing.T) {
	if os.Getenv("DETENT_SICK") != "1" {
		t.Skip("changes the machine's clock: only with DETENT_SICK=1")
	}
	if os.Getuid() != 0 {
		t.Skip("needs root")
	}
	tracer, err := Start(context.Background(), &Options{Features: WatchClockChanges, Interval: 50 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer tracer.Close()
	next := func(kind EventKind, holds func(Event) bool) Event {
		t.Helper()
		for {
			select {
			case e := <-tracer.Events():
				if e.Kind == kind && holds(e) {
					t.Log(e)
					return e
				}
			case <-time.After(30 * time.Second):
				t.Fatalf("no event %s", kind)
			}
		}
	}
	const step = 5 * time.Millisecond
	for _, d := range []time.Duration{step, -step} {
		x := unix.Timex{Modes: unix.ADJ_SETOFFSET | unix.ADJ_NANO, Time: unix.Timeval{Sec: int64(d) / 1e9, Usec: int64(d) % 1e9}}
		if x.Time.Usec < 0 {
			x.Time.Sec--
			x.Time.Usec += 1e9
		}
		if _, err := unix.Adjtimex(&x); err != nil {
			t.Fatal(err)
		}
		e := next(EventStep, func(e Event) bool { return e.Step > step/2 || e.Step < -step/2 })
		if diff := e.Step - d; diff > step/10 || diff < -step/10 {
			t.Errorf("a step of %v was told as %v", d, e.Step)
		}
	}
	var was unix.Timex
	if _, err := unix.Adjtimex(&was); err != nil {
		t.Fatal(err)
	}
	defer unix.Adjtimex(&unix.Timex{Modes: unix.ADJ_FREQUENCY, Freq: was.Freq})
	if _, err := unix.Adjtimex(&unix.Timex{Modes: unix.ADJ_FREQUENCY, Freq: was.Freq + 50<<16}); err != nil {
		t.Fatal(err)
	}
	if e := next(EventSlew, func(Event) bool { return true }); e.Is.PPM-e.Was.PPM < 49.9 || e.Is.PPM-e.Was.PPM > 50.1 {
		t.Errorf("a change by 50 ppm was told as %+v, %+v", e.Was, e.Is)
	}
	changeClocksource(t, func(from, to string) {
		e := next(EventClocksource, func(Event) bool { return true })
		if e.Was.Clocksource != from || e.Is.Clocksource != to {
			t.Errorf("from %s to %s was told as %v", from, to, e)
		}
	})
}

// changeClocksource switches to another clocksource and back, where there is one.
func changeClocksource(t *testing.T, told func(from, to string)) {
	const dir = "/sys/devices/system/clocksource/clocksource0/"
	b, err := os.ReadFile(dir + "available_clocksource")
	if err != nil {
		t.Log(err)
		return
	}
	c, err := os.ReadFile(dir + "current_clocksource")
	if err != nil {
		t.Log(err)
		return
	}
	current := strings.TrimSpace(string(c))
	for _, other := range strings.Fields(string(b)) {
		if other == current {
			continue
		}
		defer func() {
			if err := os.WriteFile(dir+"current_clocksource", []byte(current), 0); err != nil {
				t.Error("the clocksource has not been put back:", err)
			}
		}()
		if err := os.WriteFile(dir+"current_clocksource", []byte(other), 0); errors.Is(err, os.ErrPermission) {
			t.Log(err)
			return
		} else if err != nil {
			t.Error(err)
			return
		}
		told(current, other)
		return
	}
}

// TestClockWithoutPrivilege: watching the clock alone needs nobody's leave.
func TestClockWithoutPrivilege(t *testing.T) {
	tracer, err := Start(context.Background(), &Options{Features: WatchClockChanges})
	if err != nil {
		t.Fatal(err)
	}
	s, err := tracer.Snapshot()
	if err != nil || len(s.Processes) != 0 || s.Clocksource == "" {
		t.Errorf("%+v, %v", s, err)
	}
	if err := tracer.Close(); err != nil {
		t.Error(err)
	}
}
