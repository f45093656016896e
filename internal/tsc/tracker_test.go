package tsc

import (
	"math"
	"math/rand/v2"
	"testing"
)

// A world is a counter and a reference clock of which everything is known.
type world struct {
	rnd *rand.Rand

	hz     float64 // of the counter, by the true time
	ticks  float64 // the counter now
	ns     float64 // the clock now
	rate   float64 // ns that the clock advances in a true ns
	widths float64 // ticks that an undisturbed sample takes
	grain  float64 // the steps in which the counter advances

	tracker *Tracker
	line    Line
	last    int64 // the largest reading of a line so far
}

func newWorld(seed uint64, hz, rate, widths, grain float64) *world {
	w := &world{rnd: rand.New(rand.NewPCG(seed, 0)), hz: hz, rate: rate, widths: widths, grain: grain}
	w.ticks, w.ns = 1e12*w.rnd.Float64(), 1e15*w.rnd.Float64()
	first := w.sample()
	w.pass(20e6)
	w.tracker = NewTracker(first, w.sample())
	return w
}

// counter reads the counter.
func (w *world) counter() uint64 { return uint64(math.Floor(w.ticks/w.grain) * w.grain) }

// pass lets true time pass.
func (w *world) pass(ns float64) {
	w.ticks += ns * w.hz / 1e9
	w.ns += ns * w.rate
}

// sample takes a sample in which the clock is read at any place.
func (w *world) sample() Sample {
	width := w.widths * (1 + w.rnd.Float64()/4)
	if w.rnd.IntN(50) == 0 {
		width *= 20 // interrupted
	}
	place := w.rnd.Float64()
	s := Sample{From: w.counter(), Grain: uint64(math.Ceil(w.grain))}
	w.pass(width * place / w.hz * 1e9)
	s.Ref = int64(w.ns)
	w.pass(width * (1 - place) / w.hz * 1e9)
	s.To = w.counter()
	return s
}

// read reads the line, or the next one when it has ended, and returns how far
// that is off the clock, and the bound. ok is false if time stepped back.
func (w *world) read(t *testing.T) (off float64, bound int64) {
	t.Helper()
	tick := w.counter()
	if w.line.Span == 0 || !w.line.Covers(tick) {
		w.line = w.tracker.Next(w.sample(), 0)
		tick = w.counter()
		if !w.line.Covers(tick) {
			t.Fatalf("a new line %+v does not cover %d", w.line, tick)
		}
	}
	at := w.line.At(tick)
	if at < w.last {
		t.Fatalf("%d after %d", at, w.last)
	}
	w.last = at
	return float64(at) - w.ns, w.line.Bound(at - w.line.Base)
}

// run reads at random moments for some time, and returns the largest distance
// from the clock and how often it was beyond the bound.
func (w *world) run(t *testing.T, ns, pause float64) (worst float64, beyond int) {
	t.Helper()
	for left := ns; left > 0; {
		step := w.rnd.ExpFloat64() * pause
		w.pass(step)
		left -= step
		off, bound := w.read(t)
		worst = max(worst, math.Abs(off))
		if math.Abs(off) > float64(bound) {
			beyond++
		}
	}
	return worst, beyond
}

// counters are of a server's TSC, of a slow one, and of arm64 machines.
var counters = []struct {
	name              string
	hz, widths, grain float64
}{
	{"TSC", 2_599_998_000, 110, 1},
	{"TSC in steps of 10 ns", 2_596_124_000, 110, 26},
	{"slow TSC", 800_000_000, 40, 1},
	{"TSC without a vDSO", 3_000_000_000, 900, 1},
	{"Graviton", 1_050_000_000, 30, 1},
	{"25 MHz", 25_000_000, 2, 1},
	{"19.2 MHz", 19_200_000, 1, 1},
	{"steps of a microsecond", 62_500_000, 10, 62.5},
}

