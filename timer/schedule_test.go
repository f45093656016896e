package timer

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

// clocks is a monotonic clock and one of the wall that is set now and then.
type clocks struct {
	mono time.Duration
	wall time.Time
}

func (c *clocks) moment() moment { return moment{c.mono, c.wall} }

func (c *clocks) pass(d time.Duration) { c.mono += d; c.wall = c.wall.Add(d) }

func (c *clocks) set(by time.Duration) { c.wall = c.wall.Add(by) }

// noon is a multiple of every period that divides a day.
var noon = time.Date(2026, 3, 29, 12, 0, 0, 0, time.UTC)

// scheduleModel drives a schedule through random waits, late takes and, if it is
// aligned, sets of the clock, and checks what can be said of every tick.
type scheduleModel struct {
	t      testing.TB
	s      schedule
	c      clocks
	script []byte

	immediate bool
	ticks     int64
	last      Ticked
	lastTake  time.Duration
	setBack   bool // the clock, since the last tick
	setAhead  bool
}

func (m *scheduleModel) byte() int64 {
	if len(m.script) == 0 {
		return 0
	}
	b := m.script[0]
	m.script = m.script[1:]
	return int64(b)
}

// around returns a duration up to some periods, often a whole number of them or
// almost.
func (m *scheduleModel) around() time.Duration {
	p := m.s.period
	n := time.Duration(m.byte() % 5)
	if p > math.MaxInt64/8 {
		n = 0
	}
	switch m.byte() % 4 {
	case 0:
		return n*p + time.Duration(m.byte()%3) - 1
	case 1:
		return n * p
	default:
		return n*p + p/256*time.Duration(m.byte())
	}
}

func (m *scheduleModel) run() {
	periods := []time.Duration{
		1, 7, time.Microsecond, 10 * time.Millisecond, time.Second, 15 * time.Second,
		time.Minute, 7 * time.Minute, time.Hour, 24 * time.Hour, 7 * 24 * time.Hour, math.MaxInt64,
	}
	period := periods[m.byte()%int64(len(periods))]
	kind := m.byte()
	m.s.missed = MissedTicks(kind % 3)
	m.s.aligned = kind/3%2 == 1 && m.s.missed != Delay && period < math.MaxInt64
	if m.s.aligned {
		m.s.offset = time.Duration(m.byte()-128) * period / 256
	}
	m.immediate = kind/6%2 == 1
	m.c = clocks{mono: time.Duration(m.byte()), wall: noon.Add(time.Duration(m.byte()) * time.Second)}
	m.s.begin(m.c.moment(), period, m.immediate)
	if first := m.s.wait(m.c.moment()); m.immediate != (first <= 0) {
		m.t.Fatalf("immediately %v: the first tick is %v away", m.immediate, first)
	}
	for len(m.script) > 0 {
		m.step()
	}
}

func (m *scheduleModel) step() {
	if m.s.aligned && m.byte()%8 == 0 {
		by := m.around()
		if m.byte()%2 == 0 {
			by = -by
		}
		m.c.set(by)
		m.setBack = m.setBack || by < 0
		m.setAhead = m.setAhead || by > 0
		if m.byte()%2 == 0 { // Otherwise it is not looked at before some time has passed.
			m.follows()
		}
	}
	wait := m.s.wait(m.c.moment())
	if wait > 1<<61 || m.c.mono > 1<<61 {
		m.script = nil // A century or so.
		return
	}
	if wait > 0 {
		m.notDue()
		if m.byte()%4 == 0 { // woken too soon
			wait = min(wait-1, m.around())
		}
		if wait > 0 {
			m.c.pass(wait)
		}
	}
	if m.byte()%2 == 0 {
		m.c.pass(max(0, m.around())) // The work takes its time.
	}
	if m.s.due(m.c.moment()) {
		m.take()
	}
}

// notDue checks a tick that is still to come.
func (m *scheduleModel) notDue() {
	now := m.c.moment()
	if m.s.due(now) {
		m.t.Fatal("due, and to be waited for")
	}
	if m.s.aligned {
		m.follows()
	}
}

// follows checks that an aligned schedule, when it has been looked at, waits for
// the next time on the grid: but that it does not repeat a tick.
func (m *scheduleModel) follows() {
	now := m.c.moment()
	m.s.look(now)
	if !m.s.nextAt.After(now.wall) || m.immediate && m.ticks == 0 {
		return // It is due, and may be behind; or was, when it began.
	}
	want := m.s.align(now.wall)
	if want.Equal(m.last.At) && m.ticks > 0 {
		want = want.Add(m.s.period)
	}
	if !m.s.nextAt.Equal(want) {
		m.t.Fatalf("at %v the next tick is %v, want %v (period %v, offset %v)", now.wall, m.s.nextAt, want, m.s.period, m.s.offset)
	}
	if w := m.s.wait(now); w > min(want.Sub(now.wall), alignedLook) {
		m.t.Fatalf("is not looked at for %v", w)
	}
}

