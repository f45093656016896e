package patient

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// The Throttled patient gets a fifth of a CPU, in pieces that a reader of the
// clock notices.
const (
	quota  = 20 * time.Millisecond
	period = 100 * time.Millisecond
)

// A cgroup is one of the patient's own, for the CPU controller of either version.
type cgroup struct {
	dir     string
	unified bool
}

// newCgroup makes one beside this process's own, or below it where the kernel's
// rules allow only that.
func newCgroup() (*cgroup, error) {
	own, err := ownCgroups()
	if err != nil {
		return nil, err
	}
	var errs []error
	for _, g := range own {
		for _, parent := range []string{g.dir, filepath.Dir(g.dir)} {
			made, err := g.make(parent)
			if err == nil {
				return made, nil
			}
			errs = append(errs, err)
		}
	}
	return nil, fmt.Errorf("no cgroup of its own: %w", errors.Join(append(errs, errors.ErrUnsupported)...))
}

func (g cgroup) make(parent string) (*cgroup, error) {
	dir, err := os.MkdirTemp(parent, "detent-patient-")
	if err != nil {
		return nil, err
	}
	made := &cgroup{dir, g.unified}
	if _, err := os.Stat(filepath.Join(dir, made.file())); err != nil {
		os.Remove(dir)
		return nil, fmt.Errorf("no CPU controller in %s: %w", parent, errors.ErrUnsupported)
	}
	return made, nil
}

// file is the one that sets the quota.
func (g *cgroup) file() string {
	if g.unified {
		return "cpu.max"
	}
	return "cpu.cfs_quota_us"
}

// ownCgroups returns this process's place in each hierarchy that may have the CPU
// controller.
func ownCgroups() ([]cgroup, error) {
	mounts, err := cgroupMounts()
	if err != nil {
		return nil, err
	}
	b, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return nil, err
	}
	var own []cgroup
	for line := range strings.Lines(string(b)) {
		// 4:memory:/path for version 1, 0::/path for version 2
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) != 3 {
			continue
		}
		for _, controller := range strings.Split(parts[1], ",") {
			if at, ok := mounts[controller]; ok {
				own = append(own, cgroup{filepath.Join(at, parts[2]), controller == ""})
			}
		}
	}
	return own, nil
}

// cgroupMounts returns where the CPU controller of version 1 is mounted, as "cpu",
// and version 2, as "".
func cgroupMounts() (map[string]string, error) {
	f, err := os.Open("/proc/self/mounts")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	found := make(map[string]string)
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) < 4 {
			continue
		}
		switch fields[2] {
		case "cgroup2":
			found[""] = fields[1]
		case "cgroup":
			for _, option := range strings.Split(fields[3], ",") {
				if option == "cpu" {
					found["cpu"] = fields[1]
				}
			}
		}
	}
	return found, lines.Err()
}

func (g *cgroup) limit(quota, period time.Duration) error {
	if g.unified {
		return g.write("cpu.max", fmt.Sprintf("%d %d", quota.Microseconds(), period.Microseconds()))
	}
	if err := g.write("cpu.cfs_period_us", strconv.FormatInt(period.Microseconds(), 10)); err != nil {
		return err
	}
	return g.write("cpu.cfs_quota_us", strconv.FormatInt(quota.Microseconds(), 10))
}

func (g *cgroup) add(pid int) error { return g.write("cgroup.procs", strconv.Itoa(pid)) }

func (g *cgroup) write(file, value string) error {
	return os.WriteFile(filepath.Join(g.dir, file), []byte(value), 0)
}

// remove takes the cgroup away. Its processes have been waited for, but the
// kernel may take a moment to forget the last one.
func (g *cgroup) remove() error {
	var err error
	for range 100 {
		if err = os.Remove(g.dir); err == nil || errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		time.Sleep(10 * time.Millisecond)
	}
	return err
}
