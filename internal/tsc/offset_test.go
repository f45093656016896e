package tsc

import (
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"testing"
	"time"
)

func TestOffset(t *testing.T) {
	for _, test := range []struct {
		name  string
		ahead int64 // of the other CPU's counter
		apart bool
	}{
		{"in step", 0, false},
		{"less than a message takes", 90, false},
		{"more than a message takes", 110, true},
		{"behind", -110, true},
		{"seconds behind", -1 << 33, true},
	} {
		o := Offset{Low: math.MinInt64, High: math.MaxInt64}
		for i := range uint64(20) {
			// Each way takes 100 ticks at the least, and some messages more.
			sent := 1<<40 + i*10_000
			there, back := 100+i%3*50, 100+i%7*40
			o.add(Exchange{sent, uint64(int64(sent+there) + test.ahead), sent + there + back})
		}
		if o.Apart() != test.apart || o.Low > test.ahead || o.High < test.ahead || o.High-o.Low != 200 {
			t.Errorf("%s: %v, apart %v", test.name, o, o.Apart())
		}
		if got, want := o.Largest(), max(test.ahead, -test.ahead)+100; got != want {
			t.Errorf("%s: Largest = %d, want %d", test.name, got, want)
		}
	}
}

// What this machine's CPUs are found to be is the machine's affair; that the
// comparison ends, and that it is consistent, is ours.
func TestCompareCPUs(t *testing.T) {
	for _, procs := range []int{2, 1} {
		t.Run(fmt.Sprint("GOMAXPROCS=", procs), func(t *testing.T) {
			defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(procs))
			offsets, others, coarse, err := CompareCPUs(nil, 20*time.Millisecond)
			t.Log(offsets, others, coarse, err)
			if !Supported {
				if !errors.Is(err, errors.ErrUnsupported) {
					t.Errorf("err = %v", err)
				}
				return
			}
			if others > 0 && coarse != (procs == 1) {
				t.Errorf("coarse: %v", coarse)
			}
			if len(offsets) > others {
				t.Errorf("%d offsets of %d CPUs", len(offsets), others)
			}
			for _, o := range offsets {
				if o.Low == math.MinInt64 || o.High == math.MaxInt64 {
					t.Errorf("%v: no exchange took place", o)
				}
			}
			if err == nil && others > 0 && len(offsets) == 0 {
				t.Error("no CPU was looked at")
			}
			again, _, _, _ := CompareCPUs(offsets, 20*time.Millisecond)
			if len(again) < len(offsets) || !slices.Equal(again[:len(offsets)], offsets) {
				t.Errorf("%v, after %v", again, offsets)
			}
		})
	}
}

func TestConverse(t *testing.T) {
	if !Supported {
		if _, err := Converse(0, 1, 5); !errors.Is(err, errors.ErrUnsupported) {
			t.Errorf("err = %v", err)
		}
		return
	}
	cpus, err := CPUs()
	if err != nil {
		t.Fatal(err)
	}
	if len(cpus) < 2 {
		t.Skip("one CPU")
	}
	for _, procs := range []int{2, 1} {
		t.Run(fmt.Sprint("GOMAXPROCS=", procs), func(t *testing.T) {
			defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(procs))
			const n = 40
			xs, err := Converse(cpus[0], cpus[1], n)
			if errors.Is(err, ErrBusy) {
				t.Skip(err)
			}
			if err != nil || len(xs) < 10 || len(xs) > n {
				t.Fatalf("%d exchanges, err = %v", len(xs), err)
			}
			last := uint64(0)
			for _, x := range xs {
				// One CPU's readings, so they are in order whatever the other's are.
				if x.Sent < last || x.Received < x.Sent {
					t.Errorf("sent %d and received %d, after %d", x.Sent, x.Received, last)
				}
				last = x.Received
			}
			for _, pair := range [][2]int{{cpus[0], 1 << 20}, {1 << 20, cpus[0]}} {
				if xs, err := Converse(pair[0], pair[1], n); err == nil || xs != nil {
					t.Errorf("a CPU that does not exist: %d exchanges, err = %v", len(xs), err)
				}
			}
		})
	}
}
