//go:build (amd64 || arm64) && !detent_portable

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/detent-go/detent/cmd/internal/patient"
)

// examineRefused runs a command of detent in a sandbox that refuses clock_gettime.
func examineRefused(t *testing.T, vdso bool, args ...string) (stdout []byte, code int) {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, exe, args...)
	// What it starts itself ends with it, should it hang.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	if err := patient.Refuse(cmd, vdso); err != nil {
		t.Fatal(err)
	}
	stdout, err = cmd.Output()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	code = cmd.ProcessState.ExitCode()
	if code == patient.CannotRefuse {
		t.Skip(&stderr)
	}
	if code < 0 || strings.Contains(stderr.String(), "goroutine ") {
		t.Fatalf("exit code %d: %s", code, &stderr)
	}
	return stdout, code
}

// TestDoctorCallRefused: with a vDSO little depends on the system call; without one
// the clock stands still, and everything that waits would for ever.
func TestDoctorCallRefused(t *testing.T) {
	for _, c := range []struct {
		name     string
		vdso     bool
		want     []string
		not      []string
		critical bool
	}{
		{"with a vDSO", true, []string{"clocks.call-refused"}, []string{"clocks.stopped", withoutVDSO}, false},
		{"without", false, []string{"clocks.stopped"}, []string{withoutVDSO, "steps.back", "sleep.early"}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			stdout, code := examineRefused(t, c.vdso, "doctor", "--quick", "--json")
			var got struct {
				Verdict  string
				Findings []finding
			}
			if err := json.Unmarshal(stdout, &got); err != nil {
				t.Fatalf("%v: %s", err, stdout)
			}
			t.Logf("exit code %d, %s, %+v", code, got.Verdict, got.Findings)
			for _, id := range c.want {
				if !slices.ContainsFunc(got.Findings, func(f finding) bool { return f.ID == id }) {
					t.Errorf("%s was not found", id)
				}
			}
			for _, id := range c.not {
				if slices.ContainsFunc(got.Findings, func(f finding) bool { return f.ID == id }) {
					t.Errorf("%s was found", id)
				}
			}
			if c.critical && (code != exitCritical || !strings.Contains(got.Verdict, "stands still")) {
				t.Errorf("exit code %d, %q", code, got.Verdict)
			}
		})
	}
}

// TestRefusedCommands: the others neither hang nor crash there.
func TestRefusedCommands(t *testing.T) {
	for _, vdso := range []bool{true, false} {
		for _, args := range [][]string{{"clock", "--quick", "--json"}, {"sleep", "50us", "--count", "10", "--json"}} {
			stdout, code := examineRefused(t, vdso, args...)
			if code != exitOK && (vdso || code != exitFailed) || len(stdout) > 0 && !json.Valid(stdout) {
				t.Errorf("%q, vDSO %v: exit code %d, %s", args, vdso, code, stdout)
			}
		}
	}
	// The page is so large that the garbage collector would run, which needs a clock.
	page := filepath.Join(t.TempDir(), "page.html")
	_, code := examineRefused(t, false, "doctor", "--quick", "--html", page)
	if html, err := os.ReadFile(page); code != exitCritical || err != nil || !bytes.Contains(html, []byte("stands still")) {
		t.Errorf("exit code %d, %v", code, err)
	}
}
