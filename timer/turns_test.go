package timer_test

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/detent-go/detent/timer"
)

// tooFast is a way to be due again whenever what was due has been seen to. start
// starts it, and returns a function that waits for a sign of it, and one that ends it.
type tooFast struct {
	name  string
	start func(*timer.Service) (receive, stop func())
}

// signal is a channel that a callback shows its being called on.
type signal chan struct{}

func (c signal) show() {
	select {
	case c <- struct{}{}:
	default:
	}
}

func (c signal) await() { <-c }

var tooFastOnes = []tooFast{
	{"Ticker", func(s *timer.Service) (receive, stop func()) {
		t := s.NewTicker(time.Microsecond)
		return func() { <-t.C }, t.Stop
	}},
	{"AfterFunc", func(s *timer.Service) (receive, stop func()) {
		c, end, ended := make(signal, 1), make(chan struct{}), make(chan struct{})
		var f func()
		f = func() {
			select {
			case <-end:
				close(ended)
				return
			default:
			}
			c.show()
			s.AfterFunc(time.Microsecond, f)
		}
		f()
		return c.await, func() { close(end); <-ended }
	}},
	{"Reset", func(s *timer.Service) (receive, stop func()) {
		c, end, ended := make(signal, 1), make(chan struct{}), make(chan struct{})
		made := make(chan *timer.Timer, 1)
		made <- s.AfterFunc(time.Microsecond, func() {
			t := <-made
			made <- t
			select {
			case <-end:
				close(ended)
				return
			default:
			}
			c.show()
			t.Reset(time.Microsecond)
		})
		return c.await, func() { close(end); <-ended }
	}},
	{"AfterFunc of 0", func(s *timer.Service) (receive, stop func()) {
		c, end, ended := make(signal, 1), make(chan struct{}), make(chan struct{})
		var f func()
		f = func() {
			select {
			case <-end:
				close(ended)
				return
			default:
			}
			c.show()
			s.AfterFunc(0, f)
		}
		f()
		return c.await, func() { close(end); <-ended }
	}},
	{"TickFunc", func(s *timer.Service) (receive, stop func()) {
		c := make(signal, 1)
		iv := s.TickFunc(time.Microsecond, func(timer.Ticked) { c.show() }, nil)
		return c.await, iv.Stop
	}},
	{"Interval", func(s *timer.Service) (receive, stop func()) {
		iv := s.NewInterval(time.Microsecond, nil)
		return func() { <-iv.C(); iv.Take() }, iv.Stop
	}},
	{"Queue", func(s *timer.Service) (receive, stop func()) {
		c, end, ended := make(signal, 1), make(chan struct{}), make(chan struct{})
		var q *timer.Queue[int]
		q = timer.NewQueue(s.WithSlack(0), func([]timer.Expired[int]) {
			select {
			case <-end:
				close(ended)
				return
			default:
			}
			c.show()
			q.Add(time.Microsecond, 1)
		})
		q.Add(time.Microsecond, 1)
		return c.await, func() { close(end); <-ended }
	}},
}

const (
	// turnValues is how many values are received, and mostFires how many timers may
	// be fired until they are: some tens where others have their turn, and tens of
	// thousands where they have not.
	turnValues = 10
	mostFires  = 2000
)

// firesUntil returns how many timers s fires until turnValues values have been
// received.
func firesUntil(s *timer.Service, receive func()) uint64 {
	before := s.Stats().Fired
	for range turnValues {
		receive()
	}
	return s.Stats().Fired - before
}

// TestTurns: timers that are due again as soon as they have fired, as a ticker of
// a microsecond, leave others their turn, those first who wait for them. With one P
// that is a matter of who runs when, and not of time: however busy the machine is.
// With more, the thread of a receiver may be kept from running while timers fire, so
// that it takes several tries.
func TestTurns(t *testing.T) {
	for _, procs := range []int{1, 2} {
		for _, mode := range []timer.CallbackMode{timer.Concurrent, timer.Inline} {
			for _, f := range tooFastOnes {
				t.Run(fmt.Sprintf("%s/mode %d/GOMAXPROCS %d", f.name, mode, procs), func(t *testing.T) {
					defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(procs))
					tries := 1
					if procs > 1 {
						tries = 100
					}
					for try := 1; ; try++ {
						s, err := timer.New(&timer.Options{Shards: 1, Callbacks: mode})
						if err != nil {
							t.Fatal(err)
						}
						receive, stop := f.start(s)
						fires := firesUntil(s, receive)
						stop()
						s.Close()
						if fires <= mostFires {
							return
						}
						if try == tries {
							t.Fatalf("%d timers were fired until %d values had been received", fires, turnValues)
						}
					}
				})
			}
		}
	}
}

// TestLaneTurns: so does a lane, which has a time slice.
func TestLaneTurns(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	for _, f := range tooFastOnes {
		t.Run(f.name, func(t *testing.T) {
			s, err := timer.NewLane(nil)
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			receive, stop := f.start(s)
			defer stop()
			if fires := firesUntil(s, receive); fires > 1_000_000 {
				t.Errorf("%d timers were fired until %d values had been received", fires, turnValues)
			}
		})
	}
}