// The bound holds and time never steps back, whatever rate the clock runs at and
// however often it is read, while the rate changes by what adjtimex's frequency
// allows.
func TestTrackerBound(t *testing.T) {
	for _, c := range counters {
		t.Run(c.name, func(t *testing.T) {
			seed := rand.Uint64()
			w := newWorld(seed, c.hz, 1+(rand.Float64()-0.5)*1e-3, c.widths, c.grain)
			rates := []float64{1, 1 + 100e-6, 1 - 100e-6, 1 + 500e-6, 1 - 500e-6, 1 + 499e-6, 1, 1 + 1e-7}
			for round := range 12 {
				for _, pause := range []float64{1e3, 40e3, 700e3, 30e6} {
					if _, beyond := w.run(t, max(20e6, 20*pause), pause); beyond != 0 {
						t.Fatalf("seed %d: beyond the bound %d times", seed, beyond)
					}
				}
				w.rate = rates[round%len(rates)]
			}
			if w.tracker.Excess != 0 || w.tracker.Jumps != 0 {
				t.Errorf("seed %d: Excess %d, Jumps %d", seed, w.tracker.Excess, w.tracker.Jumps)
			}
		})
	}
}

// On a steady clock the rate gets so good that only the samples' width counts.
func TestTrackerSteady(t *testing.T) {
	w := newWorld(1, 2_599_998_000, 1+12.3e-6, 110, 1)
	w.run(t, 300e6, 10e3)
	if got, want := w.tracker.Frequency(), w.hz/w.rate; math.Abs(got/want-1) > 2e-6 {
		t.Errorf("Frequency = %.0f, want %.0f", got, want)
	}
	worst, _ := w.run(t, 100e6, 10e3)
	// An interrupted sample, in which nobody knows the place, is 2,200 ticks
	// wide or more.
	if worst > 20*1.25*110/2/2.6+100 {
		t.Errorf("off by up to %.0f ns", worst)
	}
	if w.tracker.Worst == 0 {
		t.Error("Worst = 0, as if nothing had been looked at")
	}
}

// What no change of rate explains is found, counted, and forgotten: the line
// after the next is on the clock again, and time has not stepped back. (A counter
// that steps back within a line takes the line's time with it.)
func TestTrackerJumps(t *testing.T) {
	jumps := map[string]struct {
		jump  func(*world)
		found bool
	}{
		"clock ahead 1 ms":            {func(w *world) { w.ns += 1e6 }, true},
		"clock ahead an hour":         {func(w *world) { w.ns += 3600e9 }, true},
		"counter ahead 0.2 ms":        {func(w *world) { w.ticks += 0.2e-3 * w.hz }, true},
		"counter ahead a day":         {func(w *world) { w.ticks += 86400 * w.hz }, true},
		"counter back 0.6 ms":         {func(w *world) { w.ticks -= 0.6e-3 * w.hz }, true},
		"counter starts anew":         {func(w *world) { w.ticks = 1000 }, true},
		"both ahead, as after idling": {func(w *world) { w.pass(3600e9) }, false},
	}
	for name, test := range jumps {
		t.Run(name, func(t *testing.T) {
			seed := rand.Uint64()
			w := newWorld(seed, 2_599_998_000, 1, 110, 1)
			w.run(t, 100e6, 5e3)
			test.jump(w)
			before := w.tracker.Jumps
			w.run(t, 5e6, 5e3)
			if found := w.tracker.Jumps != before; found != test.found {
				t.Errorf("seed %d: found %v, want %v", seed, found, test.found)
			}
			if worst, beyond := w.run(t, 100e6, 5e3); beyond != 0 || worst > 2000 {
				t.Errorf("seed %d: off by %.0f ns, beyond the bound %d times", seed, worst, beyond)
			}
		})
	}
}

// Tick adjustments are faster than the bound allows for. They are told, and
// followed.
func TestTrackerFastSlew(t *testing.T) {
	for _, rate := range []float64{1.1, 0.9, 1.05, 0.95} {
		w := newWorld(rand.Uint64(), 2_599_998_000, 1, 110, 1)
		w.run(t, 100e6, 5e3)
		w.rate = rate
		w.run(t, 5e6, 5e3)
		if w.tracker.Excess == 0 || w.tracker.Jumps != 0 {
			t.Errorf("rate %v: Excess %d, Jumps %d", rate, w.tracker.Excess, w.tracker.Jumps)
		}
		if _, beyond := w.run(t, 100e6, 5e3); beyond != 0 {
			t.Errorf("rate %v: beyond the bound %d times after it was seen", rate, beyond)
		}
	}
}

