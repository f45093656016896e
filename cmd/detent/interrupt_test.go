package main

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
)

// needWorkers skips the test where no process can be started.
func needWorkers(t *testing.T) {
	if runtime.GOOS == "js" || runtime.GOOS == "wasip1" || runtime.GOOS == "ios" {
		t.Skip("no processes on " + runtime.GOOS)
	}
}

// interrupt runs detent with args in a process of its own, sends what Ctrl-C sends
// once a line of its progress contains word, checks that it ends as interrupted, and
// returns what it has written to its standard output.
func interrupt(t *testing.T, word string, args ...string) (stdout []byte) {
	t.Helper()
	needWorkers(t)
	if runtime.GOOS == "windows" || runtime.GOOS == "plan9" {
		t.Skip("no interrupts can be sent on " + runtime.GOOS)
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), exe, args...)
	var out bytes.Buffer
	cmd.Stdout = &out
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(stderr)
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			t.Fatalf("no progress: %v", err)
		}
		if strings.Contains(line, word) {
			break
		}
	}
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	rest, _ := io.ReadAll(lines)
	var exit *exec.ExitError
	if err := cmd.Wait(); !errors.As(err, &exit) || exit.ExitCode() != exitInterrupted {
		t.Errorf("ended with %v, want exit code %d", err, exitInterrupted)
	}
	if !strings.Contains(string(rest), "detent: interrupted") {
		t.Errorf("stderr says %q", rest)
	}
	return out.Bytes()
}
