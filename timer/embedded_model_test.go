package timer

import (
	"math/rand/v2"
	"testing"
	"time"
)

// embeddedModel is a set of embedded timers on virtual time, and what they
// should do.
type embeddedModel struct {
	t      testing.TB
	svc    *Service
	script []byte
	timers [5]embeddedUser
	now    func() int64
	nested bool

	stopped, reset, fired uint64
}

// embeddedUser is a struct with a timer, and the model of that.
type embeddedUser struct {
	m        *embeddedModel
	timer    Embedded
	pending  bool
	deadline int64
	slack    int64 // by how much it may be later
}

// Expire checks that the timer was to fire, and now.
func (u *embeddedUser) Expire(t *Embedded) {
	m := u.m
	if t != &u.timer {
		m.t.Fatal("Expire was called with another timer")
	}
	switch now := m.now(); {
	case !u.pending:
		m.t.Fatal("a timer fired that is not pending")
	case now < u.deadline || now > u.deadline+u.slack:
		m.t.Fatalf("fired at %d, want %d and at most %d later", now, u.deadline, u.slack)
	}
	u.pending = false
	m.fired++
	if !m.nested {
		m.nested = true
		for range m.byte() % 3 {
			m.op()
		}
		m.nested = false
	}
}

func (m *embeddedModel) byte() int64 {
	if len(m.script) == 0 {
		return 0
	}
	b := m.script[0]
	m.script = m.script[1:]
	return int64(b)
}

// duration is short or long, and often one that another timer has.
func (m *embeddedModel) duration() time.Duration {
	switch b := m.byte(); b % 5 {
	case 0:
		return time.Duration(m.byte()) - 10
	case 1:
		return time.Duration(m.byte()) * time.Microsecond
	case 2:
		return time.Duration(m.byte()+1) * time.Millisecond
	case 3:
		return time.Duration(m.byte()+1) << (b % 40)
	default:
		return time.Duration(m.timers[b%int64(len(m.timers))].deadline - m.now())
	}
}

// op does one thing to one timer and compares the results.
func (m *embeddedModel) op() {
	u := &m.timers[m.byte()%int64(len(m.timers))]
	if m.byte()%3 == 0 {
		if u.timer.Stop() != u.pending {
			m.t.Fatalf("Stop = %v", !u.pending)
		}
		if u.pending {
			m.stopped++
		}
		u.pending = false
		return
	}
	d := m.duration()
	was := u.pending
	// An Expire may be called before Reset has returned.
	u.pending, u.deadline = true, deadline(d, m.now())
	u.slack = int64(m.svc.slackOf(max(d, 0)))
	if was {
		m.reset++
	}
	if got := u.timer.Reset(d); got != was {
		m.t.Fatalf("Reset = %v", got)
	}
}

// slackOf returns by how much a timer of duration d may be late.
func (s *Service) slackOf(d time.Duration) time.Duration {
	if s.auto {
		// Rounded up to a tick, where it is filed in the wheel.
		return d>>10 + 1
	}
	return 0
}

func runEmbeddedModel(t testing.TB, slack time.Duration, script []byte) {
	svc, g := manualService(slack, 2)
	m := &embeddedModel{t: t, svc: svc, script: script}
	m.now = func() int64 { now, _ := g.Now(); return now }
	for k := range m.timers {
		m.timers[k].m = m
		m.timers[k].timer.Init(svc, &m.timers[k])
	}
	for len(m.script) > 0 {
		for range 1 + m.byte()%8 {
			m.op()
		}
		g.Advance(m.now() + int64(max(m.duration(), 0)))
		for k := range m.timers {
			if u := &m.timers[k]; u.pending && u.deadline+u.slack < m.now() {
				t.Fatalf("a timer of %d, slack %d, has not fired at %d", u.deadline, u.slack, m.now())
			}
		}
	}
	pending := uint64(0)
	for k := range m.timers {
		if m.timers[k].pending {
			pending++
		}
	}
	st := svc.Stats()
	if st.Fired != m.fired || st.Stopped != m.stopped || st.Reset != m.reset || st.Pending != pending {
		t.Fatalf("Stats: %d fired, %d stopped, %d reset, %d pending; want %d, %d, %d, %d",
			st.Fired, st.Stopped, st.Reset, st.Pending, m.fired, m.stopped, m.reset, pending)
	}
}

func TestEmbeddedModel(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	rounds := 3000
	if testing.Short() {
		rounds = 300
	}
	for range rounds {
		script := make([]byte, 20+rng.IntN(300))
		for k := range script {
			script[k] = byte(rng.Uint32())
		}
		runEmbeddedModel(t, AutoSlack, script)
		runEmbeddedModel(t, 0, script)
	}
}

func FuzzEmbedded(f *testing.F) {
	f.Add([]byte("a timer is a field of its user's struct"))
	f.Fuzz(func(t *testing.T, script []byte) {
		runEmbeddedModel(t, AutoSlack, script)
		runEmbeddedModel(t, 0, script)
	})
}
