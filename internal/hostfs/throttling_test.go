package hostfs

import (
	"errors"
	"testing"
	"time"
)

// TestReadThrottling reads again what has changed since the groups were read, in
// the terms of each version.
func TestReadThrottling(t *testing.T) {
	for _, test := range []struct {
		name          string
		mount, cgroup string
		limit         []string
		stat          string
		want          Throttling
	}{
		{"v2", mounts2, "0::/app\n", []string{"sys/fs/cgroup/app/cpu.max", "50000 100000\n"},
			"usage_usec 7\nnr_periods 9\nnr_throttled 4\nthrottled_usec 30\n", Throttling{9, 4, 30 * time.Microsecond}},
		{"v1", "60 59 0:30 / /sys/fs/cgroup rw - cgroup cgroup rw,cpu\n", "1:cpu:/app\n",
			[]string{"sys/fs/cgroup/app/cpu.cfs_quota_us", "50000\n", "sys/fs/cgroup/app/cpu.cfs_period_us", "100000\n"},
			"nr_periods 9\nnr_throttled 4\nthrottled_time 30\n", Throttling{9, 4, 30}},
	} {
		t.Run(test.name, func(t *testing.T) {
			files := append([]string{"proc/self/mountinfo", test.mount, "proc/self/cgroup", test.cgroup}, test.limit...)
			c, err := ReadCgroups(tree(files...))
			if err != nil || c.Tightest() == nil {
				t.Fatalf("%+v, %v", c, err)
			}
			root := tree("sys/fs/cgroup/app/cpu.stat", test.stat)
			if got, err := c.ReadThrottling(root, c.Tightest()); err != nil || got != test.want {
				t.Errorf("%+v, %v; want %+v", got, err, test.want)
			}
			root = tree("sys/fs/cgroup/app/cpu.stat", "nr_periods many\n")
			if _, err := c.ReadThrottling(root, c.Tightest()); !errors.Is(err, ErrFormat) {
				t.Errorf("malformed: %v", err)
			}
		})
	}
}
