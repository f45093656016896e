//go:build (amd64 || arm64) && !detent_portable

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"slices"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/detent-go/detent/cmd/internal/atexec"
)

// A finding as doctor --json writes it.
type finding struct{ ID, Severity, Confidence string }

// examine runs doctor as a process, which start starts, and returns what it finds
// of clocks.
func examine(t *testing.T, start func(*exec.Cmd) error) (findings []finding, code int) {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), exe, "doctor", "--quick", "--json", "--checks", "clocks,counter,steps")
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := start(cmd); err != nil {
		if errors.Is(err, fs.ErrPermission) || errors.Is(err, errors.ErrUnsupported) || errors.Is(err, syscall.EINVAL) {
			t.Skip(err)
		}
		t.Fatal(err)
	}
	var exit *exec.ExitError
	if err := cmd.Wait(); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	var got struct{ Findings []finding }
	if err := json.Unmarshal(stdout.Bytes(), &got); err != nil {
		t.Fatalf("%v: %s%s", err, &stdout, &stderr)
	}
	t.Logf("exit code %d, %+v", cmd.ProcessState.ExitCode(), got.Findings)
	return got.Findings, cmd.ProcessState.ExitCode()
}

const withoutVDSO = "clocks.process-without-vdso"

func isThat(f finding) bool { return f.ID == withoutVDSO }

// TestDoctorNoVDSO: a process that really has no vDSO really makes system calls,
// and doctor says so.
func TestDoctorNoVDSO(t *testing.T) {
	findings, code := examine(t, func(cmd *exec.Cmd) error {
		held, err := atexec.Start(cmd)
		if err != nil {
			return err
		}
		return errors.Join(held.HideAux(atexec.SysinfoEHDR), held.Resume())
	})
	i := slices.IndexFunc(findings, isThat)
	if i < 0 || findings[i].Severity != "critical" || code != exitCritical {
		t.Errorf("exit code %d, findings %+v", code, findings)
	}
}

// TestDoctorTimeNamespace: in a time namespace the vDSO still serves the clock. The
// same machine without one is what it is compared with.
func TestDoctorTimeNamespace(t *testing.T) {
	if _, err := os.Stat("/proc/self/ns/time"); err != nil {
		t.Skip(err)
	}
	before, _ := examine(t, (*exec.Cmd).Start)
	after, _ := examine(t, func(cmd *exec.Cmd) error {
		cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: unix.CLONE_NEWTIME}
		return cmd.Start()
	})
	if slices.ContainsFunc(after, isThat) && !slices.ContainsFunc(before, isThat) {
		t.Errorf("findings %+v, without a namespace %+v", after, before)
	}
}