// Two samples may fall into one step of a coarse counter.
func TestTrackerSameStep(t *testing.T) {
	w := newWorld(1, 62_500_000, 1, 10, 62.5)
	at := w.tracker.last
	line := w.tracker.Next(at, 0)
	at.Ref += 300
	next := w.tracker.Next(at, 0)
	if w.tracker.Jumps != 0 || w.tracker.Excess != 0 || next.Mult == 0 || next.Base < line.End() {
		t.Errorf("%+v after %+v: Jumps %d, Excess %d", next, line, w.tracker.Jumps, w.tracker.Excess)
	}
	if hz := w.tracker.Frequency(); math.Abs(hz/62_500_000-1) > 1e-3 {
		t.Errorf("Frequency = %.0f", hz)
	}
}

// A floor, which comes from a clock that was in use before, is kept.
func TestTrackerFloor(t *testing.T) {
	w := newWorld(1, 2_599_998_000, 1, 110, 1)
	s := w.sample()
	floor := s.Ref + 5000
	line := w.tracker.Next(s, floor)
	if line.Base != floor || line.Error < 4900 {
		t.Errorf("line %+v at %d, floor %d", line, s.Ref, floor)
	}
	for range 5 { // each line makes good what it can
		w.pass(span + 1000)
		line = w.tracker.Next(w.sample(), 0)
	}
	if off := float64(line.Base) - w.ns; math.Abs(off) > 1000 {
		t.Errorf("off by %.0f ns", off)
	}
}

// A line that has been cut is followed by one that begins where it ends.
func TestTrackerCut(t *testing.T) {
	w := newWorld(1, 2_599_998_000, 1, 110, 1)
	for _, ns := range []int64{1e9, 400_000, 10_000, 100, 1, 0, -5} {
		whole := w.tracker.Next(w.sample(), 0)
		cut := w.tracker.Cut(ns)
		if cut.Span == 0 || cut.Span > whole.Span || cut.Span > 1 && cut.End()-cut.Base > ns || ns > span && cut != whole {
			t.Errorf("cut to %d ns: %+v of %+v", ns, cut, whole)
		}
		if got := cut.End() - cut.Base; ns > 100 && ns < span && got < ns-2 {
			t.Errorf("cut to %d ns: %d", ns, got)
		}
		w.pass(float64(cut.End() - cut.Base))
		if next := w.tracker.Next(w.sample(), 0); next.Base < cut.End() || next.Base > cut.End()+1000 {
			t.Errorf("cut to %d ns at %d, then %d", ns, cut.End(), next.Base)
		}
		w.pass(span)
	}
}

func TestLine(t *testing.T) {
	// 24 hours at 3 GHz, to the nanosecond.
	l := Line{Start: math.MaxUint64 - 1000, Span: 86400 * 3_000_000_000, Base: 77, Mult: (1<<fraction + 1) / 3}
	if got, want := l.End(), int64(77+86400e9); got < want-1 || got > want {
		t.Errorf("End = %d, want %d", got, want)
	}
	if l.Covers(l.Start-1) || !l.Covers(l.Start) || !l.Covers(l.Start+l.Span-1) || l.Covers(l.Start+l.Span) {
		t.Error("Covers")
	}
	if got := l.At(l.Start + 3000); got != 77+1000 && got != 77+999 {
		t.Errorf("At = %d", got)
	}
}

func BenchmarkScale(b *testing.B) {
	n := uint64(0)
	for b.Loop() {
		n += uint64(Scale(n&0xffff, 108259076988997))
	}
}

func BenchmarkOrdered(b *testing.B) {
	Check()
	for b.Loop() {
		Ordered()
	}
}

func BenchmarkUnordered(b *testing.B) {
	for b.Loop() {
		Unordered()
	}
}

func BenchmarkNext(b *testing.B) {
	w := newWorld(1, 2_599_998_000, 1, 110, 1)
	s := w.sample()
	for b.Loop() {
		s.From, s.To, s.Ref = s.From+1_300_000, s.To+1_300_000, s.Ref+500_000
		w.tracker.Next(s, 0)
	}
}
