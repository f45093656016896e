//go:build linux && (amd64 || arm64) && !detent_portable

package tsc

import (
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// exchanges between two CPUs. The first ones warm up the caches; the best
	// of a hundred is within a tenth of the best of many. On a busy machine the
	// threads may have to do with fewer.
	exchanges = 100
	atLeast   = 10

	// looks is how often one side looks at a flag before it takes the other's
	// thread to have lost its CPU, about 0.1 ms, and sleeps for longer: then the
	// scheduler lets it run soon after it has woken.
	looks = 1 << 16
	nap   = 300 * time.Microsecond

	// naps is how often it does that in one comparison before it gives up,
	// after a tenth of a second or more.
	naps = 300

	// journeys of one thread to another CPU and back, for want of a second. On
	// a busy machine it waits at both ends, so more of them are made until one
	// has gone well, within 2^17 ticks.
	journeys     = 10
	mostJourneys = 50
	goneWell     = 1 << 17
)

// ErrBusy says that two threads did not get to run at the same time.
var ErrBusy = errors.New("the CPUs were busy")

// CompareCPUs lets a thread on one CPU exchange messages with a thread on each
// of the others that the process may run on, one after the other, and returns
// what that tells of their counters, and how many other CPUs there are. Each takes
// some 0.1 ms of both CPUs. When budget has passed, no further CPU is looked at.
// A CPU that did not run the thread in time is not among the offsets, and ErrBusy
// says that there is one. The CPUs of known, which is what an earlier call has
// returned, are not looked at again.
//
// The threads are pinned to their CPUs; they end with the comparison.
//
// With GOMAXPROCS at 1 the two threads could not run at the same time. Then one
// thread goes from CPU to CPU itself, and coarse is true: each offset is known to
// some microseconds only. But neither can goroutines get to another CPU any faster
// than that.
func CompareCPUs(known []Offset, budget time.Duration) (offsets []Offset, others int, coarse bool, err error) {
	offsets = slices.Clone(known)
	cpus, err := CPUs()
	if err != nil {
		return offsets, 0, false, err
	}
	others = len(cpus) - 1
	if others < 1 {
		return offsets, 0, false, nil
	}
	look := compare
	if coarse = runtime.GOMAXPROCS(0) < 2; coarse {
		look = travel
	}
	began := time.Now()
	e := OnCPU(cpus[0], func() error {
		for i, cpu := range cpus[1:] {
			if i > 0 && time.Since(began) > budget {
				break
			}
			if slices.ContainsFunc(known, func(o Offset) bool { return o.CPU == cpu }) {
				continue
			}
			o, e := look(cpus[0], cpu)
			if e != nil {
				err = e
				continue
			}
			offsets = append(offsets, o)
		}
		return nil
	})
	if e != nil {
		return offsets, others, coarse, e
	}
	return offsets, others, coarse, err
}

// CPUs returns the CPUs that the process may run on, in order.
func CPUs() ([]int, error) {
	var all unix.CPUSet
	if err := unix.SchedGetaffinity(0, &all); err != nil {
		return nil, fmt.Errorf("sched_getaffinity: %w", err)
	}
	cpus := make([]int, 0, all.Count())
	for cpu := 0; len(cpus) < cap(cpus); cpu++ {
		if all.IsSet(cpu) {
			cpus = append(cpus, cpu)
		}
	}
	return cpus, nil
}

// OnCPU runs f on a thread of its own that is pinned to a CPU, waits for it, and
// returns what f has returned. The thread ends with f, which may [Move] it on.
func OnCPU(cpu int, f func() error) error {
	result := make(chan error)
	go func() { result <- pinned(cpu, f) }()
	return <-result
}

// pinned runs f on a CPU. The goroutine must end afterwards: its thread is never
// unlocked, so that the runtime ends it rather than to use it for other
// goroutines.
func pinned(cpu int, f func() error) error {
	runtime.LockOSThread()
	if err := Move(cpu); err != nil {
		return err
	}
	return f()
}

// Move puts the calling thread on a CPU, for good: the goroutine must have locked it.
func Move(cpu int) error {
	var set unix.CPUSet
	set.Set(cpu)
	return unix.SchedSetaffinity(0, &set)
}

