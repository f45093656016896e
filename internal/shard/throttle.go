package shard

import (
	"io/fs"
	"os"
	"runtime"
	"sync"
	"time"

	"github.com/detent-go/detent/internal/hostfs"
)

const (
	// lookAt is how late a wake-up has to be for anybody to ask whether the
	// process was kept from running by its CPU quota, in nanoseconds. lookEvery is
	// how often the kernel's counters are read at most, some 10 us each time, and
	// findEvery how often it is looked for what quotas there are, some 100 us.
	lookAt    = int64(time.Millisecond)
	lookEvery = int64(5 * time.Millisecond)
	findEvery = int64(10 * time.Second)
)

// throttle tells how long the process was kept from running because a cgroup
// that it is in had used up its CPU quota. It is never asked with a shard's lock
// held.
//
// The kernel counts that time, for all CPUs together, but does not tell when it
// was. So it is put down as a whole to what has been late since the last look,
// up to the length of that.
type throttle struct {
	root fs.FS // constant; the machine's "/", or nil where there are no cgroups

	reading sync.Mutex      // held while the kernel is asked; taken before mu
	limits  *hostfs.Cgroups // those found last, or nil
	found   int64           // when; 0: never
	waited  time.Duration   // the counters of all groups with a quota, at the last look
	looked  int64           // when that was; 0: not since the groups were found

	mu    sync.Mutex // held for moments
	spans [8]span    // what the last looks have found, a ring
	next  int        // the oldest of them
}

// span is a time between two looks at the counters, and by how much they grew.
type span struct{ from, to, waited int64 }

func newThrottle() *throttle {
	if runtime.GOOS != "linux" {
		// Not for the cost alone: on js a file is read when all goroutines wait,
		// and the one that asks is the one that wakes them.
		return &throttle{}
	}
	return &throttle{root: os.DirFS("/")}
}

// during returns how much of from..to the process was throttled, at most. The
// current time is to. While somebody else reads the kernel's counters, which may take
// long where there are many cgroups, what that look will find is not known yet, and not
// counted: the timers that are to be blamed are late already, and do not wait for those
// of another shard.
func (t *throttle) during(from, to int64) int64 {
	if t.root == nil {
		return 0
	}
	if t.reading.TryLock() {
		if t.found == 0 || to-t.found >= findEvery {
			t.findReading(to)
		}
		if t.limits != nil && (t.looked == 0 || to-t.looked >= lookEvery) {
			t.lookReading(to)
		}
		t.reading.Unlock()
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	sum := int64(0)
	for _, s := range t.spans {
		sum += min(s.waited, overlap(from, s.from, min(s.to, to)))
	}
	return min(sum, to-from)
}

// forget has the next look be the first: the group's clock has been set, perhaps.
func (t *throttle) forget() {
	t.reading.Lock()
	defer t.reading.Unlock()
	t.limits, t.found, t.looked = nil, 0, 0
	t.clear()
}

// clear forgets what the looks have found.
func (t *throttle) clear() {
	t.mu.Lock()
	t.spans = [8]span{}
	t.mu.Unlock()
}

// findReading looks for quotas. A process can be moved to other cgroups, or be
// given a quota, at any time.
func (t *throttle) findReading(now int64) {
	t.found = now
	limits, err := hostfs.ReadCgroups(t.root)
	if err != nil || limits.Tightest() == nil {
		t.limits, t.looked = nil, 0
		t.clear()
		return
	}
	same := t.limits != nil && len(t.limits.Groups) == len(limits.Groups)
	for i := range limits.Groups {
		same = same && t.limits.Groups[i].Path == limits.Groups[i].Path &&
			(t.limits.Groups[i].Quota > 0) == (limits.Groups[i].Quota > 0)
	}
	if !same {
		t.looked = 0
	}
	t.limits = limits
}

// lookReading reads the counters of the groups with a quota.
func (t *throttle) lookReading(now int64) {
	waited := time.Duration(0)
	for i := range t.limits.Groups {
		if t.limits.Groups[i].Quota == 0 {
			continue
		}
		c, err := t.limits.ReadThrottling(t.root, &t.limits.Groups[i])
		if err != nil {
			t.limits, t.looked = nil, 0 // The process has been moved, most likely.
			t.clear()
			return
		}
		waited += c.Waited
	}
	if t.looked != 0 && waited > t.waited {
		t.mu.Lock()
		t.spans[t.next] = span{t.looked, now, int64(waited - t.waited)}
		t.next = (t.next + 1) % len(t.spans)
		t.mu.Unlock()
	}
	t.waited, t.looked = waited, now
}
