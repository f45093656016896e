//go:build (amd64 || arm64) && !detent_portable

package clock

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// The tests in fault_linux_test.go change the state of the whole machine. Each
// change is put back by the test's cleanup and, in case the test process does not
// get that far, by a guardian: a child in a process group of its own that waits
// for the end of its standard input, then puts the old state back itself.

const guardianEnv = "DETENT_CLOCK_GUARDIAN"

// guardian does a guardian's work if this process is one.
func guardian() bool {
	what, value, ok := strings.Cut(os.Getenv(guardianEnv), "=")
	if !ok {
		return false
	}
	io.Copy(io.Discard, os.Stdin)
	if err := putBack(what, value); err != nil {
		fmt.Fprintf(os.Stderr, "guardian: %s not put back to %s: %v\n", what, value, err)
		os.Exit(1)
	}
	return true
}

// guard sees to it that some state is put back to value when the test ends,
// however it ends. If it cannot be set at all, the test is skipped.
func guard(t *testing.T, what, value string) {
	t.Helper()
	if testing.Short() {
		t.Skip("changes the machine's state: not with -short")
	}
	if err := putBack(what, value); errors.Is(err, os.ErrPermission) || errors.Is(err, unix.EROFS) {
		t.Skip("not permitted: ", err)
	} else if err != nil {
		t.Fatal(err)
	}
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), guardianEnv+"="+what+"="+value)
	child.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	child.Stderr = os.Stderr
	input, err := child.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); errors.Is(err, unix.ENOEXEC) {
		t.Skip("in an emulator: ", err)
	} else if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := putBack(what, value); err != nil {
			t.Error(err)
		}
		input.Close()
		if err := child.Wait(); err != nil {
			t.Error("guardian: ", err)
		}
	})
}

// putBack sets a state of the machine. Doing it twice does no harm.
func putBack(what, value string) error {
	switch what {
	case "clocksource":
		return os.WriteFile(clocksourceFile, []byte(value), 0)
	case "frequency":
		frequency, err := strconv.ParseInt(value, 10, 64)
		if err != nil {
			return err
		}
		return setFrequency(frequency)
	case "offset":
		// Of Real from Mono. A difference below what the way here takes is
		// none.
		offset, err := strconv.ParseInt(value, 10, 64)
		if err != nil {
			return err
		}
		back := time.Duration(offset - (Real.Nanos() - Mono.Nanos()))
		if back.Abs() < 50*time.Microsecond {
			back = 0
		}
		return stepReal(back)
	}
	return fmt.Errorf("no such state: %q", what)
}

// frequency returns by how much the kernel's clocks are slewed, in 2^-16 ppm.
func frequency(t *testing.T) int64 {
	var tx unix.Timex
	if _, err := unix.Adjtimex(&tx); err != nil {
		t.Fatal(err)
	}
	return tx.Freq
}

func setFrequency(frequency int64) error {
	tx := unix.Timex{Modes: unix.ADJ_FREQUENCY, Freq: frequency}
	_, err := unix.Adjtimex(&tx)
	return err
}

// stepReal sets the wall clock by an offset.
func stepReal(by time.Duration) error {
	tx := unix.Timex{Modes: unix.ADJ_SETOFFSET | unix.ADJ_NANO}
	sec, nsec := int64(by)/1e9, int64(by)%1e9
	if nsec < 0 {
		sec, nsec = sec-1, nsec+1e9
	}
	tx.Time = unix.Timeval{Sec: sec, Usec: nsec}
	_, err := unix.Adjtimex(&tx)
	return err
}
