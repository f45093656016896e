// Command idleconns keeps an idle timeout for each of a million connections, most of
// which hear from their peers again and again, and says what that costs: with package
// time, with package timer in its place, and with a Queue.
//
//	go run ./idleconns
//	go run ./idleconns -conns 200000 -traffic 50000
//
// The connections are simulated, the timeouts are not: a packet for a connection
// pushes its timeout back, and a connection that gets none is closed in time.
package main

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/detent-go/detent/timer"
)

func main() {
	conns := flag.Int("conns", 1_000_000, "connections")
	traffic := flag.Int("traffic", 200_000, "packets a second, for all connections together")
	idle := flag.Duration("idle", 2*time.Second, "a connection that hears nothing for so long is closed")
	length := flag.Duration("for", 3*time.Second, "how long to run with each engine")
	flag.Parse()
	if *conns < 1 || *traffic < 0 || *idle <= 0 || *length <= 0 {
		fmt.Fprintln(os.Stderr, "idleconns: -conns, -idle and -for have to be positive, and -traffic not negative")
		os.Exit(2)
	}
	fmt.Printf("%d connections, %d packets a second, idle timeout %v\n", *conns, *traffic, *idle)
	for _, e := range engines {
		r := run(e, *conns, *traffic, *idle, *length)
		fmt.Printf("%-14s %6.0f B a timeout; set up in %6v; %7.0f packets a second, the slowest took %v; %d closed\n",
			e.name+":", r.bytes, r.setup.Round(time.Millisecond), r.packets, r.slowest.Round(time.Microsecond), r.closed)
	}
}

// An engine keeps the timeouts of connections, numbered from 0.
type engine struct {
	name string
	// open starts the timeouts, which call closed with the connection's number, and
	// returns what a packet does, and what ends it all.
	open func(conns int, idle time.Duration, closed func(conn int)) (packet func(conn int), end func())
}

var engines = []engine{
	{"package time", func(conns int, idle time.Duration, closed func(int)) (func(int), func()) {
		timeouts := make([]*time.Timer, conns)
		for i := range timeouts {
			timeouts[i] = time.AfterFunc(idle, func() { closed(i) })
		}
		return func(conn int) { timeouts[conn].Reset(idle) },
			func() {
				for _, t := range timeouts {
					t.Stop()
				}
			}
	}},
	{"package timer", func(conns int, idle time.Duration, closed func(int)) (func(int), func()) {
		timeouts := make([]*timer.Timer, conns)
		for i := range timeouts {
			timeouts[i] = timer.AfterFunc(idle, func() { closed(i) })
		}
		return func(conn int) { timeouts[conn].Reset(idle) },
			func() {
				for _, t := range timeouts {
					t.Stop()
				}
			}
	}},
	{"timer.Queue", func(conns int, idle time.Duration, closed func(int)) (func(int), func()) {
		q := timer.NewQueue(nil, func(batch []timer.Expired[int]) {
			for _, x := range batch {
				closed(x.Value)
			}
		})
		timeouts := make([]timer.Handle, conns)
		for i := range timeouts {
			timeouts[i] = q.Add(idle, i)
		}
		return func(conn int) {
				// One that has expired is opened again, as AfterFunc's Reset does.
				if !q.Reset(timeouts[conn], idle) {
					timeouts[conn] = q.Add(idle, conn)
				}
			},
			func() { _ = q.Close() } // fails only when it is closed already
	}},
}

type result struct {
	bytes   float64
	setup   time.Duration
	packets float64 // a second
	slowest time.Duration
	closed  int64
}

// run keeps the timeouts by e for so long, with packets for connections at random.
func run(e engine, conns, traffic int, idle, length time.Duration) result {
	var r result
	var closed atomic.Int64
	before := heap()
	begin := time.Now()
	packet, end := e.open(conns, idle, func(int) { closed.Add(1) })
	defer end()
	r.setup = time.Since(begin)
	r.bytes = float64(heap()-before) / float64(conns)

	// Packets come in bursts of a millisecond's worth.
	const burst = time.Millisecond
	sent := 0
	begin = time.Now()
	for next := begin; next.Sub(begin) < length; next = next.Add(burst) {
		timer.SleepUntil(next)
		for sent < int(float64(traffic)*next.Sub(begin).Seconds()) {
			at := time.Now()
			packet(rand.IntN(conns))
			r.slowest = max(r.slowest, time.Since(at))
			sent++
		}
	}
	r.packets = float64(sent) / time.Since(begin).Seconds()
	r.closed = closed.Load()
	return r
}

// heap is what the program's objects take.
func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
