package suite

import "time"

// Time is package time as an engine.
func Time() Engine {
	return Engine{
		Name:       "time",
		Prefix:     "time: ",
		NewTimer:   func(d time.Duration) Timer { return stdTimer{time.NewTimer(d)} },
		AfterFunc:  func(d time.Duration, f func()) Timer { return stdTimer{time.AfterFunc(d, f)} },
		After:      time.After,
		Sleep:      time.Sleep,
		NewTicker:  func(d time.Duration) Ticker { return stdTicker{time.NewTicker(d)} },
		Tick:       time.Tick,
		ZeroTimer:  func() Timer { return stdTimer{new(time.Timer)} },
		ZeroTicker: func() Ticker { return stdTicker{new(time.Ticker)} },
		Heavy:      true,
		Lacks: map[Capability]string{
			NilPanics:    "the nil function is called when the timer fires, which ends the program",
			BoundedStorm: "each function gets a goroutine when it is due",
			ExactResults: "once in ten thousand times Stop or Reset returns true and another goroutine receives the value (Go 1.26)",
			Counted:      "package time has no counters",
		},
	}
}

type stdTimer struct{ *time.Timer }

func (t stdTimer) C() <-chan time.Time { return t.Timer.C }

type stdTicker struct{ *time.Ticker }

func (t stdTicker) C() <-chan time.Time { return t.Ticker.C }
