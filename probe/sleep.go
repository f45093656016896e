package probe

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/detent-go/detent/timer"
)

// SleepData is the data of the check "sleep", and what MeasureSleeps returns.
type SleepData struct {
	// Requested is what each sleep was asked for.
	Requested time.Duration `json:"requested_ns"`
	Ways      []SleepWay    `json:"ways"`
}

// A SleepWay is one way to sleep, under one load.
type SleepWay struct {
	Name string `json:"name"` // one of SleepNames
	Load Load   `json:"load"`
	// Slack is the timer slack of the thread that slept, where there was one of
	// its own.
	Slack time.Duration `json:"slack_ns,omitempty"`
	// Lateness is by how much longer than requested the sleeps took.
	Lateness Distribution `json:"lateness"`
	// Early is the number of sleeps that were shorter than requested, and
	// EarlyBy by how much: they count as not late.
	Early   int           `json:"early,omitempty"`
	EarlyBy time.Duration `json:"early_by_ns,omitempty"`
	// Error says why there is nothing, or no more.
	Error string `json:"error,omitempty"`
}

// A Load is what this process does beside sleeping.
type Load string

const (
	// Idle: nothing.
	Idle Load = "idle"
	// Busy: one goroutine a P spins.
	Busy Load = "busy"
)

// The ways to sleep.
const (
	SleepNanosleep = "nanosleep"             // on a locked thread, with the slack that it has
	SleepPrecise   = "nanosleep, slack 1 ns" // on a locked thread
	SleepTimerfd   = "timerfd"               // read through the Go netpoller
	SleepTime      = "time.Sleep"
	SleepDetent    = "timer.Sleep"
	SleepSpin      = "timer.Sleep, spinning" // of a service WithSpin
	SleepLane      = "lane callback"         // of a timer that the callback before it has started
)

// A way makes sleeps of d, one after another, until more says no, and records how
// much longer each took. It runs on a goroutine of its own, which may lock its
// thread and leave it so.
type way struct {
	name string
	run  func(d time.Duration, more func() bool, record func(late int64)) error
	// slack tells the thread's slack; nil: there is no thread.
	slack func() time.Duration
}

// ways are those of this system, the kernel's own first.
func ways() []way {
	return append(kernelWays(),
		way{name: SleepTime, run: byFunc(time.Sleep)},
		way{name: SleepDetent, run: byService(func(s *timer.Service) *timer.Service { return s })},
		way{name: SleepSpin, run: byService((*timer.Service).WithSpin)},
		way{name: SleepLane, run: laneCallbacks},
	)
}

// SleepNames returns the names of the ways to sleep on this system.
func SleepNames() []string {
	var names []string
	for _, w := range ways() {
		names = append(names, w.name)
	}
	return names
}

// byFunc sleeps by a function.
func byFunc(sleep func(time.Duration)) func(time.Duration, func() bool, func(int64)) error {
	return func(d time.Duration, more func() bool, record func(int64)) error {
		s := newStopwatch()
		for more() {
			began := s.ns()
			sleep(d)
			record(s.ns() - began - int64(d))
		}
		return nil
	}
}

// byService sleeps by a view of a service of its own, so that none is left behind.
func byService(view func(*timer.Service) *timer.Service) func(time.Duration, func() bool, func(int64)) error {
	return func(d time.Duration, more func() bool, record func(int64)) error {
		service, err := timer.New(nil)
		if err != nil {
			return err
		}
		defer service.Close()
		service.Sleep(1) // its threads and goroutines start at first use
		return byFunc(view(service).Sleep)(d, more, record)
	}
}

// laneCallbacks looks at when the lane's own thread runs a callback, each of which
// starts the next timer: what is on time while goroutines are not. The callbacks
// alone call more and record.
func laneCallbacks(d time.Duration, more func() bool, record func(int64)) error {
	if !more() {
		return nil
	}
	lane, err := timer.NewLane(nil)
	if err != nil {
		return err
	}
	defer lane.Close()
	lane.Sleep(1)
	s := newStopwatch()
	done := make(chan struct{})
	began := s.ns()
	var fired func()
	fired = func() {
		record(s.ns() - began - int64(d))
		if !more() {
			close(done)
			return
		}
		began = s.ns()
		lane.AfterFunc(d, fired)
	}
	lane.AfterFunc(d, fired)
	<-done
	return nil
}

// SleepOptions say how sleeps are measured. Fields that are 0 have the default.
type SleepOptions struct {
	// Requested is how long each sleep is; 50 us.
	Requested time.Duration
	// Count is how many sleeps are made in each way, under each load; 2000.
	Count int
	// Time is how long each way is given under each load at most: slow ones make
	// fewer sleeps. No limit.
	Time time.Duration
	// Ways are those to measure; nil: all that there are.
	Ways []string
	// Loads are those to measure under; nil: idle alone.
	Loads []Load
	// Progress is called with the way and load that begin, and the part of all
	// that has been done; it may be nil.
	Progress func(way string, load Load, done float64)
}