// travel goes from one CPU to another and back.
func travel(from, to int) (Offset, error) {
	o := Offset{CPU: to, Low: math.MinInt64, High: math.MaxInt64}
	for i := 0; i < journeys || i < mostJourneys && o.High-o.Low > goneWell; i++ {
		x, err := journey(from, to)
		if err != nil {
			return o, err
		}
		o.add(x)
	}
	return o, nil
}

// journey is an exchange for which the thread itself goes there and back.
func journey(from, to int) (x Exchange, err error) {
	x.Sent = Ordered()
	if err := Move(to); err != nil {
		return x, err
	}
	x.Here = Ordered()
	if err := Move(from); err != nil {
		return x, err
	}
	x.Received = Ordered()
	return x, nil
}

// A mailbox is what the two threads share. Each flag has a cache line of its own.
type mailbox struct {
	call   atomic.Uint64 // the number of the exchange, or stop
	_      [56]byte
	answer atomic.Uint64 // the same, when the answer is in here
	_      [56]byte
	here   atomic.Uint64 // the counter of the thread that answers
	_      [56]byte
}

const stop = math.MaxUint64

// compare exchanges messages with another CPU.
func compare(_, cpu int) (Offset, error) {
	o := Offset{CPU: cpu, Low: math.MinInt64, High: math.MaxInt64}
	xs, err := converse(cpu, make([]Exchange, 0, exchanges))
	for _, x := range xs {
		o.add(x)
	}
	return o, err
}

// Converse lets a thread on one CPU exchange n messages with a thread on another,
// and returns what the counters were. With GOMAXPROCS at 1 the two threads could
// not run at the same time: then one thread goes back and forth itself, which takes
// microseconds instead of a fraction of one, and no more than 50 times.
//
// The error is ErrBusy if the threads did not get to run at the same time for ten
// exchanges within some 0.1 s, and says why if one of them could not be put on its
// CPU. The threads end with the conversation.
func Converse(from, to, n int) ([]Exchange, error) {
	alone := runtime.GOMAXPROCS(0) < 2
	if alone {
		n = min(n, mostJourneys)
	}
	xs := make([]Exchange, 0, n)
	err := OnCPU(from, func() (err error) {
		if !alone {
			xs, err = converse(to, xs)
			return err
		}
		for range n {
			x, err := journey(from, to)
			if err != nil {
				return err
			}
			xs = append(xs, x)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return xs, nil
}

// converse appends to xs exchanges of the calling thread with one on another CPU,
// as many as it has room for.
func converse(cpu int, xs []Exchange) ([]Exchange, error) {
	var box mailbox
	ready := make(chan error, 1)
	done := make(chan struct{})
	go func() {
		defer close(done)
		err := pinned(cpu, func() error {
			ready <- nil
			box.reply()
			return nil
		})
		if err != nil {
			ready <- err
		}
	}()
	defer func() {
		box.call.Store(stop)
		<-done
	}()
	if err := <-ready; err != nil {
		return nil, err
	}
	patience := naps
	for i := uint64(1); len(xs) < cap(xs); i++ {
		sent := Ordered()
		box.call.Store(i)
		if !await(&box.answer, i, &patience) {
			if len(xs) < atLeast {
				return nil, ErrBusy
			}
			break
		}
		received := Ordered()
		xs = append(xs, Exchange{sent, box.here.Load(), received})
	}
	return xs, nil
}

// reply answers calls until it is told to stop.
func (box *mailbox) reply() {
	forever := math.MaxInt
	for i := uint64(1); await(&box.call, i, &forever); i++ {
		box.here.Store(Ordered())
		box.answer.Store(i)
	}
}

// await waits until a flag is i. It reports false if the flag is stop, or if it
// has used up the naps.
func await(flag *atomic.Uint64, i uint64, naps *int) bool {
	for look := 1; ; look++ {
		switch flag.Load() {
		case i:
			return true
		case stop:
			return false
		}
		if look%looks != 0 {
			continue
		}
		if *naps--; *naps < 0 {
			return false
		}
		// Of the thread, not of the goroutine: the goroutine's sleep would
		// cost the two scheduler switches that a locked thread takes.
		pause := unix.NsecToTimespec(int64(nap))
		unix.Nanosleep(&pause, nil)
	}
}
