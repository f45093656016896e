package timer_test

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/detent-go/detent/internal/suite"
	"github.com/detent-go/detent/timer"
)

// The wall clock is one for the whole machine: there is no namespace for it. So the
// tests that set it do so with DETENT_SICK=1 only, for some milliseconds, and put it
// back by what CLOCK_MONOTONIC has counted meanwhile. In case the process does not
// get that far, a guardian does, a child that waits for its end.

// guardianEnv has what the guardian puts back, a wallState.
const guardianEnv = "DETENT_TEST_CLOCK"

// wallState is how the wall clock was: its offset, and whether it counts as
// synchronized, which each set ends.
type wallState struct {
	offset   time.Duration
	status   int32
	maxError int64
	estError int64
}

func readWall(t testing.TB) wallState {
	var x unix.Timex
	if _, err := unix.Adjtimex(&x); err != nil {
		t.Fatal(err)
	}
	return wallState{wallOffset(t), x.Status, int64(x.Maxerror), int64(x.Esterror)}
}

func (w wallState) String() string {
	return fmt.Sprint(int64(w.offset), w.status, w.maxError, w.estError)
}

func parseWall(s string) (w wallState, err error) {
	_, err = fmt.Sscan(s, (*int64)(&w.offset), &w.status, &w.maxError, &w.estError)
	return w, err
}

// wallOffset returns how far the wall clock is ahead of CLOCK_MONOTONIC.
func wallOffset(t testing.TB) time.Duration {
	read := func(id int32) time.Duration {
		var ts unix.Timespec
		if err := unix.ClockGettime(id, &ts); err != nil {
			t.Fatal(err)
		}
		return time.Duration(ts.Nano())
	}
	best, offset := time.Hour, time.Duration(0)
	for range 20 {
		m1, w, m2 := read(unix.CLOCK_MONOTONIC), read(unix.CLOCK_REALTIME), read(unix.CLOCK_MONOTONIC)
		if d := m2 - m1; d < best {
			best, offset = d, w-m1-d/2
		}
	}
	return offset
}

// stepWall sets the wall clock by an offset.
func stepWall(by time.Duration) error {
	x := unix.Timex{Modes: unix.ADJ_SETOFFSET | unix.ADJ_NANO}
	sec, nsec := int64(by/time.Second), int64(by%time.Second)
	if nsec < 0 {
		sec, nsec = sec-1, nsec+1e9
	}
	setLong(&x.Time.Sec, sec)
	setLong(&x.Time.Usec, nsec)
	_, err := unix.Adjtimex(&x)
	return err
}

// putBack makes the wall clock as it was, unless what it is off by can be the
// measurement's error.
func (w wallState) putBack(t testing.TB) {
	if off := wallOffset(t) - w.offset; off.Abs() > 100*time.Microsecond {
		if err := stepWall(-off); err != nil {
			t.Errorf("the wall clock has not been put back, by %v: %v", off, err)
		}
	}
	x := unix.Timex{Modes: unix.ADJ_STATUS | unix.ADJ_MAXERROR | unix.ADJ_ESTERROR, Status: w.status}
	setLong(&x.Maxerror, w.maxError)
	setLong(&x.Esterror, w.estError)
	if _, err := unix.Adjtimex(&x); err != nil {
		t.Errorf("that the wall clock is synchronized has not been put back: %v", err)
	}
}

// setLong sets a field of the kernel's long, which differs between systems.
func setLong[T int32 | int64](to *T, v int64) { *to = T(v) }

// TestClockGuardian is the guardian.
func TestClockGuardian(t *testing.T) {
	value := os.Getenv(guardianEnv)
	if value == "" {
		t.Skip("for a process that sets the clock")
	}
	wall, err := parseWall(value)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, os.Stdin)
	wall.putBack(t)
}

