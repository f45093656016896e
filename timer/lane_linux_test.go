//go:build linux && !detent_portable

package timer_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/detent-go/detent/internal/suite"
	"github.com/detent-go/detent/timer"
)

// settings is what is set for a thread.
type settings struct {
	slack    int // ns
	policy   uint32
	flags    uint64
	priority uint32
	cpus     unix.CPUSet
}

// settingsHere returns those of the calling thread.
func settingsHere(t testing.TB) settings {
	t.Helper()
	slack, err := unix.PrctlRetInt(unix.PR_GET_TIMERSLACK, 0, 0, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	s := settingsOf(t, 0)
	s.slack = slack
	return s
}

// settingsOf returns those of a thread, less its timer slack.
func settingsOf(t testing.TB, tid int) (s settings) {
	t.Helper()
	attr, err := unix.SchedGetAttr(tid, 0)
	if err != nil {
		if errors.Is(err, unix.ESRCH) {
			return settings{} // It has ended.
		}
		t.Fatal(err)
	}
	s.policy, s.flags, s.priority = attr.Policy, attr.Flags, attr.Priority
	if err := unix.SchedGetaffinity(tid, &s.cpus); err != nil && !errors.Is(err, unix.ESRCH) {
		t.Fatal(err)
	}
	return s
}

// mayFIFO skips the test where SCHED_FIFO is not permitted.
func mayFIFO(t testing.TB) {
	t.Helper()
	s, err := timer.NewLane(&timer.LaneOptions{Priority: 1})
	if errors.Is(err, fs.ErrPermission) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	closes(t, s)
}

// someCPU is one that the process may use.
func someCPU(t testing.TB) int {
	t.Helper()
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		t.Fatal(err)
	}
	for cpu := range 1024 {
		if set.IsSet(cpu) {
			return cpu
		}
	}
	t.Fatal("no CPU")
	return 0
}

// TestLaneSettings: the thread is as asked for, that which takes over too; and no
// other thread is, nor one of those that come when it has gone.
func TestLaneSettings(t *testing.T) {
	before := settingsOf(t, 0)
	var one unix.CPUSet
	cpu := someCPU(t)
	one.Set(cpu)
	for name, c := range map[string]struct {
		o    timer.LaneOptions
		want settings
	}{
		"default": {want: settings{slack: 1, policy: before.policy, cpus: before.cpus}},
		"cpu":     {o: timer.LaneOptions{CPUs: []int{cpu}}, want: settings{slack: 1, policy: before.policy, cpus: one}},
		"fifo": {o: timer.LaneOptions{Priority: 7}, want: settings{
			slack: 1, policy: unix.SCHED_FIFO, flags: unix.SCHED_FLAG_RESET_ON_FORK, priority: 7, cpus: before.cpus,
		}},
	} {
		t.Run(name, func(t *testing.T) {
			if c.o.Priority > 0 {
				mayFIFO(t)
			}
			s := mustLaneOpen(t, &c.o)
			check := func(who string) {
				t.Helper()
				got := onLane(t, s, func() settings { return settingsHere(t) })
				if c.o.Priority > 0 {
					// The kernel keeps no slack for such a thread, and shows
					// it or 0.
					got.slack = c.want.slack
				}
				if got != c.want {
					t.Errorf("the %s thread is %+v, want %+v", who, got, c.want)
				}
			}
			check("first")
			s.AfterFunc(0, runtime.Goexit)
			check("second")
			if err := s.Stats().WakerErr; err != nil {
				t.Error(err)
			}
			tid := onLane(t, s, func() string { return thread(t) })
			othersAre(t, tid, before)
			closes(t, s)
			suite.Eventually(t, "the thread is gone", func() bool { return !threadThere(tid) })
			othersAre(t, "", before)
		})
	}
}

// othersAre checks the settings of all threads but one, of many goroutines that
// need a thread each among them.
func othersAre(t *testing.T, lane string, want settings) {
	t.Helper()
	const n = 20
	slacks, release := make(chan int), make(chan struct{})
	defer close(release)
	for range n {
		go func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			slacks <- settingsHere(t).slack
			<-release
		}()
	}
	for range n {
		if got := <-slacks; got == 1 {
			t.Error("another goroutine runs with the timer slack of a lane")
		}
	}
	list, err := os.ReadDir("/proc/self/task")
	if err != nil {
		t.Fatal(err)
	}
	for _, task := range list {
		if task.Name() == lane {
			continue
		}
		tid, err := strconv.Atoi(task.Name())
		if err != nil {
			t.Fatal(err)
		}
		if got := settingsOf(t, tid); got != want && got != (settings{}) {
			t.Errorf("thread %d beside the lane is %+v, want %+v", tid, got, want)
		}
	}
}

