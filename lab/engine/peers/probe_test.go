package peers

import (
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/detent-go/detent/lab/engine"
)

// A probe tries one capability of an engine, and returns what is wrong with it, or
// "". It is called in a process of its own, for it may hang, or end the process.
type probe func(e engine.Engine) string

var probes = map[engine.Capability]probe{
	engine.NeverEarly:   probeEarly,
	engine.Results:      probeResults,
	engine.AnyDuration:  probeDurations,
	engine.AnyTime:      probeAnyTime,
	engine.BoundedStorm: probeStorm,
	engine.Closes:       probeClose,
}

func probeEarly(e engine.Engine) string {
	const n = 2000
	var early, worst atomic.Int64
	var wg sync.WaitGroup
	wg.Add(n)
	for i := range n {
		d, start := time.Duration(1+rand.IntN(100_000))*time.Microsecond, time.Now()
		e.AfterFunc(d, func() {
			defer wg.Done()
			if by := d - time.Since(start); by > 0 {
				early.Add(1)
				for old := worst.Load(); int64(by) > old && !worst.CompareAndSwap(old, int64(by)); old = worst.Load() {
				}
			}
		})
		if i%20 == 0 {
			time.Sleep(300 * time.Microsecond) // at every phase of a tick
		}
	}
	wg.Wait()
	if n := early.Load(); n > 0 {
		return fmt.Sprintf("%d of 2000 timers of up to 100ms fired early, by up to %v", n, time.Duration(worst.Load()).Round(100*time.Microsecond))
	}
	return ""
}

func probeResults(e engine.Engine) string {
	fired := make(chan struct{})
	tm := e.AfterFunc(time.Millisecond, func() { close(fired) })
	<-fired
	time.Sleep(20 * time.Millisecond)
	if tm.Stop() {
		return "Stop of a timer that has fired says true"
	}
	tm = e.AfterFunc(time.Hour, func() {})
	if !tm.Stop() {
		return "Stop of a pending timer says false"
	}
	if tm.Stop() {
		return "the second Stop says true"
	}
	// Around the time at which they are due.
	wrong := 0
	const rounds, batch = 40, 200
	for range rounds {
		var ran [batch]atomic.Int32
		var timers [batch]engine.Timer
		for i := range batch {
			timers[i] = e.AfterFunc(time.Duration(10_000+rand.IntN(20_000))*time.Microsecond, func() { ran[i].Add(1) })
		}
		time.Sleep(time.Duration(10_000+rand.IntN(20_000)) * time.Microsecond)
		var said [batch]bool
		for i, tm := range timers {
			said[i] = tm.Stop()
		}
		time.Sleep(60 * time.Millisecond)
		for i := range batch {
			if said[i] == (ran[i].Load() != 0) {
				wrong++
			}
		}
	}
	if wrong > 0 {
		return fmt.Sprintf("Stop around the time at which a timer is due was wrong %d times in %d", wrong, rounds*batch)
	}
	return ""
}

func probeDurations(e engine.Engine) string {
	for _, d := range []time.Duration{0, -1, -time.Hour, math.MinInt64} {
		fired := make(chan struct{})
		e.AfterFunc(d, func() { close(fired) })
		select {
		case <-fired:
		case <-time.After(10 * time.Second):
			return fmt.Sprintf("a timer of %v does not fire", d)
		}
	}
	for _, d := range []time.Duration{math.MaxInt64, math.MaxInt64 - time.Hour, 1 << 62, 100 * 365 * 24 * time.Hour, 365 * 24 * time.Hour} {
		fired := make(chan struct{})
		e.AfterFunc(d, func() { close(fired) })
		select {
		case <-fired:
			return fmt.Sprintf("a timer of %v fires at once", d)
		case <-time.After(200 * time.Millisecond):
		}
	}
	return ""
}

func probeAnyTime(e engine.Engine) string {
	tm := e.AfterFunc(time.Hour, func() {})
	for range 3 {
		tm.Stop()
	}
	// In the function, and of others due at the same time.
	var wg sync.WaitGroup
	for range 200 {
		var pair [2]engine.Timer
		var ready sync.WaitGroup
		ready.Add(1)
		wg.Add(1)
		for i := range pair {
			pair[i] = e.AfterFunc(15*time.Millisecond, func() { ready.Wait(); pair[1-i].Stop(); pair[i].Stop() })
		}
		ready.Done()
		go func() {
			defer wg.Done()
			for range 30 {
				time.Sleep(time.Millisecond)
				pair[0].Stop()
			}
		}()
	}
	wg.Wait()
	// From many goroutines, with starts.
	for range 8 {
		wg.Go(func() {
			for range 2000 {
				tm := e.AfterFunc(time.Duration(rand.IntN(3000))*time.Microsecond, func() {})
				if rand.IntN(2) == 0 {
					runtime.Gosched()
				}
				go tm.Stop()
				tm.Stop()
			}
		})
	}
	wg.Wait()
	select {
	case <-e.After(time.Millisecond):
	case <-time.After(30 * time.Second):
		return "no timer fires any more"
	}
	return ""
}

func probeStorm(e engine.Engine) string {
	const n = 100_000
	var ran atomic.Int64
	before := runtime.NumGoroutine()
	most := before
	due := time.Now().Add(300 * time.Millisecond)
	for range n {
		e.AfterFunc(time.Until(due), func() { ran.Add(1) })
	}
	for waited := 0; ran.Load() < n; waited++ {
		if waited > 100_000 {
			return fmt.Sprintf("%d of %d timers due at once never fired", n-ran.Load(), n)
		}
		most = max(most, runtime.NumGoroutine())
		time.Sleep(100 * time.Microsecond)
	}
	if most > before+64 {
		return fmt.Sprintf("100000 timers due at once made %d goroutines", most-before)
	}
	return ""
}

func probeClose(e engine.Engine) string {
	before := runtime.NumGoroutine()
	e.AfterFunc(20*time.Millisecond, func() { fmt.Println("fired after Close") })
	if err := e.Close(); err != nil {
		return err.Error()
	}
	time.Sleep(100 * time.Millisecond)
	for range 100 {
		if runtime.NumGoroutine() < before {
			return ""
		}
		time.Sleep(10 * time.Millisecond)
	}
	return fmt.Sprintf("%d goroutines before Close, %d after", before, runtime.NumGoroutine())
}
