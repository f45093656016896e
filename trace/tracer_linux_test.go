//go:build amd64 || arm64

package trace

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"
	"time"

	"github.com/cilium/ebpf"

	"github.com/detent-go/detent/trace/internal/proc"
	"github.com/detent-go/detent/trace/internal/symbol"
)

// TestDirectCalls: a program that makes the system call itself is found, with the
// reason and the place.
func TestDirectCalls(t *testing.T) {
	c := startChild(t, "direct")
	tracer := start(t, &Options{PIDs: []int{c.pid()}, Features: WatchClockCalls})
	needHook(t, tracer, "tp_btf/sys_enter")
	s := until(t, tracer, "calls with stacks", func(s *Snapshot) bool {
		c := calls(s.Process(c.pid()), "clock_gettime", "monotonic")
		return c != nil && c.Count >= 100 && inStack(c.Stacks, "readDirectly")
	})
	found := calls(s.Process(c.pid()), "clock_gettime", "monotonic")
	if found.Reason != ReasonDirect {
		t.Errorf("reason %s, want %s; evidence %+v", found.Reason, ReasonDirect, found.Evidence)
	}
	if found.Sampled == 0 || found.Sampled > found.Count {
		t.Errorf("%d samples of %d calls", found.Sampled, found.Count)
	}
	if exe := s.Process(c.pid()).Exe; exe == "" {
		t.Error("the program's file is unknown")
	}
	for _, p := range s.Processes {
		if p.PID != c.pid() {
			t.Errorf("process %d is in the snapshot, and was not asked for", p.PID)
		}
	}
}

// TestClockNotOnVDSO: the CPU-time clocks are no fault of the machine.
func TestClockNotOnVDSO(t *testing.T) {
	c := startChild(t, "cpu-time")
	tracer := start(t, &Options{PIDs: []int{c.pid()}, Features: WatchClockCalls})
	needHook(t, tracer, "tp_btf/sys_enter")
	s := until(t, tracer, "calls", func(s *Snapshot) bool { return calls(s.Process(c.pid()), "clock_gettime", "thread-cpu") != nil })
	if got := calls(s.Process(c.pid()), "clock_gettime", "thread-cpu").Reason; got != ReasonClock {
		t.Errorf("reason %s, want %s", got, ReasonClock)
	}
}

// TestOnVDSO: a program that reads its clock 10 million times a second through the vDSO is
// not reported, and the profile says what it does.
func TestOnVDSO(t *testing.T) {
	c := startChild(t, "clock")
	tracer := start(t, &Options{PIDs: []int{c.pid()}, Features: WatchClockCalls | WatchProfile})
	needHook(t, tracer, "perf_event/cpu-clock")
	s := until(t, tracer, "samples in the vDSO", func(s *Snapshot) bool {
		p := s.Process(c.pid())
		return p != nil && p.Profile != nil && (p.Profile.VDSO+p.Profile.ClockCall) >= 10
	})
	p := s.Process(c.pid())
	if p.Profile.VDSO == 0 {
		t.Skip("this machine's clocks are not on the vDSO")
	}
	if len(p.ClockCalls) != 0 {
		t.Errorf("system calls for clocks: %+v", p.ClockCalls)
	}
	if p.Profile.ClockShare() <= 0 || p.Profile.ClockShare() > 1 {
		t.Errorf("%v of the CPU time goes into clocks", p.Profile.ClockShare())
	}
	if len(p.Profile.Stacks) == 0 || p.Profile.Stacks[0].Frames[0].Object != "[vdso]" {
		t.Errorf("stacks of the samples in the vDSO: %+v", p.Profile.Stacks)
	}
}

// TestCallTimes: how long the kernel takes is counted once for each call that has ended.
func TestCallTimes(t *testing.T) {
	c := startChild(t, "direct")
	tracer := start(t, &Options{PIDs: []int{c.pid()}, Features: WatchClockCalls | WatchCallTimes})
	needHook(t, tracer, "tp_btf/sys_exit")
	s := until(t, tracer, "times", func(s *Snapshot) bool {
		c := calls(s.Process(c.pid()), "clock_gettime", "monotonic")
		return c != nil && c.Took != nil && c.Took.Count >= 50
	})
	took := calls(s.Process(c.pid()), "clock_gettime", "monotonic").Took
	if took.Sum <= 0 || took.Max < took.Mean() || took.Quantile(1) > took.Max {
		t.Errorf("%d calls took %v, at most %v", took.Count, took.Sum, took.Max)
	}
}