// setter sets the wall clock, and puts it back at the end of the test. It skips the
// test where that is not wanted or not permitted.
func setter(t *testing.T) (step func(by time.Duration)) {
	if os.Getenv("DETENT_SICK") != "1" {
		t.Skip("sets the machine's wall clock: only with DETENT_SICK=1")
	}
	if os.Getuid() != 0 {
		t.Skip("needs root")
	}
	lock, err := os.OpenFile(filepath.Join(os.TempDir(), "detent-wall-clock.lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { lock.Close() })
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	wall := readWall(t)
	if _, err := unix.Adjtimex(&unix.Timex{Modes: unix.ADJ_STATUS, Status: wall.status}); err != nil {
		t.Skip("not permitted: ", err)
	}
	child := exec.Command(os.Args[0], "-test.run=^TestClockGuardian$")
	child.Env = append(os.Environ(), guardianEnv+"="+wall.String())
	child.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	child.Stdout, child.Stderr = os.Stderr, os.Stderr
	child.ExtraFiles = []*os.File{lock} // It is held until both have ended.
	input, err := child.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	sum := time.Duration(0)
	t.Cleanup(func() {
		if sum != 0 {
			if err := stepWall(-sum); err != nil {
				t.Error(err)
			}
		}
		wall.putBack(t)
		input.Close()
		if err := child.Wait(); err != nil {
			t.Errorf("guardian: %v", err)
		}
	})
	return func(by time.Duration) {
		t.Helper()
		if err := stepWall(by); err != nil {
			t.Errorf("setting the clock by %v: %v", by, err)
			return
		}
		sum += by
	}
}

// step is by how much the tests set the clock.
const step = 2 * time.Second

// firing is what a timer reports when it has fired: how late it is by the wall clock.
type firing struct {
	what string
	late time.Duration
}

// faces starts one timer of each sort that is due in d by the service's clock, and
// returns how many there are.
func faces(t *testing.T, s *timer.Service, d time.Duration, fired chan<- firing) int {
	due := s.Now().Round(0).Add(d)
	report := func(what string) { fired <- firing{what, time.Now().Round(0).Sub(due)} }
	s.AfterFunc(d, func() { report("AfterFunc") })
	s.AfterFuncAt(due, func() { report("AfterFuncAt") })
	s.WithSlack(time.Millisecond).AfterFunc(d, func() { report("AfterFunc with slack") })
	timer.NewQueue(s, func([]timer.Expired[int]) { report("Queue") }).Add(d, 1)
	ctx, cancel := s.WithTimeout(context.Background(), d)
	for what, wait := range map[string]func(){
		"NewTimer":    func() { <-s.NewTimer(d).C },
		"Sleep":       func() { s.Sleep(d) },
		"Sleep, spun": func() { s.WithSpin().SleepUntil(due) },
		"context":     func() { <-ctx.Done(); cancel() },
	} {
		go func() {
			wait()
			report(what)
		}()
	}
	// Those of the goroutines have to be there, too.
	for deadline := time.Now().Add(time.Minute); s.Stats().Pending < 8; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d timers pending, want 8", s.Stats().Pending)
		}
	}
	return 8
}

// The wall clock is set forward, beyond deadlines: timers fire long before their
// durations have passed.
func TestClockSetForward(t *testing.T) {
	set := setter(t)
	for try := 1; ; try++ {
		s := mustNew(t, &timer.Options{Clock: timer.Realtime})
		fired := make(chan firing, 16)
		start := time.Now()
		late := timer.AfterFunc(step, func() {})
		n := faces(t, s, step-50*time.Millisecond, fired)
		set(step)
		for range n {
			if f := suite.Await(t, "a timer fired", fired); f.late < 0 {
				t.Errorf("%s: %v early by the wall clock", f.what, -f.late)
			}
		}
		took := time.Since(start)
		pending := late.Stop()
		set(-step)
		t.Logf("%d timers of %v have fired after %v, p99 of lateness %v", n, step, took, s.Stats().Lateness.Quantile(0.99))
		if pending {
			break // A monotonic timer of that duration has not.
		}
		if try == 5 {
			t.Fatalf("%d times the timers have fired no sooner than without the clock being set", try)
		}
	}
}

