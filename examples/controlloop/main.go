// Command controlloop runs a control loop at 1 kHz on a lane: a PI controller that
// holds a simulated motor at its speed, while the rest of the program keeps every P
// of the Go scheduler busy.
//
//	go run ./controlloop
//	go run ./controlloop -priority 80 -cpu 1 -lock    # as root
//	go run ./controlloop -engine time                 # for comparison
//
// The loop's callback runs on the lane's own thread. It does not allocate, does not
// block, and starts its next cycle from the deadline of this one.
package main

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"time"

	"github.com/detent-go/detent/examples/internal/quantiles"
	"github.com/detent-go/detent/timer"
)

const period = time.Millisecond

func main() {
	engine := flag.String("engine", "lane", "lane, or time for package time")
	length := flag.Duration("for", 3*time.Second, "how long to run")
	busy := flag.Bool("busy", true, "keep every P busy meanwhile")
	priority := flag.Int("priority", 0, "SCHED_FIFO priority of the lane's thread, 1 to 99")
	cpu := flag.Int("cpu", -1, "the CPU that the lane's thread runs on")
	lock := flag.Bool("lock", false, "keep the program's memory from being paged out")
	flag.Parse()
	o := timer.LaneOptions{Priority: *priority, LockMemory: *lock}
	if *cpu >= 0 {
		o.CPUs = []int{*cpu}
	}
	if err := run(*engine, *length, *busy, o); err != nil {
		fmt.Fprintln(os.Stderr, "controlloop:", err)
		os.Exit(1)
	}
}

func run(engine string, length time.Duration, busy bool, o timer.LaneOptions) error {
	cycles := int(length / period)
	if cycles < 1 {
		return fmt.Errorf("-for has to be %v or more", period)
	}
	l := &loop{late: make([]time.Duration, 0, cycles), done: make(chan struct{}), target: 100}
	switch engine {
	case "lane":
		lane, err := timer.NewLane(&o)
		if err != nil {
			return err
		}
		defer lane.Close()
		l.start(func(f func()) func(time.Duration) {
			t := lane.AfterFunc(time.Hour, f)
			return func(d time.Duration) { t.Reset(d) }
		})
	case "time":
		l.start(func(f func()) func(time.Duration) {
			t := time.AfterFunc(time.Hour, f)
			return func(d time.Duration) { t.Reset(d) }
		})
	default:
		return fmt.Errorf("no engine %q: lane or time", engine)
	}
	stop := make(chan struct{})
	defer close(stop)
	if busy {
		for range runtime.GOMAXPROCS(0) {
			go spin(stop)
		}
	}
	<-l.done
	fmt.Printf("%d cycles of %v, %d missed; cycles begin late by %s; the motor runs at %.2f, to be %.0f\n",
		len(l.late), period, l.missed, quantiles.Of(l.late), l.motor.speed, l.target)
	return nil
}

// spin is the rest of a busy program.
func spin(stop <-chan struct{}) {
	for n := 0; ; n++ {
		if n%1_000_000 == 0 {
			select {
			case <-stop:
				return
			default:
			}
		}
	}
}

// loop is the control loop. Its fields belong to the cycle that runs.
type loop struct {
	reset    func(time.Duration)
	deadline time.Time // of the cycle that is to run next

	motor    motor
	target   float64
	integral float64

	late   []time.Duration
	missed int // cycles that were over before they could begin
	done   chan struct{}
}

// start begins the first cycle a period from now. afterFunc makes a timer that is
// not due for an hour, and returns what sets it.
func (l *loop) start(afterFunc func(func()) func(time.Duration)) {
	l.reset = afterFunc(l.cycle)
	l.deadline = time.Now().Add(period)
	l.reset(period)
}

func (l *loop) cycle() {
	now := time.Now()
	l.late = append(l.late, now.Sub(l.deadline))

	// Proportional and integral part of the error, over the time that has passed
	// since the last cycle was to run.
	dt := period.Seconds()
	errorNow := l.target - l.motor.speed
	l.integral += errorNow * dt
	l.motor.step(20*errorNow+200*l.integral, dt)

	if len(l.late) == cap(l.late) {
		close(l.done)
		return
	}
	l.deadline = l.deadline.Add(period)
	for now.After(l.deadline) {
		l.deadline = l.deadline.Add(period)
		l.missed++
	}
	l.reset(time.Until(l.deadline))
}

// motor has inertia and friction: its speed follows the torque.
type motor struct{ speed float64 }

func (m *motor) step(torque, dt float64) {
	const inertia, friction = 2.0, 0.5
	m.speed += (torque - friction*m.speed) / inertia * dt
}
