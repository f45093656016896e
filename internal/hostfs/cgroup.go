package hostfs

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A Cgroup is one group of the hierarchy that hands out CPU time.
type Cgroup struct {
	Path string // the directory of its files
	// Quota is how much CPU time its processes may use together in each Period; 0:
	// as much as there is.
	Quota, Period time.Duration
	// Burst is what may be saved up from periods that left some over.
	Burst time.Duration
	// Weight is its share against its siblings under contention; 0: not known.
	// 100 is the default of version 2, 1024 that of version 1.
	Weight int64
	// Idle says that it runs only when nobody else wants to.
	Idle bool
	Throttling
}

// CPUs returns the quota as a number of CPUs; 0: no limit.
func (c Cgroup) CPUs() float64 {
	if c.Quota <= 0 || c.Period <= 0 {
		return 0
	}
	return float64(c.Quota) / float64(c.Period)
}

// Throttling is what a quota has done since the group was made.
type Throttling struct {
	Periods   int64         // in which the group had something to run
	Throttled int64         // of them, those that it used up its quota in
	Waited    time.Duration // how long its CPUs were kept from running, summed over CPUs
}

// Cgroups are the groups that this process is in, from its own up to the one that
// is the highest to be seen. In a container that is the container's; there may
// be tighter limits above.
type Cgroups struct {
	Version int // 1 or 2: of the hierarchy with the cpu controller
	Groups  []Cgroup
}

// Tightest returns the group with the smallest limit; nil if there is no limit.
func (c *Cgroups) Tightest() *Cgroup {
	var tightest *Cgroup
	for i := range c.Groups {
		g := &c.Groups[i]
		if g.CPUs() > 0 && (tightest == nil || g.CPUs() < tightest.CPUs()) {
			tightest = g
		}
	}
	return tightest
}

// ReadCgroups reads the groups of this process. The error matches fs.ErrNotExist if
// there is no cpu controller to be seen.
func ReadCgroups(root fs.FS) (*Cgroups, error) {
	const name = "proc/self/cgroup"
	text, err := String(root, name)
	if err != nil {
		return nil, err
	}
	var v1, v2 string
	has1, has2 := false, false
	for line := range strings.Lines(text) {
		f := strings.SplitN(strings.TrimSpace(line), ":", 3)
		switch {
		case len(f) != 3:
			return nil, malformed(name, line)
		case slices.Contains(strings.Split(f[1], ","), "cpu"):
			v1, has1 = f[2], true
		case f[0] == "0" && f[1] == "":
			v2, has2 = f[2], true
		}
	}
	mounts, err := ReadMounts(root)
	if err != nil {
		return nil, err
	}
	if has1 {
		if m, ok := cgroupMount(mounts, 1, v1); ok {
			return readGroups(root, 1, m, v1)
		}
	}
	if has2 {
		if m, ok := cgroupMount(mounts, 2, v2); ok {
			return readGroups(root, 2, m, v2)
		}
	}
	return nil, &fs.PathError{Op: "open", Path: name, Err: fmt.Errorf("no cgroup with the cpu controller is mounted: %w", fs.ErrNotExist)}
}

// cgroupMount finds where the hierarchy is mounted: if in several places, where the
// group itself can be seen.
func cgroupMount(mounts []Mount, version int, group string) (Mount, bool) {
	var found Mount
	ok := false
	for _, m := range mounts {
		if version == 2 && m.Type != "cgroup2" || version == 1 && (m.Type != "cgroup" || !slices.Contains(m.Options, "cpu")) {
			continue
		}
		if _, below := under(m.Root, group); !ok || below {
			found, ok = m, true
			if below {
				break
			}
		}
	}
	return found, ok
}

// under returns the path of a group below the part of the hierarchy that is mounted.
func under(mounted, group string) (string, bool) {
	if mounted == "/" {
		return group, !strings.HasPrefix(group, "/..")
	}
	rest, ok := strings.CutPrefix(group, mounted)
	return rest, ok && (rest == "" || rest[0] == '/')
}