// The wall clock is set back before deadlines: nothing fires until it has come to
// them again.
func TestClockSetBack(t *testing.T) {
	set := setter(t)
	for try := 1; ; try++ {
		s := mustNew(t, &timer.Options{Clock: timer.Realtime})
		fired := make(chan firing, 16)
		const d = 300 * time.Millisecond
		start := time.Now()
		n := faces(t, s, d, fired)
		mono := timer.NewTimer(d)
		set(-step)
		inTime := time.Since(start) < d/2
		// The monotonic clock has not been set.
		suite.Await(t, "the monotonic timer fired", mono.C)
		if took := time.Since(start); took < d {
			t.Errorf("a monotonic timer of %v has fired after %v", d, took)
		}
		time.Sleep(50 * time.Millisecond)
		early := len(fired)
		set(step)
		for range n {
			// Where the test was late, one may have been about to report already.
			if f := suite.Await(t, "a timer fired", fired); f.late < 0 && inTime {
				t.Errorf("%s: %v early by the wall clock", f.what, -f.late)
			}
		}
		// Who spins does not while the end is far off.
		if spun := s.Stats().Spun; spun > d/4 {
			t.Errorf("%v spun", spun)
		}
		if inTime && early > 0 {
			t.Errorf("%d timers fired while the clock was set back", early)
		}
		if inTime || try == 5 {
			return
		}
	}
}

// On a clock that has been set back, what is started since counts from there, and
// what has gone before does not hold it up; with a queue that was in use before, too.
func TestClockSetBackSince(t *testing.T) {
	set := setter(t)
	for try := 1; ; try++ {
		s := mustNew(t, &timer.Options{Clock: timer.Realtime})
		delivered := make(chan int, 16)
		q := timer.NewQueue(s.WithSlack(5*time.Millisecond), func(batch []timer.Expired[int]) {
			for _, x := range batch {
				delivered <- x.Value
			}
		})
		s.AfterFunc(time.Hour, func() {})
		s.Sleep(time.Millisecond)
		q.Add(time.Millisecond, 0)
		suite.Await(t, "the first value was delivered", delivered)
		set(-step)
		start := time.Now()
		fired := make(chan firing, 16)
		n := faces(t, s, 50*time.Millisecond, fired)
		q.Add(20*time.Millisecond, 1)
		for range n {
			if f := suite.Await(t, "a timer fired", fired); f.late < 0 {
				t.Errorf("%s: %v early by the wall clock", f.what, -f.late)
			}
		}
		suite.Await(t, "the second value was delivered", delivered)
		took := time.Since(start)
		set(step)
		if took < step*3/4 { // and not when the clock had come to the old time
			break
		}
		if try == 5 {
			t.Fatalf("%d times timers have fired no sooner than if the clock had not been set back", try)
		}
	}
}

// A deadline is one of the wall clock, though its monotonic reading says otherwise
// since the clock was set.
func TestClockSetDeadline(t *testing.T) {
	set := setter(t)
	for try := 1; ; try++ {
		s := mustNew(t, &timer.Options{Clock: timer.Realtime})
		start := time.Now()
		at := start.Add(step)
		set(step)
		var took []time.Duration
		suite.Await(t, "NewTimerAt", s.NewTimerAt(at).C)
		took = append(took, time.Since(start))
		ctx, cancel := s.WithDeadline(context.Background(), at)
		suite.Await(t, "WithDeadline", ctx.Done())
		cancel()
		took = append(took, time.Since(start))
		if err := s.SleepUntilContext(context.Background(), at); err != nil {
			t.Error(err)
		}
		took = append(took, time.Since(start))
		poll := timer.NewQueue[int](s, nil)
		poll.AddAt(at, 1)
		if n := poll.Poll(make([]timer.Expired[int], 1)); n != 1 {
			t.Error("a value in the past is not delivered")
		}
		// And set back there is time again, whatever the monotonic reading says.
		start = time.Now().Add(-time.Second)
		set(-step)
		ctx, cancel = s.WithDeadline(context.Background(), start)
		tm := s.NewTimerAt(start)
		pending := ctx.Err() == nil && tm.Stop()
		inTime := time.Since(start) < step*3/4
		cancel()
		if took[len(took)-1] < step*3/4 && inTime {
			if !pending {
				t.Error("what is due a second later by the wall clock has fired")
			}
			return
		}
		if try == 5 {
			t.Fatalf("%d times too late to tell, at last after %v", try, took)
		}
	}
}

