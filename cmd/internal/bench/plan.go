package bench

import "time"

// A Plan says how much is measured. Short and Long make the two that users
// get; tests make tiny ones.
type Plan struct {
	Form   string // "short" or "full"
	Rounds int    // how often each comparison is made
	// Window is how long one timed loop of start+stop, Reset or arithmetic runs.
	Window time.Duration
	// Pending are the counts of pending timers to measure beside, ascending;
	// none comes always.
	Pending []int

	ChurnWindow time.Duration
	ChurnTimers int // in the hands of each churning goroutine

	Storm  Burst // due faster than goroutines can be started
	Spread Burst // a load that package time copes with

	Memory     int // pending timers whose bytes are counted
	Idle       int // pending timers while nothing happens
	IdleWindow time.Duration
	Sleeps     int // a round
	PaceWindow time.Duration
	Pace       Burst // PaceRate timers a second with automatic slack
	LoadWindow time.Duration
	LoadPairs  int           // of goroutines that play ping-pong
	LaneLead   time.Duration // from the beginning of a load to what is measured on a lane
}

// A Burst is N timers whose deadlines lie evenly over Window.
type Burst struct {
	N      int
	Window time.Duration
	// Lead is the time from the first start to the first deadline. It holds
	// the starting of all the timers, and it is what their durations are made
	// of: at half a second and more automatic slack is worth having.
	Lead time.Duration
	// Gap is the quiet time after a window.
	Gap time.Duration
	// Fresh takes new processes for each round, for a burst that leaves its
	// process changed. Otherwise all rounds' timers are started at once.
	Fresh bool
}

// PaceRate is how many timers a second the pace scenario keeps due.
const PaceRate = 20_000

// Short is the form that takes about half a minute.
func Short() Plan {
	return Plan{
		Form:    "short",
		Rounds:  5,
		Window:  50 * time.Millisecond,
		Pending: []int{1_000_000},

		ChurnWindow: 200 * time.Millisecond,
		ChurnTimers: 1000,

		Storm:  Burst{N: 200_000, Window: 200 * time.Millisecond, Lead: 750 * time.Millisecond, Gap: 150 * time.Millisecond, Fresh: true},
		Spread: Burst{N: 30_000, Window: 300 * time.Millisecond, Lead: 900 * time.Millisecond, Gap: 50 * time.Millisecond},

		Memory:     250_000,
		Idle:       1_000_000,
		IdleWindow: 400 * time.Millisecond,
		Sleeps:     250,
		PaceWindow: 200 * time.Millisecond,
		Pace:       Burst{N: PaceRate / 5, Window: 200 * time.Millisecond, Lead: 800 * time.Millisecond, Gap: 50 * time.Millisecond},
		LoadWindow: 100 * time.Millisecond,
		LoadPairs:  64,
		LaneLead:   300 * time.Millisecond,
	}
}

// Long is the form behind --full: minutes, and gigabytes.
func Long() Plan {
	p := Short()
	p.Form = "full"
	p.Rounds = 7
	p.Window = 400 * time.Millisecond
	p.Pending = []int{1_000_000, 10_000_000}
	p.ChurnWindow = 2 * time.Second
	p.Storm = Burst{N: 1_000_000, Window: time.Second, Lead: 3 * time.Second, Gap: 500 * time.Millisecond, Fresh: true}
	p.Spread = Burst{N: 1_000_000, Window: 10 * time.Second, Lead: 3 * time.Second, Gap: 500 * time.Millisecond, Fresh: true}
	p.Memory = 1_000_000
	p.IdleWindow = 10 * time.Second
	p.Sleeps = 2000
	p.PaceWindow = 2 * time.Second
	p.Pace = Burst{N: PaceRate * 2, Window: 2 * time.Second, Lead: 1500 * time.Millisecond, Gap: 100 * time.Millisecond}
	p.LoadWindow = 2 * time.Second
	p.LaneLead = 2 * time.Second
	return p
}

// WithRounds is the plan with n rounds; 0 leaves its own number.
func (p Plan) WithRounds(n int) Plan {
	if n > 0 {
		p.Rounds = n
	}
	return p
}
