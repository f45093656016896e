package clock_test

import (
	"fmt"
	"time"

	"github.com/detent-go/detent/clock"
)

func work() { time.Sleep(time.Millisecond) }

// An interval on a clock of the kernel, at the cost of two vDSO calls.
func ExampleClock_Nanos() {
	start := clock.Mono.Nanos()
	work()
	fmt.Println(clock.Mono.Since(start) >= time.Millisecond)
	// Output: true
}

// How the clocks are read in this process.
func ExampleClock_Source() {
	for _, c := range clock.Clocks() {
		if c.Source() != clock.VDSO {
			fmt.Printf("%v is read by %v: %v\n", c, c.Source(), clock.Fallback())
		}
	}
}

// One TSC serves the whole program. It is ready as it is, and the kernel's clock
// until it has measured the counter.
var cycles clock.TSC

func ExampleTSC() {
	start := cycles.Ordered()
	work()
	elapsed := time.Duration(cycles.Ordered() - start)
	fmt.Println(elapsed > 0)
	// Output: true
}

// A reading that says how far it may be off CLOCK_MONOTONIC.
func ExampleTSC_Bounded() {
	ns, bound := cycles.Bounded()
	earliest, latest := ns-int64(bound), ns+int64(bound)
	fmt.Println(earliest <= latest)
	// Output: true
}

// A program that depends on the counter says so in its log.
func ExampleTSC_Health() {
	if h := cycles.Health(); !h.Trusted {
		fmt.Println("reading the kernel's clock:", h.Err)
	}
}

func ExampleNow() {
	deadline := clock.Now().Add(time.Hour)
	fmt.Println(time.Until(deadline) > 59*time.Minute)
	// Output: true
}
