package goprog

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"
)

// TestReadOwn reads this test's own program, which has debugging information if go
// test was asked for it by -c, and may not otherwise.
func TestReadOwn(t *testing.T) {
	exe, err := os.Open("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	defer exe.Close()
	p, err := Read(exe)
	if err != nil {
		t.Fatal(err)
	}
	if p.Version != runtime.Version() {
		t.Errorf("version %q, want %q", p.Version, runtime.Version())
	}
	if p.Layout == nil {
		t.Skip("go test has left out what this needs:", p.Absent)
	}
	bias := ownBias(t, p)
	mem, err := os.Open("/proc/self/mem")
	if err != nil {
		t.Fatal(err)
	}
	defer mem.Close()
	before, err := p.Layout.Read(mem, bias)
	if err != nil {
		t.Fatal(err)
	}
	if n := runtime.GOMAXPROCS(0); before.GOMAXPROCS != n || before.IdlePs < 0 || before.IdlePs > n {
		t.Errorf("GOMAXPROCS %d, of which %d idle; want %d", before.GOMAXPROCS, before.IdlePs, n)
	}
	// Goroutines that take turns are counted, one in eight of their turns.
	const turns = 10_000
	ball := make(chan struct{})
	go func() {
		defer close(ball)
		for range turns {
			ball <- struct{}{}
		}
	}()
	for range ball {
	}
	time.Sleep(time.Millisecond)
	after, err := p.Layout.Read(mem, bias)
	if err != nil {
		t.Fatal(err)
	}
	var more uint64
	for i := range after.Latency {
		if after.Latency[i] < before.Latency[i] {
			t.Errorf("bucket %d went from %d to %d", i, before.Latency[i], after.Latency[i])
		}
		more += after.Latency[i] - before.Latency[i]
	}
	if more < turns/100 || more > 100*turns {
		t.Errorf("%d latencies in %d turns of two goroutines", more, turns)
	}
}

func ownBias(t *testing.T, p *Program) uint64 {
	exe, err := os.Readlink("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(maps)) {
		var start, end, offset uint64
		if !strings.Contains(line, exe) {
			continue
		}
		if _, err := fmt.Sscanf(line, "%x-%x %s %x", &start, &end, new(string), &offset); err != nil {
			t.Fatal(err)
		}
		if bias, ok := p.Bias(start, end, offset); ok {
			return bias
		}
	}
	t.Fatal("the program is not in its own memory")
	return 0
}

func TestReadOther(t *testing.T) {
	if _, err := Read(strings.NewReader("#!/bin/sh\n")); !errors.Is(err, ErrNotGo) {
		t.Errorf("a script: %v", err)
	}
}

// TestBits: the runtime's record, as its source has it, puts no value into a bucket
// that bitsOf gives other bits.
func TestBits(t *testing.T) {
	for _, d := range []uint64{0, 1, 63, 64, 100, 127, 128, 200, 255, 256, 300, 511, 512, 1000, 1 << 20, 1<<21 - 1, 1<<46 + 5} {
		n := 0
		for v := d; v != 0; v >>= 1 {
			n++
		}
		bucketBit, bucket := 9, 0
		if n >= 9 {
			bucketBit, bucket = n, n-9+1
		}
		i := bucket*4 + int(d>>(bucketBit-1-2))%4
		want := max(n, 6) // the shortest are not told apart
		if got := bitsOf(i); got != want {
			t.Errorf("%d ns, of %d bits, is in bucket %d: %d bits", d, n, i, got)
		}
	}
}
