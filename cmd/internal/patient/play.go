package patient

import (
	"fmt"
	"io"
	"os"
	"runtime"
	"time"
)

// variable tells a process which patient it is.
const variable = "DETENT_PATIENT"

// ready is what a patient writes when it has begun.
const ready = "ready\n"

// Main plays the patient if this process has been started as one, and never
// returns then.
func Main() {
	playRefused()
	fault, ok := os.LookupEnv(variable)
	if !ok {
		return
	}
	play, ok := plays[Fault(fault)]
	if !ok {
		fmt.Fprintf(os.Stderr, "patient: no fault %q\n", fault)
		os.Exit(2)
	}
	go play()
	io.WriteString(os.Stdout, ready)
	// The other end closes when the starter ends, in whatever way.
	io.Copy(io.Discard, os.Stdin)
	os.Exit(0)
}

var plays = map[Fault]func(){
	Healthy:   healthy,
	NoVDSO:    func() { often(readNow) },
	Direct:    func() { often(HotLoop) },
	Throttled: throttled,
	Saturated: saturated,
}

func healthy() {
	for {
		started := time.Now()
		for time.Since(started) < 20*time.Microsecond {
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func readNow() {
	if time.Now().IsZero() {
		panic("time.Now returned the zero time")
	}
}

// often keeps about a third of a CPU busy with calls of read.
func often(read func()) {
	for {
		for range 2000 {
			read()
		}
		time.Sleep(time.Millisecond)
	}
}

func throttled() {
	for range 2 {
		go compute()
	}
	sleeps()
}

func saturated() {
	runtime.GOMAXPROCS(1)
	for range 4 {
		go compute()
	}
	sleeps()
}

// compute is work that never gives its P away by itself.
func compute() {
	for n := uint64(1); ; n = n*6364136223846793005 + 1 {
		if n == 0 { // once in 2^64 rounds
			return
		}
	}
}

// sleeps is what suffers where the patient computes as well.
func sleeps() {
	for {
		time.Sleep(5 * time.Millisecond)
	}
}
