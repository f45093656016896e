//go:build amd64 || arm64

package trace

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// childVariable makes this test's executable play one of the children below.
const childVariable = "DETENT_TRACE_CHILD"

var children = map[string]func(){
	"direct":   func() { every(time.Millisecond, readDirectly) },
	"cpu-time": func() { every(time.Millisecond, func() { readClock(unix.CLOCK_THREAD_CPUTIME_ID) }) },
	"sleeps":   func() { every(2*time.Millisecond, func() {}) },
	"clock":    func() { every(time.Millisecond, readALot) },
	"timerfd":  timerfds,
	"nonsense": func() {
		every(time.Millisecond, func() {
			for id := range int32(100) {
				var ts unix.Timespec
				_ = unix.ClockGettime(1000+id, &ts)
			}
		})
	},
	"nanosleep": func() {
		runtime.LockOSThread()
		for {
			ts := unix.NsecToTimespec(2e6)
			unix.Nanosleep(&ts, nil)
		}
	},
	"forks": func() {
		every(time.Millisecond, func() {
			cmd := exec.Command("/proc/self/exe")
			// The race detector would have each wait for a second at its end.
			cmd.Env = append(os.Environ(), childVariable+"=short", "GORACE=atexit_sleep_ms=0")
			cmd.Stdout, cmd.Stderr = io.Discard, io.Discard
			_ = cmd.Run()
		})
	},
	"short": func() {
		for range 100 {
			readDirectly()
		}
		os.Exit(0)
	},
	"exec": func() {
		bufio.NewReader(os.Stdin).ReadString('\n')
		os.Setenv(childVariable, "direct")
		err := unix.Exec("/proc/self/exe", os.Args, os.Environ())
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	},
	"unprivileged": func() {
		_, err := Start(context.Background(), nil)
		var missing *MissingError
		fmt.Println(errors.As(err, &missing), errors.Is(err, fs.ErrPermission), err)
		os.Exit(0)
	},
}

func TestMain(m *testing.M) {
	name := os.Getenv(childVariable)
	if name == "" {
		os.Exit(m.Run())
	}
	play := children[name]
	if play == nil {
		fmt.Fprintln(os.Stderr, "no such child:", name)
		os.Exit(2)
	}
	fmt.Println("ready")
	switch name {
	case "exec", "short", "unprivileged": // they end by themselves, or read stdin
	default:
		// It ends with the test, whatever becomes of that.
		go func() {
			io.Copy(io.Discard, os.Stdin)
			os.Exit(0)
		}()
	}
	play()
}

//go:noinline
func readDirectly() { readClock(unix.CLOCK_MONOTONIC) }

//go:noinline
func readClock(id int32) {
	var ts unix.Timespec
	if err := unix.ClockGettime(id, &ts); err != nil {
		panic(err)
	}
}

//go:noinline
func readALot() {
	for range 20_000 {
		_ = time.Now()
	}
}

func every(d time.Duration, f func()) {
	for {
		f()
		time.Sleep(d)
	}
}

// timerfds waits for a timerfd in a blocking read.
func timerfds() {
	runtime.LockOSThread()
	fd, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_CLOEXEC)
	if err != nil {
		panic(err)
	}
	spec := unix.ItimerSpec{Value: unix.NsecToTimespec(2e6), Interval: unix.NsecToTimespec(2e6)}
	if err := unix.TimerfdSettime(fd, 0, &spec, nil); err != nil {
		panic(err)
	}
	var b [8]byte
	for {
		if _, err := unix.Read(fd, b[:]); err != nil && !errors.Is(err, unix.EINTR) {
			panic(err)
		}
	}
}

// A child is a running one.
type child struct {
	*exec.Cmd
	stdin io.WriteCloser
}

func (c *child) pid() int { return c.Process.Pid }

// startChild starts one that ends with the test.
func startChild(t *testing.T, name string) *child {
	t.Helper()
	c := &child{Cmd: exec.Command("/proc/self/exe")}
	c.Env = append(os.Environ(), childVariable+"="+name)
	c.Stderr = os.Stderr
	stdout, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if c.stdin, err = c.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.Process.Kill()
		c.Wait()
	})
	if line, err := bufio.NewReader(stdout).ReadString('\n'); line != "ready\n" {
		t.Fatalf("the child %s wrote %q: %v", name, line, err)
	}
	return c
}

// start starts a tracer that is closed with the test, or skips the test where that
// is not permitted.
func start(t *testing.T, o *Options) *Tracer {
	t.Helper()
	tracer, err := Start(context.Background(), o)
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, errors.ErrUnsupported) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := tracer.Close(); err != nil {
			t.Error("Close:", err)
		}
	})
	return tracer
}

// until takes snapshots until one holds, and returns it. How long that takes is the
// machine's business.
func until(t *testing.T, tracer *Tracer, what string, holds func(*Snapshot) bool) *Snapshot {
	t.Helper()
	var s *Snapshot
	for range 3000 {
		var err error
		if s, err = tracer.Snapshot(); err != nil {
			t.Fatal(err)
		}
		if holds(s) {
			return s
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("never: %s; dropped %v, hooks %+v", what, s.Dropped, s.Hooks)
	return nil
}

// needHook skips the test where the hook is absent.
func needHook(t *testing.T, tracer *Tracer, name string) {
	t.Helper()
	s, err := tracer.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range s.Hooks {
		if h.Name == name && h.Absent != "" {
			t.Skipf("%s is absent: %s", name, h.Absent)
		}
	}
}

func calls(p *Process, call, clock string) *ClockCalls {
	if p == nil {
		return nil
	}
	for i := range p.ClockCalls {
		if c := &p.ClockCalls[i]; c.Call == call && c.Clock == clock {
			return c
		}
	}
	return nil
}

// inStack says that a stack has a function whose name contains the words.
func inStack(stacks []Stack, words string) bool {
	for _, s := range stacks {
		for _, f := range s.Frames {
			if strings.Contains(f.Func, words) {
				return true
			}
		}
	}
	return false
}