// TestLaneChild: what a callback executes does not inherit the priority.
func TestLaneChild(t *testing.T) {
	mayFIFO(t)
	s := mustLane(t, &timer.LaneOptions{Priority: 5})
	policy := onLane(t, s, func() string {
		p, err := os.StartProcess("/bin/cat", []string{"cat", "/proc/self/sched"}, &os.ProcAttr{Files: []*os.File{nil, nil, nil}})
		if err != nil {
			return err.Error()
		}
		defer func() { _, _ = p.Wait() }()
		attr, err := unix.SchedGetAttr(p.Pid, 0)
		if err != nil {
			return err.Error()
		}
		return strconv.Itoa(int(attr.Policy))
	})
	if policy != strconv.Itoa(unix.SCHED_NORMAL) {
		if _, err := strconv.Atoi(policy); err != nil {
			t.Skip(policy)
		}
		t.Errorf("the policy of a child is %s", policy)
	}
}

// TestLaneLockMemory: the memory is locked. In a process of its own, since it stays
// so.
func TestLaneLockMemory(t *testing.T) {
	if !inChild(t) {
		return
	}
	if locked(t) != 0 {
		t.Skip("memory is locked already")
	}
	s, err := timer.NewLane(&timer.LaneOptions{LockMemory: true})
	if errors.Is(err, fs.ErrPermission) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	if locked(t) == 0 {
		t.Error("no memory is locked")
	}
	buf := make([]byte, 8<<20) // The heap grows nevertheless,
	for i := range buf {
		buf[i] = 1
	}
	runtime.KeepAlive(&buf)
	runtime.GC() // and shrinks.
	suite.Await(t, "a timer fired", s.After(time.Millisecond))
	closes(t, s)
}

// locked returns how much of the process's memory is locked, in KB.
func locked(t testing.TB) int {
	t.Helper()
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Skip(err)
	}
	_, line, ok := strings.Cut(string(status), "VmLck:")
	if !ok {
		t.Skip("no VmLck")
	}
	n, err := strconv.Atoi(strings.Fields(line)[0])
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// drop takes the capabilities for priorities and for locked memory, and the
// limits that stand in for them, from the process.
func drop(t testing.TB, memlock uint64) {
	t.Helper()
	for resource, most := range map[int]uint64{unix.RLIMIT_RTPRIO: 0, unix.RLIMIT_MEMLOCK: memlock} {
		if err := unix.Setrlimit(resource, &unix.Rlimit{Cur: most, Max: most}); err != nil {
			t.Skip(err)
		}
	}
	if os.Geteuid() == 0 {
		const nobody = 65534
		if err := syscall.Setuid(nobody); err != nil {
			t.Skip(err)
		}
	}
}

// TestLanePermission: what the process may not do is an error that says so, and
// leaves no thread.
func TestLanePermission(t *testing.T) {
	if !inChild(t) {
		return
	}
	drop(t, 64<<10)
	before := suite.Threads()
	refused := func(o timer.LaneOptions, word string) {
		t.Helper()
		s, err := timer.NewLane(&o)
		if s != nil || !errors.Is(err, fs.ErrPermission) || !strings.Contains(err.Error(), word) {
			t.Errorf("NewLane(%+v) = %v, %v; want an fs.ErrPermission that names %q", o, s, err, word)
		}
	}
	refused(timer.LaneOptions{Priority: 1}, "SCHED_FIFO")
	refused(timer.LaneOptions{Priority: 99, Spin: true, CPUs: []int{someCPU(t)}}, "SCHED_FIFO")
	refused(timer.LaneOptions{LockMemory: true}, "mlockall")
	if err := unix.Setrlimit(unix.RLIMIT_MEMLOCK, &unix.Rlimit{}); err != nil {
		t.Fatal(err)
	}
	refused(timer.LaneOptions{LockMemory: true}, "mlockall")
	suite.Eventually(t, "the threads are gone", func() bool { return suite.Threads() <= before+8 })
	mustLane(t, nil).Sleep(time.Microsecond)
}

// TestLanePermissionLost: where a callback ends its goroutine and the process may no
// longer do what it could, the thread that takes over goes without it, and Stats
// tells.
func TestLanePermissionLost(t *testing.T) {
	if !inChild(t) {
		return
	}
	mayFIFO(t)
	s := mustLane(t, &timer.LaneOptions{Priority: 3})
	drop(t, 0)
	if err := s.Stats().WakerErr; err != nil {
		t.Fatal(err)
	}
	s.AfterFunc(0, runtime.Goexit)
	got := onLane(t, s, func() settings { return settingsHere(t) })
	if got.policy != unix.SCHED_NORMAL {
		t.Errorf("the policy is %d", got.policy)
	}
	if err := s.Stats().WakerErr; !errors.Is(err, fs.ErrPermission) {
		t.Errorf("WakerErr is %v", err)
	}
}

// TestLaneNotOnMainThread: whatever thread the goroutine begins on, the lane's is not
// the main one, which could not end.
func TestLaneNotOnMainThread(t *testing.T) {
	for range 100 {
		s := mustLaneOpen(t, nil)
		if tid := onLane(t, s, func() int { return unix.Gettid() }); tid == unix.Getpid() {
			t.Error("the lane is on the main thread")
		}
		closes(t, s)
	}
	// The settings of the main thread as the system shows them are untouched.
	slack, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(unix.Getpid()), "timerslack_ns"))
	if err != nil {
		t.Skip(err)
	}
	if strings.TrimSpace(string(slack)) == "1" {
		t.Error("the main thread has the timer slack of a lane")
	}
}