// checkParts: the parts add up to the total, but for the time between two readings
// of the clock for one moment.
func checkParts(t *testing.T, l *Lateness) {
	t.Helper()
	var sum time.Duration
	checkBuckets(t, &l.Total)
	for _, h := range []*Histogram{&l.Slack, &l.Interrupt, &l.Wake, &l.Throttled, &l.RunQueue} {
		checkBuckets(t, h)
		if h.Count != l.Total.Count {
			t.Errorf("%s: a part counts %d, the total %d", l.Kind, h.Count, l.Total.Count)
		}
		sum += h.Sum
	}
	// Never more than the total. Less, where a part was cut at zero.
	if sum > l.Total.Sum+time.Duration(l.Total.Count)*time.Microsecond {
		t.Errorf("%s: the parts are %v, the total %v", l.Kind, sum, l.Total.Sum)
	}
	if sum < l.Total.Sum*9/10 {
		t.Errorf("%s: the parts are %v only, the total %v", l.Kind, sum, l.Total.Sum)
	}
}

// checkBuckets: the kernel's programs put values into the buckets that their sum
// agrees with.
func checkBuckets(t *testing.T, h *Histogram) {
	t.Helper()
	var least, most time.Duration
	var n uint64
	for i, c := range h.Buckets {
		n += c
		most += time.Duration(c) * BucketMax(i)
		if i > 0 {
			least += time.Duration(c) * (BucketMax(i-1) + 1)
		}
	}
	if n != h.Count || h.Sum < least || h.Sum > most {
		t.Errorf("%d values of %v are in buckets of %d values between %v and %v", h.Count, h.Sum, n, least, most)
	}
}

// TestLateness: the wake-ups of each kind of timer are counted, and split.
func TestLateness(t *testing.T) {
	for name, kind := range map[string]TimerKind{"nanosleep": KindNanosleep, "timerfd": KindTimerfd, "sleeps": KindEpoll} {
		t.Run(name, func(t *testing.T) {
			c := startChild(t, name)
			tracer := start(t, &Options{PIDs: []int{c.pid()}, Features: WatchLateness | WatchTimers})
			needHook(t, tracer, "tp_btf/sched_switch")
			needHook(t, tracer, "tp_btf/hrtimer_expire_entry")
			needHook(t, tracer, "/proc/kallsyms")
			var l *Lateness
			s := until(t, tracer, "wake-ups by "+string(kind), func(s *Snapshot) bool {
				l = nil
				if p := s.Process(c.pid()); p != nil {
					for i := range p.Lateness {
						if p.Lateness[i].Kind == kind {
							l = &p.Lateness[i]
						}
					}
				}
				return l != nil && l.Total.Count >= 20
			})
			checkParts(t, l)
			p := s.Process(c.pid())
			i := slices.IndexFunc(p.Timers, func(u TimerUse) bool { return u.Kind == kind && u.Func == "" })
			if i < 0 {
				t.Fatalf("no timers of kind %s: %+v", kind, p.Timers)
			}
			u := p.Timers[i]
			// A timer that was armed before the tracer was there expires under it.
			if u.Armed == 0 || u.Woken == 0 || u.Expired > u.Armed+uint64(p.Threads)+1 {
				t.Errorf("timers: %+v", u)
			}
			if u.Asked <= 0 {
				t.Errorf("timers armed for %v in all", u.Asked)
			}
			if p.Wait == nil || p.Wait.RunQueue.Count < l.Total.Count {
				t.Errorf("fewer waits for a CPU than wake-ups: %+v", p.Wait)
			}
		})
	}
}

// TestLateEvents: with a threshold that any wake-up passes, events tell of them.
func TestLateEvents(t *testing.T) {
	c := startChild(t, "nanosleep")
	tracer := start(t, &Options{PIDs: []int{c.pid()}, Features: WatchLateness, Late: 1})
	needHook(t, tracer, "tp_btf/sched_switch")
	for e := range tracer.Events() {
		if e.Kind != EventLate {
			continue
		}
		l := e.Late
		if e.PID != c.pid() || l.TID == 0 || l.Total <= 0 {
			t.Errorf("%+v %+v", e, l)
		}
		if sum := l.Slack + l.Interrupt + l.Wake + l.Throttled + l.RunQueue; sum > l.Total+time.Microsecond {
			t.Errorf("the parts are %v: %v", sum, e)
		}
		if d := time.Since(e.Time); d < 0 || d > time.Minute {
			t.Errorf("an event of %v ago", d)
		}
		return
	}
	t.Fatal("no event")
}