func (m *scheduleModel) take() {
	now := m.c.moment()
	t := m.s.take(now)
	m.ticks++
	first := m.ticks == 1
	if !m.s.aligned {
		at := m.s.taken
		t.At = noon.Add(at)
		switch gap := t.At.Sub(m.last.At); {
		case now.mono < at:
			m.t.Fatalf("a tick of %v was taken at %v", at, now.mono)
		case t.Missed < 0 || m.s.missed == Burst && t.Missed != 0:
			m.t.Fatalf("missed %d", t.Missed)
		case first:
		case m.s.missed != Delay && gap != time.Duration(t.Missed+1)*m.s.period:
			m.t.Fatalf("a tick %v after the one before, missed %d, period %v", gap, t.Missed, m.s.period)
		case m.s.missed == Delay && now.mono-m.lastTake < m.s.period-min(m.s.period/8, delayTolerance):
			m.t.Fatalf("a tick was taken %v after the one before, period %v", now.mono-m.lastTake, m.s.period)
		}
		if next := m.s.next; m.s.missed == Skip && (next <= now.mono || next-now.mono > m.s.period) {
			m.t.Fatalf("the next tick is %v away, period %v", next-now.mono, m.s.period)
		}
	} else {
		switch gap := t.At.Sub(m.last.At); {
		case t.At.After(now.wall):
			m.t.Fatalf("a tick of %v was taken at %v", t.At, now.wall)
		case !t.At.Equal(m.s.align(t.At).Add(-m.s.period)) && !(first && m.immediate):
			m.t.Fatalf("a tick of %v is not aligned to %v, offset %v", t.At, m.s.period, m.s.offset)
		case first || m.ticks == 2 && m.immediate:
		case gap == 0:
			m.t.Fatalf("the tick of %v came twice", t.At)
		case gap < 0 && !m.setBack:
			m.t.Fatalf("the tick of %v came after that of %v", t.At, m.last.At)
		case !m.setBack && gap != time.Duration(t.Missed+1)*m.s.period:
			m.t.Fatalf("a tick %v after the one before, missed %d, period %v", gap, t.Missed, m.s.period)
		case m.s.missed == Burst && t.Missed != 0 && !m.setAhead:
			m.t.Fatalf("missed %d without a set", t.Missed)
		}
	}
	m.last, m.lastTake = t, now.mono
	m.setBack, m.setAhead = false, false
}

func TestScheduleModel(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	rounds := 30_000
	if testing.Short() {
		rounds = 3000
	}
	ticks := int64(0)
	for range rounds {
		script := make([]byte, 10+rng.IntN(300))
		for k := range script {
			script[k] = byte(rng.Uint32())
		}
		m := &scheduleModel{t: t, script: script}
		m.run()
		ticks += m.ticks
	}
	t.Logf("%d ticks", ticks)
}

func FuzzSchedule(f *testing.F) {
	f.Add([]byte("every fifteen seconds on the quarter"))
	f.Fuzz(func(t *testing.T, script []byte) {
		m := &scheduleModel{t: t, script: script}
		m.run()
	})
}

