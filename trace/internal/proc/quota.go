package proc

import (
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A Quota is what a cgroup allows its processes of the CPU.
type Quota struct {
	Dir           string // below the root
	File          string // in Dir, that sets it
	Quota, Period time.Duration
	Periods       uint64
	Throttles     uint64
	Throttled     time.Duration
}

// Quota returns the tightest CPU quota over a process: that of its cgroup or of one
// above it. It returns nil if there is none, or none can be seen.
func (p *Process) Quota(root fs.FS) *Quota {
	var tightest *Quota
	for _, g := range p.Cgroups {
		var mount string
		switch {
		case len(g.Controllers) == 0:
			mount = cgroupMount(root, "cgroup2", "")
		case slices.Contains(g.Controllers, "cpu"):
			mount = cgroupMount(root, "cgroup", "cpu")
		}
		if mount == "" {
			continue
		}
		for at := g.Path; ; at = path.Dir(at) {
			q := readQuota(root, path.Join(mount, at))
			if q != nil && (tightest == nil || q.cpus() < tightest.cpus()) {
				tightest = q
			}
			if at == "/" || at == "." {
				break
			}
		}
	}
	return tightest
}

func (q *Quota) cpus() float64 { return float64(q.Quota) / float64(q.Period) }

// cgroupMount returns where a hierarchy is mounted, below the root; "" if nowhere.
func cgroupMount(root fs.FS, kind, option string) string {
	b, err := fs.ReadFile(root, "proc/self/mounts")
	if err != nil {
		b, err = fs.ReadFile(root, "proc/mounts")
	}
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(b)) {
		f := strings.Fields(line)
		if len(f) < 4 || f[2] != kind {
			continue
		}
		if option == "" || slices.Contains(strings.Split(f[3], ","), option) {
			return strings.TrimPrefix(f[1], "/")
		}
	}
	return ""
}

// readQuota reads the files of either version.
func readQuota(root fs.FS, dir string) *Quota {
	q := &Quota{Dir: dir}
	if b, err := fs.ReadFile(root, dir+"/cpu.max"); err == nil {
		f := strings.Fields(string(b)) // "20000 100000", or "max 100000"
		if len(f) != 2 {
			return nil
		}
		quota, err := strconv.ParseInt(f[0], 10, 64)
		period, err2 := strconv.ParseInt(f[1], 10, 64)
		if err != nil || err2 != nil {
			return nil
		}
		q.File = "cpu.max"
		q.Quota, q.Period = time.Duration(quota)*time.Microsecond, time.Duration(period)*time.Microsecond
	} else {
		quota, err := readNumber(root, dir+"/cpu.cfs_quota_us")
		period, err2 := readNumber(root, dir+"/cpu.cfs_period_us")
		if err != nil || err2 != nil || quota < 0 {
			return nil
		}
		q.File = "cpu.cfs_quota_us"
		q.Quota, q.Period = time.Duration(quota)*time.Microsecond, time.Duration(period)*time.Microsecond
	}
	if q.Quota <= 0 || q.Period <= 0 {
		return nil
	}
	b, err := fs.ReadFile(root, dir+"/cpu.stat")
	if err != nil {
		return q
	}
	for line := range strings.Lines(string(b)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		n, _ := strconv.ParseUint(value, 10, 64)
		switch name {
		case "nr_periods":
			q.Periods = n
		case "nr_throttled":
			q.Throttles = n
		case "throttled_time": // version 1
			q.Throttled = time.Duration(n)
		case "throttled_usec": // version 2
			q.Throttled = time.Duration(n) * time.Microsecond
		}
	}
	return q
}

func readNumber(root fs.FS, name string) (int64, error) {
	b, err := fs.ReadFile(root, name)
	if err != nil {
		return 0, err
	}
	return strconv.ParseInt(strings.TrimSpace(string(b)), 10, 64)
}

// PIDs returns the processes of the cgroup in dir and of those below it.
func PIDs(root fs.FS, dir string) ([]int, error) {
	var pids []int
	err := fs.WalkDir(root, dir, func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil && name != dir:
			return nil // gone meanwhile
		case err != nil:
			return err
		case !d.IsDir():
			return nil
		}
		b, err := fs.ReadFile(root, name+"/cgroup.procs")
		if err != nil {
			if name == dir {
				return err
			}
			return nil
		}
		for word := range strings.FieldsSeq(string(b)) {
			if pid, err := strconv.Atoi(word); err == nil {
				pids = append(pids, pid)
			}
		}
		return nil
	})
	return pids, err
}
