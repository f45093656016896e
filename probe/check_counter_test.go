package probe

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/detent-go/detent/internal/hostfs"
	"github.com/detent-go/detent/internal/tsc"
)

// exchangesOf makes exchanges in which each way takes 100 ticks at the least, and
// some of them more, with a counter that is ahead by so much.
func exchangesOf(rnd *rand.Rand, n int, ahead int64) []tsc.Exchange {
	var xs []tsc.Exchange
	at := uint64(1 << 40)
	for range n {
		there, back := 100+rnd.Uint64N(200), 100+rnd.Uint64N(200)
		if rnd.IntN(20) == 0 {
			back += 1e6 // the thread lost its CPU
		}
		xs = append(xs, tsc.Exchange{Sent: at, Here: at + there + uint64(ahead), Received: at + there + back})
		at += 10_000 + back
	}
	return xs
}

// burstsOf makes bursts a second apart, of counters of 1 GHz that drift by so many
// ticks a second.
func burstsOf(n int, ahead, drift int64) []burst {
	rnd := rand.New(rand.NewPCG(1, 2))
	var bursts []burst
	for i := range n {
		b, ok := burstOf(float64(i), exchangesOf(rnd, 300, ahead+int64(i)*drift), 1)
		if ok {
			bursts = append(bursts, b)
		}
	}
	return bursts
}

func TestOffsetOf(t *testing.T) {
	for _, test := range []struct {
		name         string
		ahead, drift int64
		bursts       int
		apart        bool
		drifting     bool
	}{
		{"in step", 0, 0, 5, false, false},
		{"ahead by less than can be told", 80, 0, 5, false, false},
		{"ahead", 150, 0, 5, true, false},
		{"behind", -5000, 0, 5, true, false},
		{"ahead, seen once", 150, 0, 1, true, false},
		{"drifting unseen", 0, 10, 5, false, false},
		{"drifting", 0, 500, 5, true, true},
		{"drifting apart from a lead", 10_000, -300, 5, true, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			bursts := burstsOf(test.bursts, test.ahead, test.drift)
			p := offsetOf(PairOffset{To: 1}, bursts, 1e9)
			if p.Apart != test.apart || p.Drifting != test.drifting || p.Bursts != test.bursts || p.Exchanges != 300*test.bursts {
				t.Errorf("%+v", p)
			}
			if p.RoundTrip < 200 || p.RoundTrip > 230 || p.MedianTrip < p.RoundTrip || p.MedianTrip > 1000 {
				t.Errorf("round trips %v, %v", p.RoundTrip, p.MedianTrip)
			}
			last := float64(test.ahead + int64(test.bursts-1)*test.drift)
			if test.drift == 0 && (p.Low > last || p.High < last || p.High-p.Low > 240) {
				t.Errorf("bounds %v to %v do not hold %v", p.Low, p.High, last)
			}
			if d := float64(test.drift); p.DriftLow > d || p.DriftHigh < d {
				t.Errorf("bounds of the drift %v to %v do not hold %v", p.DriftLow, p.DriftHigh, d)
			}
			if known := p.Drift != nil; known != (test.bursts >= 3) {
				t.Fatalf("drift is known: %v", known)
			} else if known && math.Abs(*p.Drift-float64(test.drift)) > *p.DriftError+20 {
				t.Errorf("drift %v ± %v, want %v", *p.Drift, *p.DriftError, test.drift)
			}
		})
	}
	if p := offsetOf(PairOffset{From: 3}, nil, 1e9); p.Bursts != 0 || p.From != 3 || p.Apart {
		t.Errorf("of no burst: %+v", p)
	}
}

// A counter that jumps between two exchanges is no offset.
func TestBurstTorn(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 1))
	xs := slices.Concat(exchangesOf(rnd, 20, 0), exchangesOf(rnd, 20, 1e6))
	if b, ok := burstOf(0, xs, 1); ok {
		t.Errorf("%+v", b)
	}
	if _, ok := burstOf(0, nil, 1); ok {
		t.Error("of nothing")
	}
}

