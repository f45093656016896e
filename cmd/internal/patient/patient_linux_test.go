package patient

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/detent-go/detent/cmd/internal/atexec"
)

func TestMain(m *testing.M) {
	Main()
	os.Exit(m.Run())
}

// eventually waits for what a patient does sooner or later, however busy the
// machine is.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for range 3000 {
		if holds() {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Errorf("never: %s", what)
}

// TestFaults: each patient runs, does what its fault is, and leaves nothing.
func TestFaults(t *testing.T) {
	for _, f := range Faults() {
		t.Run(string(f), func(t *testing.T) {
			var pid int
			var group string
			t.Run("runs", func(t *testing.T) {
				p := Run(t, f)
				pid = p.PID()
				eventually(t, "it uses the CPU", func() bool { return cpuTicks(t, pid) > 0 })
				switch f {
				case NoVDSO:
					eventually(t, "its stack has no vDSO", func() bool { return !vdsoOnStack(t, pid) })
				case Healthy:
					if !vdsoOnStack(t, pid) {
						t.Error("the healthy patient has no vDSO on its stack")
					}
				case Throttled:
					var err error
					if group, err = cgroupOf(pid); err != nil {
						t.Fatal(err)
					}
					eventually(t, "it is throttled", func() bool { return throttles(t, group) > 0 })
				}
			})
			if pid == 0 {
				return // skipped
			}
			eventually(t, "it is gone", func() bool {
				_, err := os.Stat(fmt.Sprintf("/proc/%d", pid))
				return errors.Is(err, os.ErrNotExist)
			})
			if _, err := os.Stat(group); group != "" && !errors.Is(err, os.ErrNotExist) {
				t.Errorf("%s has been left behind: %v", group, err)
			}
		})
	}
}

func cpuTicks(t *testing.T, pid int) int {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		t.Fatal(err)
	}
	s := string(b)
	fields := strings.Fields(s[strings.LastIndexByte(s, ')')+1:])
	user, _ := strconv.Atoi(fields[11])
	system, _ := strconv.Atoi(fields[12])
	return user + system
}

// vdsoOnStack says whether the address of the vDSO, which the process's map has,
// stands in what its runtime read at the start.
func vdsoOnStack(t *testing.T, pid int) bool {
	maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", pid))
	if err != nil {
		t.Fatal(err)
	}
	var vdso, stack, end uint64
	for line := range strings.Lines(string(maps)) {
		switch {
		case strings.Contains(line, "[vdso]"):
			fmt.Sscanf(line, "%x-", &vdso)
		case strings.Contains(line, "[stack]"):
			fmt.Sscanf(line, "%x-%x", &stack, &end)
		}
	}
	if vdso == 0 || end == 0 {
		t.Skip("no vDSO on this machine")
	}
	mem, err := os.Open(fmt.Sprintf("/proc/%d/mem", pid))
	if err != nil {
		t.Fatal(err)
	}
	defer mem.Close()
	buf := make([]byte, end-stack)
	n, _ := mem.ReadAt(buf, int64(stack))
	pair := make([]byte, 16)
	pair[0] = atexec.SysinfoEHDR
	for i := range 8 {
		pair[8+i] = byte(vdso >> (8 * i))
	}
	return bytes.Contains(buf[:n], pair)
}

func cgroupOf(pid int) (string, error) {
	mounts, err := cgroupMounts()
	if err != nil {
		return "", err
	}
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", pid))
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(string(b)) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) == 3 && strings.Contains(parts[2], "detent-patient-") {
			for name, at := range mounts {
				if dir := filepath.Join(at, parts[2]); strings.Contains(","+parts[1]+",", ","+name+",") {
					return dir, nil
				}
			}
		}
	}
	return "", fmt.Errorf("process %d is in no cgroup of a patient", pid)
}

func throttles(t *testing.T, dir string) int {
	b, err := os.ReadFile(filepath.Join(dir, "cpu.stat"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		if rest, ok := strings.CutPrefix(line, "nr_throttled "); ok {
			n, _ := strconv.Atoi(strings.TrimSpace(rest))
			return n
		}
	}
	t.Fatalf("no nr_throttled in %s/cpu.stat", dir)
	return 0
}
