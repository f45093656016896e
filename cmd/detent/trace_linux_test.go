//go:build amd64 || arm64

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/detent-go/detent/cmd/internal/patient"
	"github.com/detent-go/detent/cmd/internal/watch"
	"github.com/detent-go/detent/trace"
)

// needTracing skips the test where this user or kernel does not permit it.
func needTracing(t *testing.T) {
	t.Helper()
	tracer, err := trace.Start(context.Background(), &trace.Options{Features: trace.WatchClockCalls, PIDs: []int{os.Getpid()}})
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, errors.ErrUnsupported) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := tracer.Close(); err != nil {
		t.Error(err)
	}
}

// self is the command as a process of its own.
func self(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return exec.CommandContext(t.Context(), exe, args...)
}

// TestTraceJSON: the stream names a patient and what is the matter with it, and
// ends with a total when it is interrupted.
func TestTraceJSON(t *testing.T) {
	needTracing(t)
	p := patient.Run(t, patient.Direct)
	cmd := self(t, "trace", "--json", "--interval", "200ms", fmt.Sprint(p.PID()))
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	named, totals := false, 0
	dec := json.NewDecoder(stdout)
	for {
		var l watch.Line
		if err := dec.Decode(&l); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatalf("%v; %s", err, &stderr)
		}
		if l.Total != nil {
			totals++
		}
		if named || l.Interval == nil {
			continue
		}
		for _, c := range processCalls(l.Interval, p.PID()) {
			if c.Reason != trace.ReasonDirect || len(c.Stacks) == 0 {
				continue
			}
			if caller, _ := watch.Caller(c.Stacks[0]); strings.HasSuffix(caller.Func, "patient.HotLoop") {
				named = true
				cmd.Process.Signal(os.Interrupt)
			}
		}
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("%v; %s", err, &stderr)
	}
	if !named || totals != 1 {
		t.Errorf("the patient was named: %v; %d totals", named, totals)
	}
}

func processCalls(s *trace.Snapshot, pid int) []trace.ClockCalls {
	if p := s.Process(pid); p != nil {
		return p.ClockCalls
	}
	return nil
}

// TestTraceText: without a terminal, a summary when the time is over.
func TestTraceText(t *testing.T) {
	needTracing(t)
	out, err := self(t, "trace", "--all", "--duration", "500ms").Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"clocksource", "How late timers", "Who arms timers"} {
		if !strings.Contains(string(out), want) {
			t.Errorf("%q is not in\n%s", want, out)
		}
	}
}

// TestTraceCommand: the command is watched from its start, with what it starts; its
// output is its own, and its status is the end's.
func TestTraceCommand(t *testing.T) {
	needTracing(t)
	cmd := self(t, "trace", "--", "sh", "-c", "sleep 0.2; echo out; echo err >&2; exit 7")
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	if code := cmd.ProcessState.ExitCode(); code != 7 {
		t.Errorf("status %d (%v); %s", code, err, &stderr)
	}
	if stdout.String() != "out\n" || !strings.HasPrefix(stderr.String(), "err\n") {
		t.Errorf("%q, %q", &stdout, &stderr)
	}
	if !strings.Contains(stderr.String(), "sleep") || !strings.Contains(stderr.String(), "nanosleep") {
		t.Errorf("the sleep was not seen:\n%s", &stderr)
	}
}

// TestTraceCommandOutput: a summary in a file, a signal that ends the command, one
// that cannot be started.
func TestTraceCommandOutput(t *testing.T) {
	needTracing(t)
	file := filepath.Join(t.TempDir(), "summary")
	cmd := self(t, "trace", "--json", "--output", file, "--", "sh", "-c", "kill -KILL $$")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	_ = cmd.Run()
	if code := cmd.ProcessState.ExitCode(); code != 128+int(syscall.SIGKILL) || stderr.Len() > 0 {
		t.Errorf("status %d; %s", code, &stderr)
	}
	b, err := os.ReadFile(file)
	if err != nil || !bytes.Contains(b, []byte(`"total"`)) {
		t.Errorf("%s, %v", b, err)
	}
	if out, err := self(t, "trace", "--", "/no/such/program").CombinedOutput(); err == nil || !strings.Contains(string(out), "no such file") {
		t.Errorf("%s, %v", out, err)
	}
}

// TestTraceUnprivileged: what is missing is said, and nothing else is done.
func TestTraceUnprivileged(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root, to start a process without it")
	}
	cmd := exec.CommandContext(t.Context(), "/proc/self/exe", "trace", "--all")
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	out, err := cmd.CombinedOutput()
	if errors.Is(err, fs.ErrPermission) {
		t.Skip(err)
	}
	if cmd.ProcessState.ExitCode() != exitFailed || !strings.Contains(string(out), "CAP_BPF") {
		t.Errorf("%v: %s", err, out)
	}
}

// openTerminal returns both ends of a new terminal.
func openTerminal(t *testing.T) (master, terminal *os.File) {
	t.Helper()
	fd, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		t.Skip("no terminals here:", err)
	}
	master = os.NewFile(uintptr(fd), "/dev/ptmx")
	t.Cleanup(func() { master.Close() })
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		t.Skip(err)
	}
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err != nil {
		t.Skip(err)
	}
	if err := unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: 40, Col: 120}); err != nil {
		t.Fatal(err)
	}
	terminal, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { terminal.Close() })
	return master, terminal
}

// TestTraceLive: on a real terminal the view shows a patient that starts while one
// looks, and q ends it.
func TestTraceLive(t *testing.T) {
	needTracing(t)
	master, terminal := openTerminal(t)
	cmd := self(t, "trace", "--all", "--interval", "200ms")
	cmd.Env = append(os.Environ(), "TERM=xterm-256color")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = terminal, terminal, terminal
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	terminal.Close()
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	if err := master.SetReadDeadline(time.Now().Add(2 * time.Minute)); err != nil {
		t.Skip(err)
	}
	var seen bytes.Buffer
	buf := make([]byte, 64<<10)
	read := func(want string) {
		t.Helper()
		for !strings.Contains(seen.String(), want) {
			n, err := master.Read(buf)
			seen.Write(buf[:n])
			if err != nil {
				t.Fatalf("%v before %q:\n%q", err, want, &seen)
			}
		}
	}
	read("clocksource")
	patient.Run(t, patient.Direct)
	read("HotLoop")
	if _, err := master.WriteString("q"); err != nil {
		t.Fatal(err)
	}
	go io.Copy(io.Discard, master)
	if err := cmd.Wait(); err != nil {
		t.Errorf("%v:\n%q", err, &seen)
	}
}

// TestTraceNoVDSO: the patient whose vector has no vDSO is told from one that makes
// the calls itself.
func TestTraceNoVDSO(t *testing.T) {
	needTracing(t)
	p := patient.Run(t, patient.NoVDSO)
	tracer, err := trace.Start(context.Background(), &trace.Options{PIDs: []int{p.PID()}, Features: trace.WatchClockCalls})
	if err != nil {
		t.Fatal(err)
	}
	defer tracer.Close()
	for range 3000 {
		s, err := tracer.Snapshot()
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range processCalls(s, p.PID()) {
			if c.Reason == trace.ReasonUnknown || len(c.Stacks) == 0 {
				continue
			}
			if c.Reason != trace.ReasonHidden {
				t.Errorf("reason %s, want %s: %+v", c.Reason, trace.ReasonHidden, c.Evidence)
			}
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Error("its calls were never seen")
}