func readGroups(root fs.FS, version int, m Mount, group string) (*Cgroups, error) {
	// In a container, a group outside of what is mounted is the mounted one itself.
	below, ok := under(m.Root, group)
	if !ok {
		below = "/"
	}
	all := &Cgroups{Version: version}
	read := readGroup2
	if version == 1 {
		read = readGroup1
	}
	top := strings.TrimPrefix(path.Clean(m.Point), "/")
	for dir := strings.TrimPrefix(path.Join(m.Point, below), "/"); ; dir = path.Dir(dir) {
		if len(dir) < len(top) || dir == "." {
			break
		}
		g, err := read(root, dir)
		if err != nil {
			return nil, err
		}
		all.Groups = append(all.Groups, g)
		if dir == top {
			break
		}
	}
	return all, nil
}

// readGroup2 reads a group of version 2. The root group has none of the files, and
// one whose parent does not hand on the cpu controller has cpu.stat alone.
func readGroup2(root fs.FS, dir string) (Cgroup, error) {
	g := Cgroup{Path: "/" + dir}
	limit, err := String(root, dir+"/cpu.max")
	if err == nil {
		quota, period, _ := strings.Cut(limit, " ")
		p, err := strconv.ParseInt(period, 10, 64)
		if err != nil {
			return g, malformed(dir+"/cpu.max", limit)
		}
		g.Period = micros(p)
		if quota != "max" {
			q, err := strconv.ParseInt(quota, 10, 64)
			if err != nil {
				return g, malformed(dir+"/cpu.max", limit)
			}
			g.Quota = micros(q)
		}
	} else if !errors.Is(err, fs.ErrNotExist) {
		return g, err
	}
	stat, err := readStat(root, dir+"/cpu.stat")
	if err != nil {
		return g, err
	}
	g.Throttling = throttlingOf(2, stat)
	burst, err := optional(root, dir+"/cpu.max.burst")
	if err != nil {
		return g, err
	}
	g.Burst = micros(burst)
	if g.Weight, err = optional(root, dir+"/cpu.weight"); err != nil {
		return g, err
	}
	idle, err := optional(root, dir+"/cpu.idle")
	g.Idle = idle == 1
	return g, err
}

func readGroup1(root fs.FS, dir string) (Cgroup, error) {
	g := Cgroup{Path: "/" + dir}
	quota, err := optional(root, dir+"/cpu.cfs_quota_us")
	if err != nil {
		return g, err
	}
	period, err := optional(root, dir+"/cpu.cfs_period_us")
	if err != nil {
		return g, err
	}
	g.Period = micros(period)
	if quota > 0 {
		g.Quota = micros(quota)
	}
	stat, err := readStat(root, dir+"/cpu.stat")
	if err != nil {
		return g, err
	}
	g.Throttling = throttlingOf(1, stat)
	burst, err := optional(root, dir+"/cpu.cfs_burst_us")
	if err != nil {
		return g, err
	}
	g.Burst = micros(burst)
	if g.Weight, err = optional(root, dir+"/cpu.shares"); err != nil {
		return g, err
	}
	idle, err := optional(root, dir+"/cpu.idle")
	g.Idle = idle == 1
	return g, err
}

// optional reads a number from a file that not every kernel has.
func optional(root fs.FS, name string) (int64, error) {
	n, err := Int(root, name)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	return n, err
}

// readStat reads lines of a name and a number; a file that is not there has none.
func readStat(root fs.FS, name string) (map[string]int64, error) {
	text, err := String(root, name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	stat := map[string]int64{}
	for line := range strings.Lines(text) {
		key, value, ok := strings.Cut(strings.TrimSpace(line), " ")
		n, err := strconv.ParseInt(value, 10, 64)
		if !ok || err != nil || n < 0 {
			return nil, malformed(name, line)
		}
		stat[key] = n
	}
	return stat, nil
}

const mostMicros = int64(1<<63-1) / int64(time.Microsecond)

// micros keeps what a Duration can hold of a number of microseconds.
func micros(n int64) time.Duration {
	return time.Duration(max(0, min(n, mostMicros))) * time.Microsecond
}

func nanos(n int64) time.Duration { return time.Duration(max(0, n)) }
