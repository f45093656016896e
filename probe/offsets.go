package probe

import (
	"cmp"
	"math"
	"slices"

	"github.com/detent-go/detent/internal/hostfs"
	"github.com/detent-go/detent/internal/tsc"
)

// A PairOffset is how far the counter of CPU To is ahead of that of CPU From, in
// nanoseconds: no less than Low and no more than High. The bounds are hard: they
// follow from messages having arrived after they were sent. Between them nobody can
// tell, because nobody knows how much of a round trip was the way there. An offset
// whose bounds include zero is not distinguishable from none.
type PairOffset struct {
	From     int      `json:"from"`
	To       int      `json:"to"`
	Relation Relation `json:"relation"`

	// Exchanges of messages were made in Bursts, spread over the check's time.
	Exchanges int `json:"exchanges"`
	Bursts    int `json:"bursts"`
	// Error says why there was none; everything below is then 0.
	Error string `json:"error,omitempty"`

	// RoundTrip is the least time that a message and its answer took, MedianTrip
	// the median.
	RoundTrip  float64 `json:"round_trip_ns"`
	MedianTrip float64 `json:"median_trip_ns"`

	Low  float64 `json:"low_ns"`
	High float64 `json:"high_ns"`
	// Apart says that the bounds exclude zero, in Confirmed of the bursts.
	Apart     bool `json:"apart"`
	Confirmed int  `json:"confirmed"`

	// Drift is how fast the offset grows, in nanoseconds a second, by regression of
	// the middles of each burst's best exchange; DriftError is three standard
	// errors. It is not known by fewer than three bursts. DriftLow and DriftHigh
	// are hard bounds, and Drifting says that they exclude zero.
	Drift      *float64 `json:"drift_ns_per_s,omitempty"`
	DriftError *float64 `json:"drift_error,omitempty"`
	DriftLow   float64  `json:"drift_low"`
	DriftHigh  float64  `json:"drift_high"`
	Drifting   bool     `json:"drifting"`
}

// Largest returns the largest distance from zero that the offset may have, in
// nanoseconds.
func (p *PairOffset) Largest() float64 { return max(p.High, -p.Low, 0) }

// Certain returns the distance from zero that the offset has at least.
func (p *PairOffset) Certain() float64 { return max(p.Low, -p.High, 0) }

// A burst is what exchanges in quick succession tell, in ticks.
type burst struct {
	at        float64 // when, in seconds
	n         int
	low, high int64
	least     uint64 // round trip
	median    uint64
	middle    float64 // of the exchange with the least round trip
}

// burstOf sums up exchanges. Counters that advance in steps of grain ticks may be
// apart by one step without any reading showing it, which is allowed for. It
// reports false for exchanges that contradict each other: a counter has jumped
// between them.
func burstOf(at float64, xs []tsc.Exchange, grain uint64) (burst, bool) {
	b := burst{at: at, n: len(xs), low: math.MinInt64, high: math.MaxInt64, least: math.MaxUint64}
	trips := make([]int64, 0, len(xs))
	for _, x := range xs {
		trip := x.Received - x.Sent
		b.low, b.high = max(b.low, int64(x.Here-x.Received)), min(b.high, int64(x.Here-x.Sent))
		if trip < b.least {
			b.least = trip
			b.middle = float64(int64(x.Here-x.Sent)) - float64(trip)/2
		}
		trips = append(trips, int64(trip))
	}
	if len(xs) == 0 {
		return b, false
	}
	b.low, b.high = b.low-int64(grain), b.high+int64(grain)
	b.median = uint64(median(trips))
	return b, b.low <= b.high
}

// offsetOf concludes what bursts tell of a pair. Their low and high are in ticks of
// a counter with a frequency of hz.
func offsetOf(p PairOffset, bursts []burst, hz float64) PairOffset {
	if len(bursts) == 0 || hz <= 0 {
		return p
	}
	ns := func(ticks float64) float64 { return ticks / hz * 1e9 }
	low, high, least := int64(math.MinInt64), int64(math.MaxInt64), uint64(math.MaxUint64)
	var medians []int64
	var at, middles []float64
	for _, b := range bursts {
		p.Exchanges += b.n
		low, high, least = max(low, b.low), min(high, b.high), min(least, b.least)
		medians = append(medians, int64(b.median))
		at, middles = append(at, b.at), append(middles, ns(b.middle))
		if b.low > 0 || b.high < 0 {
			p.Confirmed++
		}
	}
	if low > high {
		// The offset moves: it is as the last burst says.
		last := bursts[len(bursts)-1]
		low, high = last.low, last.high
	}
	p.Bursts = len(bursts)
	p.RoundTrip, p.MedianTrip = ns(float64(least)), ns(float64(median(medians)))
	p.Low, p.High = ns(float64(low)), ns(float64(high))
	p.Apart = p.Confirmed > 0
	if s := regress(at, middles); !math.IsInf(s.err, 1) {
		p.Drift, p.DriftError = &s.value, &s.err
	}
	p.DriftLow, p.DriftHigh = driftBounds(bursts, ns)
	p.Drifting = p.DriftLow > 0 || p.DriftHigh < 0
	return p
}