// Counters that advance in steps longer than a message takes show nothing of an
// offset of less than a step.
func TestBurstCoarse(t *testing.T) {
	for _, ahead := range []uint64{0, 400, 999} {
		var xs []tsc.Exchange
		for at := uint64(1 << 30); at < 1<<30+100_000; at += 777 {
			step := func(tick uint64) uint64 { return tick / 1000 * 1000 }
			xs = append(xs, tsc.Exchange{Sent: step(at), Here: step(at + 100 + ahead), Received: step(at + 200)})
		}
		if b, ok := burstOf(0, xs, 1000); !ok || b.low > int64(ahead) || b.high < int64(ahead) || b.low > 0 {
			t.Errorf("ahead by %d: %+v, %v", ahead, b, ok)
		}
	}
}

func TestKeep(t *testing.T) {
	var bursts []burst
	for i := range 1000 {
		bursts = keep(bursts, burst{at: float64(i)})
	}
	if len(bursts) > mostBursts || len(bursts) < mostBursts/2 || bursts[0].at != 0 || bursts[len(bursts)-1].at != 999 {
		t.Errorf("%d kept, from %v to %v", len(bursts), bursts[0].at, bursts[len(bursts)-1].at)
	}
	if !slices.IsSortedFunc(bursts, func(a, b burst) int { return int(a.at - b.at) }) {
		t.Error("out of order")
	}
}

func TestMatrix(t *testing.T) {
	d := CounterData{CPUs: placesLike(1, 1, 2), Pairs: []PairOffset{
		{From: 0, To: 1, Bursts: 2, Low: -50, High: 60},
		{From: 0, To: 2, Bursts: 2, Low: 500, High: 600, Apart: true},
		{From: 0, To: 3, Error: "busy"},
		{From: 9, To: 3, Bursts: 1},
	}}
	m := d.Matrix()
	if !slices.Equal(m.CPUs, []int{0, 1, 2, 3}) {
		t.Fatal(m.CPUs)
	}
	for _, test := range []struct {
		i, j int
		want OffsetCell
	}{
		{0, 0, OffsetCell{Known: true}},
		{0, 1, OffsetCell{-50, 60, true, true, false}},
		{1, 0, OffsetCell{-60, 50, true, true, false}},
		{2, 0, OffsetCell{-600, -500, true, true, true}},
		{1, 2, OffsetCell{440, 650, false, true, true}}, // by way of CPU 0
		{2, 1, OffsetCell{-650, -440, false, true, true}},
		{1, 3, OffsetCell{}},
	} {
		if got := m.Cells[test.i][test.j]; got != test.want {
			t.Errorf("%d, %d: %+v, want %+v", test.i, test.j, got, test.want)
		}
	}
	if m := new(CounterData).Matrix(); len(m.Cells) != 0 {
		t.Errorf("of nothing: %+v", m)
	}
}

// samplesOf makes samples a millisecond apart of a counter of 2.6 GHz, in which
// jump[i] ticks happen before the i-th.
func samplesOf(n int, ppm float64, jump map[int]int64) []tsc.Sample {
	rnd := rand.New(rand.NewPCG(3, 4))
	var samples []tsc.Sample
	tick, ref := uint64(1<<50), int64(1e12)
	for i := range n {
		width := 100 + rnd.Uint64N(50)
		if i%17 == 0 {
			width = 20_000 // interrupted
		}
		tick += uint64(jump[i])
		samples = append(samples, tsc.Sample{From: tick, To: tick + width, Ref: ref + int64(float64(width)/2/2.6), Grain: 26})
		step := 500e3 + rnd.Float64()*1e6
		ref += int64(step)
		tick += uint64(step * 2.6 * (1 + ppm*1e-6*float64(i%2)))
	}
	return samples
}

func TestJumpsOf(t *testing.T) {
	for _, test := range []struct {
		name string
		ppm  float64
		jump map[int]int64
		want []time.Duration
	}{
		{"steady", 0, nil, nil},
		{"a clock that is steered", 400, nil, nil},
		{"ahead", 0, map[int]int64{50: 2.6e6}, []time.Duration{time.Millisecond}},
		{"back and forth", 0, map[int]int64{50: -26e6, 60: 26e6}, []time.Duration{-10 * time.Millisecond, 10 * time.Millisecond}},
	} {
		jumps := jumpsOf(samplesOf(100, test.ppm, test.jump))
		if len(jumps) != len(test.want) {
			t.Errorf("%s: %v, want %v", test.name, jumps, test.want)
			continue
		}
		for i, j := range jumps {
			if (j.By - test.want[i]).Abs() > 20*time.Microsecond {
				t.Errorf("%s: %v, want %v", test.name, jumps, test.want)
			}
		}
	}
	if j := jumpsOf(make([]tsc.Sample, 5)); j != nil {
		t.Errorf("of a clock that stands still: %v", j)
	}
}

