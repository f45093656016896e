package atexec

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// start holds a command, or skips the test where the kernel forbids that.
func start(t *testing.T, cmd *exec.Cmd) *Held {
	t.Helper()
	h, err := Start(cmd)
	if errors.Is(err, fs.ErrPermission) {
		t.Skip("may not trace a child:", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		h.Resume()
		cmd.Process.Kill()
		cmd.Wait()
	})
	return h
}

// state returns a line of /proc/PID/status.
func state(t *testing.T, pid int, name string) string {
	t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		if rest, ok := strings.CutPrefix(line, name+":"); ok {
			return strings.TrimSpace(rest)
		}
	}
	t.Fatalf("no %s in the status of %d", name, pid)
	return ""
}

// TestHeld: the command stands still until it is resumed, and nobody traces it
// after that.
func TestHeld(t *testing.T) {
	var out bytes.Buffer
	cmd := exec.Command("/bin/sh", "-c", "grep TracerPid /proc/self/status; exit 7")
	cmd.Stdout = &out
	h := start(t, cmd)
	if got := state(t, h.PID(), "State"); !strings.HasPrefix(got, "t") {
		t.Errorf("the held command is in state %q", got)
	}
	if out.Len() != 0 {
		t.Errorf("the held command has written %q", &out)
	}
	for range 2 {
		if err := h.Resume(); err != nil {
			t.Fatal(err)
		}
	}
	var exit *exec.ExitError
	if err := cmd.Wait(); !errors.As(err, &exit) || exit.ExitCode() != 7 {
		t.Errorf("the command ended with %v, want exit status 7", err)
	}
	if got := strings.Fields(out.String()); len(got) != 2 || got[1] != "0" {
		t.Errorf("the resumed command found %q", got)
	}
}

// TestHideAux: the command does not find the vDSO, and the rest of its vector is
// as it was.
func TestHideAux(t *testing.T) {
	own, err := os.ReadFile("/proc/self/auxv")
	if err != nil {
		t.Skip(err)
	}
	if _, ok := values(own)[SysinfoEHDR]; !ok {
		t.Skip("this process has no vDSO itself")
	}
	cmd := exec.Command("/bin/cat", "/proc/self/auxv")
	var out bytes.Buffer
	cmd.Stdout = &out
	h := start(t, cmd)
	if err := h.HideAux(SysinfoEHDR); err != nil {
		t.Fatal(err)
	}
	if err := h.HideAux(SysinfoEHDR); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("hiding it again: %v", err)
	}
	if err := h.Resume(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	// What the kernel shows is its own copy: that the program's is another is
	// for a program to say which reads it, as patient's does. Here: that it
	// still runs, with a vector that it needs for its page size and loader.
	if got := values(out.Bytes()); got[6] != values(own)[6] {
		t.Errorf("page size %d, want %d", got[6], values(own)[6])
	}
}

func values(b []byte) map[uint64]uint64 {
	m := make(map[uint64]uint64)
	for i := 0; i+16 <= len(b); i += 16 {
		m[binary.NativeEndian.Uint64(b[i:])] = binary.NativeEndian.Uint64(b[i+8:])
	}
	return m
}

func TestStartMissing(t *testing.T) {
	if _, err := Start(exec.Command("/no/such/program")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a program that is not there: %v", err)
	}
}
