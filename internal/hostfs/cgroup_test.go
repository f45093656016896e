package hostfs

import (
	"errors"
	"io/fs"
	"testing"
	"time"
)

const mounts2 = "24 23 0:21 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n"

// The tightest limit is not the process's own but its pod's.
func TestCgroup2Nested(t *testing.T) {
	const pod = "sys/fs/cgroup/kubepods.slice/pod1"
	root := tree(
		"proc/self/mountinfo", mounts2,
		"proc/self/cgroup", "0::/kubepods.slice/pod1/app\n",
		pod+"/app/cpu.max", "max 100000\n",
		pod+"/app/cpu.stat", "usage_usec 1\nnr_periods 0\nnr_throttled 0\nthrottled_usec 0\n",
		pod+"/app/cpu.weight", "39\n",
		pod+"/cpu.max", "150000 100000\n",
		pod+"/cpu.max.burst", "5000\n",
		pod+"/cpu.stat", "usage_usec 7\nnr_periods 1000\nnr_throttled 250\nthrottled_usec 9000000\n",
		"sys/fs/cgroup/kubepods.slice/cpu.max", "max 100000\n",
		"sys/fs/cgroup/cpu.stat", "usage_usec 1\n",
	)
	c, err := ReadCgroups(root)
	if err != nil {
		t.Fatal(err)
	}
	if c.Version != 2 || len(c.Groups) != 4 || c.Groups[0].Weight != 39 || c.Groups[3].Path != "/sys/fs/cgroup" {
		t.Fatalf("%+v", c)
	}
	g := c.Tightest()
	if g == nil || g.Path != "/"+pod || g.CPUs() != 1.5 || g.Burst != 5*time.Millisecond || g.Throttling != (Throttling{1000, 250, 9 * time.Second}) {
		t.Errorf("%+v", g)
	}
}

// A container of Docker's on version 1 without a namespace: its own part is
// mounted over the top, and the path in /proc/self/cgroup is the host's.
func TestCgroup1Container(t *testing.T) {
	const dir = "sys/fs/cgroup/cpu,cpuacct"
	root := tree(
		"proc/self/mountinfo",
		"60 59 0:30 /docker/ab\\040c /sys/fs/cgroup/cpu,cpuacct ro - cgroup cgroup rw,cpu,cpuacct\n"+
			"61 59 0:31 /docker/ab\\040c /sys/fs/cgroup/cpuset ro - cgroup cgroup rw,cpuset\n",
		"proc/self/cgroup", "4:cpuset:/docker/ab c\n3:cpu,cpuacct:/docker/ab c\n0::/\n",
		dir+"/cpu.cfs_quota_us", "50000\n", dir+"/cpu.cfs_period_us", "100000\n",
		dir+"/cpu.stat", "nr_periods 8\nnr_throttled 2\nthrottled_time 5000\n", dir+"/cpu.shares", "512\n",
	)
	c, err := ReadCgroups(root)
	if err != nil {
		t.Fatal(err)
	}
	if len(c.Groups) != 1 || c.Version != 1 {
		t.Fatalf("%+v", c)
	}
	if g := c.Tightest(); g == nil || g.CPUs() != 0.5 || g.Waited != 5*time.Microsecond || g.Weight != 512 {
		t.Errorf("%+v", g)
	}
}

func TestCgroupsWithoutLimit(t *testing.T) {
	c, err := ReadCgroups(tree("proc/self/mountinfo", mounts2, "proc/self/cgroup", "0::/\n", "sys/fs/cgroup/cpu.stat", "usage_usec 3\n"))
	if err != nil || c.Tightest() != nil || len(c.Groups) != 1 {
		t.Errorf("%+v, %v", c, err)
	}
	// A quota of -1 is none.
	c, err = ReadCgroups(tree(
		"proc/self/mountinfo", "60 59 0:30 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n", "proc/self/cgroup", "1:cpu:/\n",
		"sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n", "sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n"))
	if err != nil || c.Tightest() != nil || c.Groups[0].CPUs() != 0 {
		t.Errorf("%+v, %v", c, err)
	}
	if _, err := ReadCgroups(tree("proc/self/mountinfo", "", "proc/self/cgroup", "0::/\n")); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	// A process moved below the root of its own namespace.
	c, err = ReadCgroups(tree("proc/self/mountinfo", mounts2, "proc/self/cgroup", "0::/../other\n", "sys/fs/cgroup/cpu.max", "200000 100000\n"))
	if err != nil || len(c.Groups) != 1 || c.Tightest().CPUs() != 2 {
		t.Errorf("%+v, %v", c, err)
	}
}

func TestCgroupMalformed(t *testing.T) {
	for file, text := range map[string]string{
		"proc/self/cgroup":         "what\n",
		"proc/self/mountinfo":      "what\n",
		"sys/fs/cgroup/cpu.max":    "a lot\n",
		"sys/fs/cgroup/cpu.stat":   "nr_periods many\n",
		"sys/fs/cgroup/cpu.weight": "x\n",
	} {
		files := map[string]string{"proc/self/mountinfo": mounts2, "proc/self/cgroup": "0::/\n", file: text}
		var list []string
		for name, text := range files {
			list = append(list, name, text)
		}
		if _, err := ReadCgroups(tree(list...)); !errors.Is(err, ErrFormat) || Path(err) != "/"+file {
			t.Errorf("%s: %v", file, err)
		}
	}
}