// TestEveryone: all processes, and the kernel's own timers.
func TestEveryone(t *testing.T) {
	c := startChild(t, "direct")
	tracer := start(t, nil)
	needHook(t, tracer, "tp_btf/sys_enter")
	needHook(t, tracer, "tp_btf/hrtimer_start")
	needHook(t, tracer, "/proc/kallsyms")
	first := until(t, tracer, "the child's calls and the kernel's timers", func(s *Snapshot) bool {
		return calls(s.Process(c.pid()), "clock_gettime", "monotonic") != nil &&
			slices.ContainsFunc(s.Kernel, func(u TimerUse) bool { return u.Func != "" && u.Func != "unknown" && u.Expired > 0 })
	})
	c.Process.Kill()
	c.Wait()
	last := until(t, tracer, "the child's end", func(s *Snapshot) bool {
		p := s.Process(c.pid())
		return p != nil && p.Ended
	})
	if a, b := calls(first.Process(c.pid()), "clock_gettime", "monotonic"), calls(last.Process(c.pid()), "clock_gettime", "monotonic"); b == nil || b.Count < a.Count {
		t.Errorf("what the ended process did is gone: %+v after %+v", b, a)
	}
	d := last.Since(first)
	if d.Elapsed <= 0 || d.Elapsed >= last.Elapsed {
		t.Errorf("the difference is of %v, of %v", d.Elapsed, last.Elapsed)
	}
	if last.Overhead() <= 0 {
		t.Errorf("the programs took %v", last.Overhead())
	}
}

// TestChildren: what a followed process starts is followed, to its end.
func TestChildren(t *testing.T) {
	c := startChild(t, "forks")
	tracer := start(t, &Options{PIDs: []int{c.pid()}, Children: true, Features: WatchClockCalls})
	needHook(t, tracer, "tp_btf/sys_enter")
	needHook(t, tracer, "tp_btf/sched_process_fork")
	until(t, tracer, "an ended child with the place of its calls", func(s *Snapshot) bool {
		for _, p := range s.Processes {
			if k := calls(&p, "clock_gettime", "monotonic"); p.PID != c.pid() && p.Ended && k != nil && k.Count == 100 {
				return k.Reason == ReasonDirect && inStack(k.Stacks, "readDirectly")
			}
		}
		return false
	})
}

// TestBypassEvents: the first call for a clock is told of, with the clock.
func TestBypassEvents(t *testing.T) {
	c := startChild(t, "forks")
	tracer := start(t, &Options{PIDs: []int{c.pid()}, Children: true, Features: WatchClockCalls})
	needHook(t, tracer, "tp_btf/sys_enter")
	needHook(t, tracer, "tp_btf/sched_process_fork")
	for e := range tracer.Events() {
		if e.Kind == EventBypass && e.Clock == "monotonic" {
			if e.Call != "clock_gettime" || !strings.HasSuffix(e.String(), "reads the clock monotonic by system calls") {
				t.Errorf("%+v: %s", e, e)
			}
			return
		}
	}
	t.Error("the tracer has ended")
}

// TestExec: a followed process that runs another program is looked at anew.
func TestExec(t *testing.T) {
	c := startChild(t, "exec")
	tracer := start(t, &Options{PIDs: []int{c.pid()}, Features: WatchClockCalls})
	needHook(t, tracer, "tp_btf/sys_enter")
	needHook(t, tracer, "tp_btf/sched_process_exec")
	if _, err := c.stdin.Write([]byte("go\n")); err != nil {
		t.Fatal(err)
	}
	for e := range tracer.Events() {
		if e.Kind == EventExec && e.PID == c.pid() {
			break
		}
	}
	until(t, tracer, "the new program's calls", func(s *Snapshot) bool {
		k := calls(s.Process(c.pid()), "clock_gettime", "monotonic")
		return k != nil && inStack(k.Stacks, "readDirectly")
	})
	c.Process.Kill()
	c.Wait()
	for e := range tracer.Events() {
		if e.Kind == EventExit && e.PID == c.pid() {
			return
		}
	}
	t.Error("the end was not told")
}

