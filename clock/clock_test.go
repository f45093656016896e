package clock

import (
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/detent-go/detent/internal/vdso"
)

// monotonic are the clocks that nobody can set.
var monotonic = []Clock{Mono, Raw, Boot, MonoCoarse}

// Whatever a clock is read by, it shows what package time shows, or what
// corresponds to it.
func TestClocksAgainstPackageTime(t *testing.T) {
	check := func(t *testing.T) {
		for _, c := range []Clock{Real, RealCoarse} {
			before := time.Now()
			ns := c.Nanos()
			after := time.Now()
			// A coarse clock is behind by a tick, and the wall clock may be
			// set meanwhile; an hour is neither.
			wall := time.Unix(0, ns)
			if wall.Before(before.Add(-time.Hour)) || wall.After(after.Add(time.Hour)) {
				t.Errorf("%v shows %v between %v and %v", c, wall, before, after)
			}
		}
		if off := time.Duration(TAI.Nanos() - Real.Nanos()).Abs(); off > time.Minute {
			t.Errorf("TAI is %v off Real", off)
		}
		for _, c := range monotonic {
			first := c.Nanos()
			began := time.Now()
			time.Sleep(20 * time.Millisecond)
			inner := time.Since(began)
			passed := c.Since(first)
			outer := time.Since(began)
			// 10 ms for the coarse clock's tick, 10 % for a slewed one.
			if passed < inner*9/10-10*time.Millisecond || c != Boot && passed > (outer+time.Millisecond)*11/10+10*time.Millisecond {
				t.Errorf("%v: %v passed, between %v and %v", c, passed, inner, outer)
			}
		}
	}
	t.Run("vDSO", func(t *testing.T) {
		if vdso.Find() != nil {
			t.Skip(vdso.Find())
		}
		check(t)
	})
	t.Run("fallback", func(t *testing.T) {
		defer vdso.Disable()()
		check(t)
	})
}

// Readings of a clock are in order, on whatever goroutines.
func TestClocksInOrder(t *testing.T) {
	for _, c := range monotonic {
		t.Run(c.String(), func(t *testing.T) { checkOrder(t, 100_000, c.Nanos) })
	}
}

// checkOrder lets several goroutines read a clock n times each, and compares each
// reading with those that had been made before it began.
func checkOrder(t *testing.T, n int, read func() int64) {
	t.Helper()
	var latest atomic.Int64
	latest.Store(read())
	var group sync.WaitGroup
	for range 3 {
		group.Go(func() {
			for range n {
				before := latest.Load()
				ns := read()
				if ns < before {
					t.Errorf("%d, %d ns before a reading that had been made", ns, before-ns)
					return
				}
				for before < ns && !latest.CompareAndSwap(before, ns) {
					before = latest.Load()
				}
			}
		})
	}
	group.Wait()
}

// A process without a vDSO reads the same clocks, and says how.
func TestClocksWithoutVDSO(t *testing.T) {
	had := Fallback()
	with := make(map[Clock]int64)
	for _, c := range Clocks() {
		with[c] = c.Nanos()
		want := VDSO
		if had != nil {
			want = Syscall
			if _, err := vdso.Syscall(int32(c)); err != nil {
				want = PackageTime
			}
		}
		if got := c.Source(); got != want {
			t.Errorf("%v is read by %v, want %v", c, got, want)
		}
	}
	restore := vdso.Disable()
	defer restore()
	if Fallback() == nil {
		t.Error("Fallback = nil without a vDSO")
	}
	for _, c := range Clocks() {
		without := c.Nanos()
		// It is one and the same clock.
		if off := time.Duration(without - with[c]); off < 0 || off > time.Minute {
			t.Errorf("%v: %d by vDSO, then %d", c, with[c], without)
		}
		if got := c.Source(); got == VDSO {
			t.Errorf("%v is read by %v", c, got)
		}
	}
	restore()
	if got := Fallback(); got != had {
		t.Errorf("Fallback = %v, then %v", had, got)
	}
}

func TestClockNames(t *testing.T) {
	var names []string
	for _, c := range Clocks() {
		names = append(names, c.String())
	}
	want := []string{"Mono", "Raw", "Boot", "Real", "TAI", "MonoCoarse", "RealCoarse"}
	if !slices.Equal(names, want) {
		t.Errorf("%q, want %q", names, want)
	}
	if got := Clock(99).String(); got != "Clock(99)" {
		t.Errorf("%q", got)
	}
	for s, want := range map[Source]string{VDSO: "vDSO", Syscall: "system call", PackageTime: "package time", 0: "Source(0)"} {
		if got := s.String(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestInvalidClock(t *testing.T) {
	defer func() {
		if got := recover(); got != "clock: reading of an invalid clock: Clock(99)" {
			t.Errorf("panic %v", got)
		}
	}()
	t.Errorf("Clock(99).Nanos = %d", Clock(99).Nanos())
}

// Where the kernel states a resolution, a coarse clock has the coarser one, and
// steps by it.
func TestResolution(t *testing.T) {
	fine, coarse := Mono.Resolution(), MonoCoarse.Resolution()
	if fine == 0 && coarse == 0 {
		t.Skip("not known on this system")
	}
	if fine <= 0 || coarse < time.Millisecond || coarse > 10*time.Millisecond {
		t.Errorf("Mono %v, MonoCoarse %v", fine, coarse)
	}
}

func TestClocksDoNotAllocate(t *testing.T) {
	var c TSC
	sink := int64(0)
	for name, f := range map[string]func(){
		"Nanos":     func() { sink += Mono.Nanos() },
		"Ordered":   func() { sink += c.Ordered() },
		"Unordered": func() { sink += c.Unordered() },
		"Now":       func() { sink += int64(Now().Nanosecond()) },
	} {
		// Once in a quarter of a second a reading looks at the clocksource
		// file, which allocates.
		if n := testing.AllocsPerRun(100_000, f); n != 0 {
			t.Errorf("%s allocates %v times", name, n)
		}
	}
}