// driftBounds returns between what the drift must lie for the offset to have been
// within the bounds of every burst; in nanoseconds a second.
func driftBounds(bursts []burst, ns func(float64) float64) (low, high float64) {
	low, high = math.Inf(-1), math.Inf(1)
	for i, a := range bursts {
		for _, b := range bursts[i+1:] {
			if t := b.at - a.at; t > 0 {
				low = max(low, ns(float64(b.low-a.high))/t)
				high = min(high, ns(float64(b.high-a.low))/t)
			}
		}
	}
	if math.IsInf(low, 0) || low > high {
		return 0, 0 // not known, or not a straight line
	}
	return low, high
}

// An OffsetGroup sums up the pairs of one relation.
type OffsetGroup struct {
	Relation Relation `json:"relation"`
	Pairs    int      `json:"pairs"`
	// RoundTrip and MedianTrip are the least and the median of the pairs'.
	RoundTrip  float64 `json:"round_trip_ns"`
	MedianTrip float64 `json:"median_trip_ns"`
	// Bound is the largest offset that any of them may have.
	Bound float64 `json:"bound_ns"`
	Apart int     `json:"apart"` // pairs
}

// groupOffsets sums up pairs by relation, the nearest first.
func groupOffsets(pairs []PairOffset) []OffsetGroup {
	var groups []OffsetGroup
	for _, r := range relations {
		g := OffsetGroup{Relation: r, RoundTrip: math.Inf(1)}
		var trips []float64
		for i := range pairs {
			p := &pairs[i]
			if p.Relation != r || p.Bursts == 0 {
				continue
			}
			g.Pairs++
			g.RoundTrip = min(g.RoundTrip, p.RoundTrip)
			g.Bound = max(g.Bound, p.Largest())
			trips = append(trips, p.MedianTrip)
			if p.Apart {
				g.Apart++
			}
		}
		if g.Pairs > 0 {
			g.MedianTrip = median(trips)
			groups = append(groups, g)
		}
	}
	return groups
}

// An OffsetMatrix has a cell for every two CPUs: Cells[i][j] is about the counter of
// CPUs[j] as seen from CPUs[i].
type OffsetMatrix struct {
	CPUs  []int
	Cells [][]OffsetCell
}

// An OffsetCell has the bounds of an offset, in nanoseconds.
type OffsetCell struct {
	Low, High float64
	// Measured says that the two CPUs have exchanged messages. Otherwise, if Known,
	// the bounds follow from what both have exchanged with the first CPU.
	Measured, Known bool
	Apart           bool // the bounds exclude zero
}

// Matrix arranges the pairs.
func (d *CounterData) Matrix() OffsetMatrix {
	m := OffsetMatrix{}
	at := map[int]int{}
	for _, place := range d.CPUs {
		at[place.CPU] = len(m.CPUs)
		m.CPUs = append(m.CPUs, place.CPU)
	}
	m.Cells = make([][]OffsetCell, len(m.CPUs))
	for i := range m.Cells {
		m.Cells[i] = make([]OffsetCell, len(m.CPUs))
		m.Cells[i][i].Known = true
	}
	for i := range d.Pairs {
		p := &d.Pairs[i]
		from, ok1 := at[p.From]
		to, ok2 := at[p.To]
		if p.Bursts == 0 || !ok1 || !ok2 {
			continue
		}
		m.Cells[from][to] = OffsetCell{Low: p.Low, High: p.High, Measured: true, Known: true, Apart: p.Apart}
		m.Cells[to][from] = OffsetCell{Low: -p.High, High: -p.Low, Measured: true, Known: true, Apart: p.Apart}
	}
	if len(m.CPUs) == 0 {
		return m
	}
	for i := range m.Cells {
		for j := range m.Cells {
			a, b := m.Cells[0][i], m.Cells[0][j]
			if c := &m.Cells[i][j]; !c.Known && a.Known && b.Known {
				*c = OffsetCell{Low: b.Low - a.High, High: b.High - a.Low, Known: true}
				c.Apart = c.Low > 0 || c.High < 0
			}
		}
	}
	return m
}

// worstOffset returns the pair that is furthest apart for certain; nil if none is.
func worstOffset(pairs []PairOffset) *PairOffset {
	var apart []*PairOffset
	for i := range pairs {
		if pairs[i].Apart {
			apart = append(apart, &pairs[i])
		}
	}
	if len(apart) == 0 {
		return nil
	}
	return slices.MaxFunc(apart, func(a, b *PairOffset) int { return cmp.Compare(a.Certain(), b.Certain()) })
}

// newPair is one of which nothing is known yet.
func newPair(places []hostfs.Place, p pair) PairOffset {
	a, b := places[p.from], places[p.to]
	return PairOffset{From: a.CPU, To: b.CPU, Relation: relationOf(a, b)}
}