// TestGoTimers: the runtime's own account of its timers' lateness.
func TestGoTimers(t *testing.T) {
	c := startChild(t, "sleeps")
	tracer := start(t, &Options{PIDs: []int{c.pid()}, Features: WatchGoTimers})
	needHook(t, tracer, "uprobe/runtime timers")
	s := until(t, tracer, "timers", func(s *Snapshot) bool {
		p := s.Process(c.pid())
		return p != nil && p.GoTimers != nil && p.GoTimers.Count >= 20
	})
	// The netpoller waits in whole milliseconds: some are late by a part of one,
	// none by hours.
	if h := s.Process(c.pid()).GoTimers; h.Max <= 0 || h.Mean() > time.Hour {
		t.Errorf("timers late by %v, at most %v", h.Mean(), h.Max)
	}
}

// TestBeginsFunction: nothing but the beginning of a function is probed.
func TestBeginsFunction(t *testing.T) {
	cache := symbol.NewCache(os.DirFS("/"))
	p, err := proc.Read(os.DirFS("/"), os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	p.ReadDetails(os.DirFS("/"))
	o := cache.Object(p, p.Named(p.Exe))
	if o == nil {
		t.Fatal("this program has no symbols")
	}
	for _, name := range goTimerFunctions {
		addr, ok := o.Func(name)
		offset, ok2 := o.Offset(addr)
		if !ok || !ok2 {
			t.Fatalf("%s is not found", name)
		}
		if err := beginsFunction("/proc/self/exe", offset); err != nil {
			t.Error(err)
		}
		for _, off := range []uint64{offset + 1, offset + 4, offset - 1, 0, 1 << 40} {
			if beginsFunction("/proc/self/exe", off) == nil {
				t.Errorf("%s begins at %#x, and at %#x as well", name, offset, off)
			}
		}
	}
}

// TestGoScheduler reads what a program that has been built in the usual way tells.
func TestGoScheduler(t *testing.T) {
	goTool, err := exec.LookPath("go")
	if err != nil {
		t.Skip("no go command to build the program with:", err)
	}
	exe := t.TempDir() + "/program"
	build := exec.Command(goTool, "build", "-o", exe, "./testdata/program")
	build.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=mod")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), "GOMAXPROCS=3")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	tracer := start(t, &Options{PIDs: []int{cmd.Process.Pid}, Features: WatchGoScheduler, Interval: 20 * time.Millisecond})
	s := until(t, tracer, "goroutines that waited", func(s *Snapshot) bool {
		p := s.Process(cmd.Process.Pid)
		return p != nil && p.Go != nil && (p.Go.Absent != "" || p.Go.Latency.Count > 10)
	})
	g := s.Process(cmd.Process.Pid).Go
	if g.Absent != "" || g.GOMAXPROCS != 3 || g.IdlePs < 0 || g.IdlePs > 3 || g.Version != runtime.Version() {
		t.Errorf("%+v", g)
	}
	seen := g.Latency.Count
	cmd.Process.Kill()
	cmd.Wait()
	s = until(t, tracer, "its end", func(s *Snapshot) bool { p := s.Process(cmd.Process.Pid); return p != nil && p.Ended })
	if g := s.Process(cmd.Process.Pid).Go; g == nil || g.GOMAXPROCS != 3 || g.Latency.Count < seen {
		t.Errorf("after its end: %+v", g)
	}
}

// TestClose: no program of the tracer's stays in the kernel, a second Close does
// nothing, and the context ends it as well.
func TestClose(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	tracer, err := Start(ctx, nil)
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, errors.ErrUnsupported) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	for range tracer.Events() {
	}
	for range 2 {
		if err := tracer.Close(); err != nil {
			t.Error(err)
		}
	}
	if _, err := tracer.Snapshot(); err == nil {
		t.Error("a snapshot of a closed tracer")
	}
	for _, h := range tracer.hooks {
		if h.active() || h.prog != nil && h.prog.FD() >= 0 {
			t.Errorf("%s is still there", h.name)
		}
	}
	if _, err := Start(ctx, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("Start with an ended context: %v", err)
	}
}

func TestNoSuchProcess(t *testing.T) {
	if _, err := Start(context.Background(), &Options{PIDs: []int{1 << 30}}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v", err)
	}
	if _, err := Start(context.Background(), &Options{Cgroup: "/sys/fs/cgroup/no/such"}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v", err)
	}
}

