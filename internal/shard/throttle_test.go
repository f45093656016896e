package shard

import (
	"fmt"
	"io/fs"
	"testing"
	"testing/fstest"
	"time"
)

const ms = int64(time.Millisecond)

// quota is a machine on which the process is in two cgroups, one in the other.
type quota struct{ fstest.MapFS }

func newQuota() quota {
	q := quota{fstest.MapFS{}}
	q.put("proc/self/mountinfo", "24 23 0:21 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n")
	q.put("proc/self/cgroup", "0::/pod/app\n")
	q.limit("pod", "max 100000")
	q.limit("pod/app", "50000 100000")
	q.waited("pod", 0)
	q.waited("pod/app", 0)
	return q
}

func (q quota) put(name, text string) { q.MapFS[name] = &fstest.MapFile{Data: []byte(text)} }

func (q quota) limit(group, max string) { q.put("sys/fs/cgroup/"+group+"/cpu.max", max+"\n") }

func (q quota) waited(group string, ns int64) {
	q.put("sys/fs/cgroup/"+group+"/cpu.stat", fmt.Sprintf("nr_periods 1\nnr_throttled 1\nthrottled_usec %d\n", ns/1000))
}

func TestThrottle(t *testing.T) {
	q := newQuota()
	th := &throttle{root: q}
	now := 1000 * ms
	// check asks for the last d before now.
	check := func(what string, d, want int64) {
		t.Helper()
		if got := th.during(now-d, now); got != want {
			t.Errorf("%s: throttled for %v of %v, want %v", what, time.Duration(got), time.Duration(d), time.Duration(want))
		}
	}
	q.waited("pod/app", 700*ms)
	check("the first look", 50*ms, 0)

	now += 100 * ms
	q.waited("pod/app", 730*ms)
	check("some of the wait", 50*ms, 30*ms)
	check("a later deadline", 10*ms, 10*ms)
	now += ms
	q.waited("pod/app", 735*ms)
	check("another shard, without a look", 51*ms, 30*ms)

	now += 100 * ms
	check("what has come since", 50*ms, 5*ms)
	now += 20 * ms
	check("nothing more", 10*ms, 0)
	check("a wait over both", 300*ms, 35*ms)

	now += 100 * ms
	q.waited("pod/app", 2000*ms)
	check("several CPUs", 80*ms, 80*ms)

	// A group without a quota does not count, until it has been seen to have one.
	now += 100 * ms
	q.waited("pod", 5000*ms)
	check("a group without a quota", 50*ms, 0)
	q.limit("pod", "90000 100000")
	now += findEvery
	check("a group that has one now, first look", 50*ms, 0)
	now += 100 * ms
	q.waited("pod", 5020*ms)
	check("and then", 50*ms, 20*ms)

	// The process is moved to where there is none.
	for name := range q.MapFS {
		if name != "proc/self/mountinfo" {
			delete(q.MapFS, name)
		}
	}
	q.put("proc/self/cgroup", "0::/\n")
	now += 100 * ms
	check("moved", 50*ms, 0)
	now += findEvery
	check("moved, and looked for", 50*ms, 0)
	if th.limits != nil {
		t.Error("a limit where there is none")
	}
}

// noFiles is a machine without cgroups, which counts what is asked of it.
type noFiles struct{ asked int }

func (n *noFiles) Open(name string) (fs.File, error) {
	n.asked++
	return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
}

// TestThrottleNone: where there are no quotas they are looked for, but rarely.
func TestThrottleNone(t *testing.T) {
	n := new(noFiles)
	th := &throttle{root: n}
	for k := range int64(1000) {
		now := 10*ms*k + 1
		if got := th.during(now-2*ms, now); got != 0 {
			t.Fatalf("throttled for %d", got)
		}
	}
	if n.asked == 0 || n.asked > 2 {
		t.Errorf("looked %d times in 10 s", n.asked)
	}
}

// TestThrottleBusy: nobody waits for another one who reads the counters.
func TestThrottleBusy(t *testing.T) {
	th := newThrottle()
	th.reading.Lock()
	defer th.reading.Unlock()
	th.spans[0] = span{from: 0, to: 2, waited: 1}
	told := make(chan int64, 1)
	go func() { told <- th.during(1, 3) }()
	select {
	case d := <-told:
		if d != 1 {
			t.Errorf("throttled for %d ns, and not for what was known before", d)
		}
	case <-time.After(time.Minute):
		t.Fatal("it waits for the counters to be read")
	}
}