// What the wall clock's being set does to aligned ticks, case by case.
func TestScheduleSet(t *testing.T) {
	const quarter = 15 * time.Second
	at := func(h, m, s int) time.Time { return time.Date(2026, 3, 29, h, m, s, 0, time.UTC) }
	for _, c := range []struct {
		name   string
		missed MissedTicks
		by     time.Duration // set at 12:00:20, after the tick of 12:00:15
		after  time.Duration // looked at so long after
		ticks  []Ticked      // the next ones
	}{
		{"not", Skip, 0, 10 * time.Second, []Ticked{{at(12, 0, 30), 0}, {at(12, 0, 45), 0}}},
		{"a little back", Skip, -4 * time.Second, 0, []Ticked{{at(12, 0, 30), 0}, {at(12, 0, 45), 0}}},
		{"behind the last tick", Skip, -6 * time.Second, 0, []Ticked{{at(12, 0, 30), 0}, {at(12, 0, 45), 0}}},
		{"an hour back", Skip, -time.Hour, 0, []Ticked{{at(11, 0, 30), 0}, {at(11, 0, 45), 0}}},
		{"an hour back, seen late", Skip, -time.Hour, time.Minute, []Ticked{{at(11, 1, 30), 0}, {at(11, 1, 45), 0}}},
		{"a little ahead", Skip, 4 * time.Second, 0, []Ticked{{at(12, 0, 30), 0}, {at(12, 0, 45), 0}}},
		{"over a tick", Skip, 12 * time.Second, 0, []Ticked{{at(12, 0, 30), 0}, {at(12, 0, 45), 0}}},
		{"an hour ahead", Skip, time.Hour, 0, []Ticked{{at(13, 0, 15), 239}, {at(13, 0, 30), 0}}},
		{"an hour ahead", Burst, time.Hour, 0, []Ticked{{at(13, 0, 15), 239}, {at(13, 0, 30), 0}}},
		{"an hour ahead, seen late", Burst, time.Hour, time.Minute, []Ticked{{at(13, 1, 15), 243}, {at(13, 1, 30), 0}}},
		{"slow", Burst, 0, time.Minute, []Ticked{{at(12, 0, 30), 0}, {at(12, 0, 45), 0}, {at(12, 1, 0), 0}}},
		{"slow", Skip, 0, time.Minute, []Ticked{{at(12, 0, 30), 0}, {at(12, 1, 30), 3}}},
		{"a century ahead", Burst, 100 * 365 * 24 * time.Hour, 0, nil},
		{"a century back", Burst, -100 * 365 * 24 * time.Hour, 0, nil},
	} {
		k := clocks{wall: at(12, 0, 3)}
		s := schedule{missed: c.missed, aligned: true}
		s.begin(k.moment(), quarter, false)
		k.pass(s.wait(k.moment()))
		if got := s.take(k.moment()); got != (Ticked{at(12, 0, 15), 0}) {
			t.Fatalf("the first tick is %v", got)
		}
		k.pass(5 * time.Second)
		s.look(k.moment())
		k.set(c.by)
		k.pass(c.after)
		for _, want := range c.ticks {
			if w := s.wait(k.moment()); w > 0 {
				k.pass(w)
			}
			if got := s.take(k.moment()); !got.At.Equal(want.At) || got.Missed != want.Missed {
				t.Errorf("set %s, missed %d: tick %v, want %v", c.name, c.missed, got, want)
			}
		}
		if w := s.wait(k.moment()); len(c.ticks) == 0 && w > quarter {
			t.Errorf("set %s: the next tick is %v away", c.name, w)
		}
	}
}

// Times of aligned ticks, in the words of the documentation.
func TestScheduleAligned(t *testing.T) {
	india := time.FixedZone("IST", 5*3600+1800)
	for _, c := range []struct {
		now    time.Time
		period time.Duration
		offset time.Duration
		want   time.Time
	}{
		{time.Date(2026, 1, 1, 10, 0, 14, 999, time.UTC), 15 * time.Second, 0, time.Date(2026, 1, 1, 10, 0, 15, 0, time.UTC)},
		{time.Date(2026, 1, 1, 10, 0, 15, 0, time.UTC), 15 * time.Second, 0, time.Date(2026, 1, 1, 10, 0, 30, 0, time.UTC)},
		{time.Date(2026, 1, 1, 10, 20, 0, 0, india), 15 * time.Minute, 0, time.Date(2026, 1, 1, 10, 30, 0, 0, india)},
		{time.Date(2026, 1, 1, 10, 20, 0, 0, india), time.Hour, 0, time.Date(2026, 1, 1, 10, 30, 0, 0, india)},
		{time.Date(2026, 1, 1, 10, 20, 0, 0, india), time.Hour, -30 * time.Minute, time.Date(2026, 1, 1, 11, 0, 0, 0, india)},
		{time.Date(2026, 1, 1, 10, 2, 0, 0, time.UTC), time.Hour, 5 * time.Minute, time.Date(2026, 1, 1, 10, 5, 0, 0, time.UTC)},
		{time.Date(2026, 1, 1, 10, 5, 0, 0, time.UTC), time.Hour, 125 * time.Minute, time.Date(2026, 1, 1, 11, 5, 0, 0, time.UTC)},
		{time.Date(2026, 1, 1, 10, 5, 0, 0, time.UTC), 24 * time.Hour, 0, time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC)},
		{time.Date(2026, 1, 1, 10, 5, 0, 0, time.UTC), 7 * 24 * time.Hour, 0, time.Date(2026, 1, 5, 0, 0, 0, 0, time.UTC)},
	} {
		s := schedule{aligned: true, offset: c.offset}
		s.begin(moment{0, c.now}, c.period, false)
		if !s.nextAt.Equal(c.want) {
			t.Errorf("at %v every %v, offset %v: %v, want %v", c.now, c.period, c.offset, s.nextAt, c.want)
		}
	}
}