// The frequency is that of the time between jumps.
func TestFollow(t *testing.T) {
	for name, jump := range map[string]map[int]int64{"steady": nil, "jump": {30: 1 << 40}} {
		samples := samplesOf(200, 0, jump)
		var d CounterData
		d.follow(samples, samples[0], samples[len(samples)-1])
		if math.Abs(d.Frequency/2.6e9-1) > 1e-5 || d.FrequencyError > 1e6 || d.Samples != 200 || d.Over <= 0 || d.Longest > 2*time.Millisecond {
			t.Errorf("%s: %+v", name, d)
		}
		if (len(d.Jumps) == 1) != (jump != nil) || math.Abs(d.Slew) > 1e4 {
			t.Errorf("%s: %d jumps, slew %v", name, len(d.Jumps), d.Slew)
		}
	}
}

func TestJudgeCounter(t *testing.T) {
	healthy := func() *CounterData {
		d := &CounterData{
			Frequency: 2.6e9, FrequencyError: 300, Over: time.Second, Stated: 2.6e9, StatedBy: "CPUID 15h",
			CPUs: placesLike(2, 1, 2), Plan: "all 28 pairs of 8 CPUs", Clocksource: "tsc", Trusted: true, Samples: 900,
		}
		for i := range d.CPUs {
			for j := i + 1; j < len(d.CPUs); j++ {
				p := newPair(d.CPUs, pair{i, j})
				p.Bursts, p.Exchanges, p.RoundTrip, p.MedianTrip, p.Low, p.High = 5, 1000, 200, 260, -101, 99
				d.Pairs = append(d.Pairs, p)
			}
		}
		d.Groups = groupOffsets(d.Pairs)
		return d
	}
	for _, test := range []struct {
		name string
		sick func(d *CounterData)
		want []string
	}{
		{"healthy", func(*CounterData) {}, nil},
		{"wide bounds", func(d *CounterData) { d.Pairs[3].Low, d.Pairs[3].High = -9000, 8000 }, nil},
		{"nothing stated", func(d *CounterData) { d.Stated = 0 }, nil},
		{"an oscillator that is 300 ppm off", func(d *CounterData) { d.Frequency *= 1 + 300e-6 }, nil},
		{"a nominal frequency", func(d *CounterData) { d.Frequency, d.StatedBy = 2.5945e9, "CPUID 16h" }, nil},
		{"busy", func(d *CounterData) { d.Pairs = d.Pairs[:1]; d.Pairs[0] = PairOffset{Error: "busy"}; d.Missed = 27 }, nil},
		{"one CPU", func(d *CounterData) { d.CPUs, d.Pairs, d.Groups = d.CPUs[:1], nil, nil }, nil},

		{"apart", func(d *CounterData) {
			p := &d.Pairs[20]
			p.Low, p.High, p.Apart, p.Confirmed = 1100, 1300, true, 5
		}, []string{"critical certain counter.offset"}},
		{"apart by less than a reading", func(d *CounterData) {
			p := &d.Pairs[20]
			p.Low, p.High, p.Apart, p.Confirmed = 40, 240, true, 5
		}, []string{"warning certain counter.offset"}},
		{"apart in a single burst", func(d *CounterData) {
			p := &d.Pairs[20]
			p.From, p.To, p.Low, p.High, p.Apart, p.Confirmed = 3, 5, -1300, -1100, true, 1
		}, []string{"critical likely counter.offset"}},
		{"apart, and the kernel knows", func(d *CounterData) {
			p := &d.Pairs[20]
			p.Low, p.High, p.Apart, p.Confirmed = 1100, 1300, true, 5
			d.Clocksource, d.Trusted = "hpet", false
		}, []string{"notice certain counter.offset"}},
		{"drifting", func(d *CounterData) {
			p := &d.Pairs[20]
			p.Low, p.High, p.Apart, p.Confirmed, p.DriftLow, p.DriftHigh, p.Drifting = 1100, 1300, true, 3, 400, 600, true
		}, []string{"critical certain counter.offset", "critical certain counter.drift"}},
		{"migrated", func(d *CounterData) { d.Jumps = []Jump{{time.Second, -time.Hour, time.Millisecond}} }, []string{"notice certain counter.jump"}},
		{"jumping", func(d *CounterData) {
			d.Jumps = []Jump{{time.Second, time.Millisecond, time.Millisecond}, {2 * time.Second, -time.Minute, time.Millisecond}}
		}, []string{"warning certain counter.jump"}},
		{"another rate than stated", func(d *CounterData) { d.Frequency = 2.4e9 }, []string{"notice certain counter.rate"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			d := healthy()
			test.sick(d)
			var got []string
			for _, f := range judgeCounter(d) {
				got = append(got, f.Severity.String()+" "+f.Confidence.String()+" "+f.ID)
				for _, text := range []string{f.Title, f.Detail} {
					if strings.Contains(text, "%!") || strings.Contains(text, "NaN") {
						t.Errorf("text %q", text)
					}
				}
				for _, e := range f.Evidence {
					if e.Value == "" || strings.Contains(e.Value, "%!") {
						t.Errorf("evidence %+v", e)
					}
				}
			}
			if strings.Contains(test.name, "single") {
				if f := judgeCounter(d)[0]; !strings.Contains(f.Title, "CPU 3 is about 1200 ns ahead of that of CPU 5") {
					t.Errorf("title %q", f.Title)
				}
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("found %q, want %q", got, test.want)
			}
			if _, err := json.Marshal(d); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestGroupOffsets(t *testing.T) {
	groups := groupOffsets([]PairOffset{
		{Relation: OtherSocket, Bursts: 1, RoundTrip: 400, MedianTrip: 500, Low: -210, High: 190},
		{Relation: SameCore, Bursts: 1, RoundTrip: 40, MedianTrip: 50, Low: -20, High: 20},
		{Relation: SameCore, Bursts: 1, RoundTrip: 30, MedianTrip: 60, Low: 10, High: 40, Apart: true},
		{Relation: SameNode, Error: "busy"},
	})
	want := []OffsetGroup{
		{SameCore, 2, 30, 50, 40, 1},
		{OtherSocket, 1, 400, 500, 210, 0},
	}
	if !slices.Equal(groups, want) {
		t.Errorf("%+v, want %+v", groups, want)
	}
}

func TestBetween(t *testing.T) {
	for _, test := range []struct {
		low, high float64
		want      string
	}{
		{-50, 60, "-50 ns to 60 ns"}, {400, 500, "about 450 ns"}, {40, 100, "40 ns to 100 ns"},
		{1000, 90e3, "1000 ns to 90.0 us"},
	} {
		if got := between(test.low, test.high); got != test.want {
			t.Errorf("%v, %v: %q, want %q", test.low, test.high, got, test.want)
		}
	}
}

// What this machine's counters are is its affair.
func TestMeasureCounter(t *testing.T) {
	d, err := measureCounter(context.Background(), &Env{Root: os.DirFS("/"), Own: true, Effort: Quick})
	if !tsc.Supported {
		if !errors.Is(err, errors.ErrUnsupported) {
			t.Errorf("error %v", err)
		}
		return
	}
	if errors.Is(err, errors.ErrUnsupported) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	if d.Frequency < 1e6 || d.Samples < 2 || d.Over <= 0 || d.FrequencyError <= 0 {
		t.Errorf("%+v", d)
	}
	n := len(d.CPUs)
	if want := n * (n - 1) / 2; n <= 8 && len(d.Pairs)+d.Missed != want {
		t.Errorf("%d pairs and %d missed of %d CPUs", len(d.Pairs), d.Missed, n)
	}
	for _, p := range d.Pairs {
		if p.Bursts == 0 && p.Error == "" || p.Bursts > 0 && (p.Low > p.High || p.High-p.Low < d.Step || p.RoundTrip < 0) {
			t.Errorf("%+v", p)
		}
	}
	if _, err := json.Marshal(d); err != nil {
		t.Error(err)
	}
}

func TestMeasureCounterEnds(t *testing.T) {
	if tsc.Check() != nil {
		t.Skip("no counter")
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := measureCounter(ctx, &Env{Root: os.DirFS("/"), Own: true, Effort: Thorough}); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}

func TestPlacesOf(t *testing.T) {
	got := placesOf(&Env{Root: hpetMachine}, []int{2, 0})
	if want := []hostfs.Place{unknownPlace(0), unknownPlace(2)}; !slices.Equal(got, want) {
		t.Errorf("%v", got)
	}
}