// A ticker keeps ticking on a clock that is set, by its schedule on the wall clock.
func TestClockSetTicker(t *testing.T) {
	set := setter(t)
	s := mustNew(t, &timer.Options{Clock: timer.Realtime})
	const period = 10 * time.Millisecond
	start := time.Now()
	tk := s.NewTicker(period)
	defer tk.Stop()
	ticks, sets := 0, 0
	for _, by := range []time.Duration{0, step, -step, -step, step} {
		if by != 0 {
			set(by)
			sets++
		}
		for range 4 {
			suite.Await(t, fmt.Sprintf("a tick after a step of %v", by), tk.C)
			ticks++
		}
	}
	// One may have been in the channel, and one comes out of turn with each step.
	if most := int(time.Since(start)/period) + 1 + 2*sets; ticks > most {
		t.Errorf("%d ticks in %v", ticks, time.Since(start))
	}
}

// The ticks of an Interval come on, whichever way the clock is set: aligned ones by
// the wall clock, others a period after each other.
func TestClockSetInterval(t *testing.T) {
	set := setter(t)
	s := mustNew(t, &timer.Options{Clock: timer.Realtime})
	const period = 20 * time.Millisecond
	ticks := map[string]chan timer.Ticked{}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for name, o := range map[string]*timer.TickOptions{"plain": nil, "aligned": {Aligned: true}} {
		waited, called := make(chan timer.Ticked, 1000), make(chan timer.Ticked, 1000)
		ticks["Ticks, "+name], ticks["TickFunc, "+name] = waited, called
		go func() {
			for tick := range s.NewInterval(period, o).Ticks(ctx) {
				waited <- tick
			}
		}()
		iv := s.TickFunc(period, func(tick timer.Ticked) { called <- tick }, o)
		defer iv.Stop()
	}
	var slowest time.Duration
	for try := 1; ; try++ {
		for _, by := range []time.Duration{-step, step} {
			set(by)
			start := time.Now()
			for name, c := range ticks {
				for len(c) > 0 {
					<-c
				}
				suite.Await(t, fmt.Sprintf("%s: a tick after a step of %v", name, by), c)
				suite.Await(t, fmt.Sprintf("%s: a second tick after a step of %v", name, by), c)
			}
			slowest = max(slowest, time.Since(start))
		}
		t.Logf("ticks within %v", slowest)
		if slowest < step*3/4 { // and not when the clock had come to the old time
			return
		}
		if try == 5 {
			t.Fatal("ticks come as late as if the interval did not notice")
		}
		slowest = 0
	}
}

// OnClockSet is told of every step.
func TestClockSetTold(t *testing.T) {
	set := setter(t)
	told := make(chan time.Duration, 16)
	s := mustNew(t, &timer.Options{Clock: timer.Realtime, OnClockSet: func(d time.Duration) { told <- d }})
	s.AfterFunc(time.Hour, func() {})
	for _, by := range []time.Duration{step, -step, 20 * time.Millisecond, -20 * time.Millisecond} {
		set(by)
		start := time.Now()
		got := suite.Await(t, "OnClockSet was called", told)
		t.Logf("a step of %v was told as %v after %v", by, got, time.Since(start))
		if (got - by).Abs() > 10*time.Millisecond {
			t.Errorf("a step of %v was told as %v", by, got)
		}
	}
	if portable {
		return
	}
	for _, by := range []time.Duration{5 * time.Microsecond, -5 * time.Microsecond} {
		set(by)
		if got := suite.Await(t, "OnClockSet was called", told); got*by <= 0 {
			t.Errorf("a step of %v was told as %v", by, got)
		}
	}
}