// TestUnprivileged: what is missing is named.
func TestUnprivileged(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root, to start a child without it")
	}
	// The directory of the executable may be closed to others.
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), childVariable+"=unprivileged")
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	out, err := cmd.Output()
	if errors.Is(err, fs.ErrPermission) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	_, line, _ := strings.Cut(string(out), "\n")
	if !strings.HasPrefix(line, "true true ") || !strings.Contains(line, "CAP_BPF") {
		t.Errorf("without privileges: %s", line)
	}
}

// TestCgroup: what is in a cgroup is followed, also what comes into it later.
func TestCgroup(t *testing.T) {
	var dir string
	for _, parent := range []string{"/sys/fs/cgroup/unified", "/sys/fs/cgroup", "/sys/fs/cgroup/cpu"} {
		made, err := os.MkdirTemp(parent, "detent-trace-")
		if err != nil {
			continue
		}
		defer os.Remove(made)
		if _, err := os.Stat(made + "/cgroup.procs"); err == nil {
			dir = made
			break
		}
	}
	if dir == "" {
		t.Skip("may not make a cgroup")
	}
	inside, outside, later := startChild(t, "direct"), startChild(t, "direct"), startChild(t, "direct")
	join := func(c *child) {
		t.Helper()
		if err := os.WriteFile(dir+"/cgroup.procs", []byte(strconv.Itoa(c.pid())), 0); err != nil {
			t.Skip("may not move a process:", err)
		}
	}
	// The directory cannot be removed while there is one in it.
	defer func() {
		for _, c := range []*child{inside, later} {
			c.Process.Kill()
			c.Wait()
		}
	}()
	join(inside)
	tracer := start(t, &Options{Cgroup: dir, Features: WatchClockCalls, Interval: 20 * time.Millisecond})
	defer tracer.Close()
	needHook(t, tracer, "tp_btf/sys_enter")
	has := func(s *Snapshot, c *child) bool {
		return calls(s.Process(c.pid()), "clock_gettime", "monotonic") != nil
	}
	until(t, tracer, "the one inside", func(s *Snapshot) bool { return has(s, inside) })
	join(later)
	s := until(t, tracer, "the one that came later", func(s *Snapshot) bool { return has(s, later) })
	if has(s, outside) {
		t.Error("the one outside is followed")
	}
}

func TestMissing(t *testing.T) {
	root := func(status, lockdown string) fs.FS {
		m := fstest.MapFS{"proc/self/status": {Data: []byte(status)}}
		if lockdown != "" {
			m["sys/kernel/security/lockdown"] = &fstest.MapFile{Data: []byte(lockdown)}
		}
		return m
	}
	const all, none = "CapEff:\t000001ffffffffff\n", "Name:\tx\nCapEff:\t0000000000000000\n"
	for name, c := range map[string]struct {
		root  fs.FS
		err   error
		words []string
	}{
		"no capabilities": {root(none, ""), fs.ErrPermission, []string{"CAP_BPF", "CAP_PERFMON"}},
		"one of two":      {root("CapEff:\t0000008000000000\n", ""), fs.ErrPermission, []string{"CAP_PERFMON"}},
		"lockdown":        {root(all, "none integrity [confidentiality]\n"), fs.ErrPermission, []string{"lockdown"}},
		"a container":     {root(all, "[none] integrity confidentiality\n"), fs.ErrPermission, []string{"seccomp"}},
	} {
		err := missing(c.root, c.err)
		var m *MissingError
		if !errors.As(err, &m) || !errors.Is(err, fs.ErrPermission) {
			t.Errorf("%s: %v", name, err)
			continue
		}
		text := strings.Join(m.Missing, "\n")
		for _, w := range c.words {
			if !strings.Contains(text, w) {
				t.Errorf("%s: %q does not name %s", name, text, w)
			}
		}
		if len(m.Missing) != len(c.words) {
			t.Errorf("%s: %q", name, m.Missing)
		}
	}
	if err := missing(root(all, ""), ebpf.ErrNotSupported); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("an old kernel: %v", err)
	}
	// As package ebpf writes it, with advice that is wrong.
	refused := fmt.Errorf("map create: %w (MEMLOCK may be too low, consider rlimit.RemoveMemlock)", fs.ErrPermission)
	if err := missing(root(none, ""), refused); strings.Contains(err.Error(), "MEMLOCK") || !strings.Contains(err.Error(), "map create") || !errors.Is(err, refused) {
		t.Errorf("a refusal: %v", err)
	}
	other := errors.New("other")
	if err := missing(root(all, ""), other); !errors.Is(err, other) {
		t.Errorf("any other: %v", err)
	}
}
