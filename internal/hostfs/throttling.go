package hostfs

import "io/fs"

// ReadThrottling reads what the quota of g, one of c's groups, has done by now:
// one file, where ReadCgroups reads some ten for each group.
func (c *Cgroups) ReadThrottling(root fs.FS, g *Cgroup) (Throttling, error) {
	stat, err := readStat(root, g.Path[1:]+"/cpu.stat")
	if err != nil {
		return Throttling{}, err
	}
	return throttlingOf(c.Version, stat), nil
}

// throttlingOf picks the lines of a cpu.stat.
func throttlingOf(version int, stat map[string]int64) Throttling {
	t := Throttling{Periods: stat["nr_periods"], Throttled: stat["nr_throttled"]}
	if version == 1 {
		t.Waited = nanos(stat["throttled_time"])
	} else {
		t.Waited = micros(stat["throttled_usec"])
	}
	return t
}