// The wall clock steps to and fro while timers are started, stopped, and fire: each
// fires once.
func TestClockSetStress(t *testing.T) {
	set := setter(t)
	s := mustNew(t, &timer.Options{Clock: timer.Realtime})
	var fired, started, stopped atomic.Int64
	stop := make(chan struct{})
	done := make(chan struct{})
	const jump = 5 * time.Millisecond
	for range 4 {
		go func() {
			defer func() { done <- struct{}{} }()
			for k := 0; ; k++ {
				select {
				case <-stop:
					return
				default:
				}
				d := time.Duration(k*7919%10_000) * time.Microsecond
				started.Add(1)
				tm := s.AfterFunc(d, func() { fired.Add(1) })
				if k%3 == 0 && tm.Stop() {
					stopped.Add(1)
				}
				if k%5 == 0 {
					s.Sleep(d / 10)
				}
			}
		}()
	}
	for range 50 {
		set(jump)
		time.Sleep(2 * time.Millisecond)
		set(-jump)
		time.Sleep(2 * time.Millisecond)
	}
	close(stop)
	for range 4 {
		suite.Await(t, "a starter ended", done)
	}
	for limit := time.Now().Add(time.Minute); fired.Load()+stopped.Load() < started.Load(); time.Sleep(time.Millisecond) {
		if time.Now().After(limit) {
			t.Fatalf("%d started, %d stopped, %d fired", started.Load(), stopped.Load(), fired.Load())
		}
	}
	time.Sleep(20 * time.Millisecond)
	if fired.Load()+stopped.Load() != started.Load() {
		t.Errorf("%d started, %d stopped, %d fired", started.Load(), stopped.Load(), fired.Load())
	}
}

// bootEnv is set in the process that TestClockNamespace starts, to the offset of its
// CLOCK_BOOTTIME.
const bootEnv = "DETENT_TEST_BOOT_OFFSET"

// TestClockNamespace runs tests of the clocks in a process whose CLOCK_BOOTTIME and
// CLOCK_MONOTONIC are set apart, by a time namespace. (That a system is suspended is
// faked in package shard: here it cannot be.)
func TestClockNamespace(t *testing.T) {
	if os.Getenv(bootEnv) != "" {
		t.Skip("runs already")
	}
	if portable {
		t.Skip("a portable build has no CLOCK_BOOTTIME")
	}
	exe, err := os.Executable()
	if err != nil {
		t.Skip(err)
	}
	const offset = 400 * 24 * time.Hour
	cmd := exec.Command("unshare", "--time", "--monotonic", "5000", "--boottime", strconv.FormatInt(int64(offset/time.Second), 10),
		exe, "-test.run=^TestClock(Offset|Reads|Deadlines|Spin|Close)$", "-test.v", "-test.timeout=5m")
	cmd.Env = append(os.Environ(), bootEnv+"="+strconv.FormatInt(int64(offset), 10))
	out, err := cmd.CombinedOutput()
	if !strings.Contains(string(out), "=== RUN") {
		t.Skipf("no time namespace here: %v\n%s", err, out)
	}
	if err != nil || strings.Count(string(out), "\n--- PASS: TestClock") != 5 {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestClockOffset checks that the process is in the namespace.
func TestClockOffset(t *testing.T) {
	value := os.Getenv(bootEnv)
	if value == "" {
		t.Skip("for TestClockNamespace")
	}
	offset, err := strconv.ParseInt(value, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil {
		t.Fatal(err)
	}
	if ts.Nano() < offset {
		t.Errorf("CLOCK_BOOTTIME is %d, before its offset of %d", ts.Nano(), offset)
	}
}