// sleepRounds is in how many rounds the sleeps are made, each way in turn, so that
// what disturbs one for a while disturbs all of them.
const sleepRounds = 4

// MeasureSleeps makes sleeps in each way and says how late they were. It ends early
// with ctx, with what has been measured and ctx's error. Ways that do not work here
// have an Error; asking for one that does not exist is an error.
func MeasureSleeps(ctx context.Context, o SleepOptions) (*SleepData, error) {
	if o.Requested == 0 {
		o.Requested = 50 * time.Microsecond
	}
	if o.Count == 0 {
		o.Count = 2000
	}
	if o.Loads == nil {
		o.Loads = []Load{Idle}
	}
	if o.Requested < 0 || o.Count < 0 || o.Time < 0 {
		return nil, errors.New("probe: negative sleep, count or time")
	}
	var chosen []way
	for _, w := range ways() {
		if o.Ways == nil || slices.Contains(o.Ways, w.name) {
			chosen = append(chosen, w)
		}
	}
	for _, name := range o.Ways {
		if !slices.ContainsFunc(chosen, func(w way) bool { return w.name == name }) {
			return nil, fmt.Errorf("probe: no way to sleep %q on %s: %w", name, runtime.GOOS, errors.ErrUnsupported)
		}
	}
	if err := clockStopped(); err != nil {
		return nil, err
	}

	d := &SleepData{Requested: o.Requested}
	progress := o.Progress
	for i, load := range o.Loads {
		if progress != nil {
			o.Progress = func(way string, load Load, done float64) {
				progress(way, load, (float64(i)+done)/float64(len(o.Loads)))
			}
		}
		measured := measureWays(ctx, o, chosen, load)
		d.Ways = append(d.Ways, measured...)
		if ctx.Err() != nil {
			return d, ended(ctx)
		}
	}
	return d, nil
}

// measureWays makes all rounds under one load.
func measureWays(ctx context.Context, o SleepOptions, chosen []way, load Load) []SleepWay {
	list := make([]SleepWay, len(chosen))
	if load == Busy && runtime.GOARCH == "wasm" {
		for i, w := range chosen {
			list[i] = SleepWay{Name: w.name, Load: load, Error: "the scheduler has one thread, and cannot preempt"}
		}
		return list
	}
	if load == Busy {
		defer spin()()
	}
	late := make([][]int64, len(chosen))
	began := newStopwatch()
	for round := range sleepRounds {
		// Where every sleep takes much longer than its way is given, one round
		// has to do.
		if round > 0 && o.Time > 0 && began.ns() > 2*int64(o.Time)*int64(len(chosen)) {
			break
		}
		for i, w := range chosen {
			r := &list[i]
			r.Name, r.Load = w.name, load
			if r.Error != "" || ctx.Err() != nil {
				continue
			}
			if o.Progress != nil {
				o.Progress(w.name, load, float64(round*len(chosen)+i)/float64(sleepRounds*len(chosen)))
			}
			n := o.Count * (round + 1) / sleepRounds
			s := newStopwatch()
			more := func() bool {
				return len(late[i]) < n && ctx.Err() == nil && (o.Time == 0 || s.ns() < int64(o.Time/sleepRounds))
			}
			done := make(chan error)
			go func() {
				if w.slack != nil {
					runtime.LockOSThread()
				}
				err := w.run(o.Requested, more, func(ns int64) {
					if ns < 0 {
						r.Early++
						r.EarlyBy = max(r.EarlyBy, time.Duration(-ns))
						ns = 0
					}
					late[i] = append(late[i], ns)
				})
				if w.slack != nil {
					r.Slack = w.slack()
				}
				done <- err
			}()
			if err := <-done; err != nil {
				r.Error = err.Error()
			}
		}
	}
	for i := range list {
		list[i].Lateness = distributionOf(late[i])
		// One whose time was short anyway is not worth a word.
		short := len(late[i]) < o.Count && !errors.Is(context.Cause(ctx), ErrNoTime)
		if ctx.Err() != nil && list[i].Error == "" && (short || len(late[i]) == 0) {
			list[i].Error = ended(ctx).Error()
		}
	}
	return list
}

// spin keeps every P busy until stop is called.
func spin() (stop func()) {
	var end atomic.Bool
	var wg sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for !end.Load() {
			}
		})
	}
	return func() {
		end.Store(true)
		wg.Wait()
	}
}
