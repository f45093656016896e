package hostfs

import (
	"cmp"
	"errors"
	"io/fs"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A FrequencyPolicy says how the frequency of some CPUs is chosen.
type FrequencyPolicy struct {
	CPUs       CPUSet // that share it
	Driver     string
	Governor   string
	Preference string // energy_performance_preference; "" where the driver has none
	// In kHz; 0: not stated. Min and Max are what the policy allows, Lowest and
	// Highest what the hardware can, Base what it keeps up under any load.
	Min, Max, Lowest, Highest, Base int64
}

// ReadFrequencyPolicies reads them by their first CPU. None, and no error, if the
// machine does not let the kernel choose: most virtual machines.
func ReadFrequencyPolicies(root fs.FS) ([]FrequencyPolicy, error) {
	const dir = cpuDir + "/cpufreq"
	names, err := numbered(root, dir, "policy")
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var policies []FrequencyPolicy
	for _, name := range names {
		file := func(f string) string { return dir + "/" + name + "/" + f }
		var p FrequencyPolicy
		if p.Governor, err = String(root, file("scaling_governor")); err != nil {
			return policies, err
		}
		// The rest differs with the driver.
		p.Driver, _ = String(root, file("scaling_driver"))
		p.Preference, _ = String(root, file("energy_performance_preference"))
		if list, err := String(root, file("affected_cpus")); err == nil {
			p.CPUs, _ = ParseCPUs(strings.Join(strings.Fields(list), ","))
		}
		p.Min, _ = Int(root, file("scaling_min_freq"))
		p.Max, _ = Int(root, file("scaling_max_freq"))
		p.Lowest, _ = Int(root, file("cpuinfo_min_freq"))
		p.Highest, _ = Int(root, file("cpuinfo_max_freq"))
		p.Base, _ = Int(root, file("base_frequency"))
		policies = append(policies, p)
	}
	return policies, nil
}

// numbered lists the entries of a directory that are a word and a number, by number.
func numbered(root fs.FS, dir, word string) ([]string, error) {
	entries, err := fs.ReadDir(root, dir)
	if err != nil {
		return nil, err
	}
	var names []string
	number := map[string]int{}
	for _, e := range entries {
		digits, ok := strings.CutPrefix(e.Name(), word)
		n, err := strconv.Atoi(digits)
		if !ok || err != nil || n < 0 {
			continue
		}
		names = append(names, e.Name())
		number[e.Name()] = n
	}
	slices.SortFunc(names, func(a, b string) int { return cmp.Compare(number[a], number[b]) })
	return names, nil
}

// Throttles counts how often a CPU, and the package that it is in, got too hot to
// keep its frequency since the machine started.
func Throttles(root fs.FS, cpu int) (core, pack int64, err error) {
	if core, err = Int(root, perCPU(cpu, "thermal_throttle/core_throttle_count")); err != nil {
		return 0, 0, err
	}
	pack, err = Int(root, perCPU(cpu, "thermal_throttle/package_throttle_count"))
	return core, pack, err
}

// ThrottledFor is how long, since the machine started, a CPU's package has run
// slower than it could because it was too hot.
func ThrottledFor(root fs.FS, cpu int) (time.Duration, error) {
	ms, err := Int(root, perCPU(cpu, "thermal_throttle/package_throttle_total_time_ms"))
	return micros(min(max(0, ms), mostMicros/1000) * 1000), err
}

// An IdleState is one way for a CPU to sleep.
type IdleState struct {
	Name    string
	About   string
	Latency time.Duration // to leave it, at the worst
	Stay    time.Duration // in which it begins to save energy
	Enabled bool
	Used    int64         // times entered
	Time    time.Duration // spent in it
}

// Idle is how CPUs sleep.
type Idle struct {
	Driver   string // "none" if there is none
	Governor string
	States   []IdleState // of the CPU asked for, lightest first
}

// ReadIdle reads how a CPU sleeps. The error matches fs.ErrNotExist if the kernel
// has no choice of states.
func ReadIdle(root fs.FS, cpu int) (Idle, error) {
	const dir = cpuDir + "/cpuidle"
	var i Idle
	var err error
	if i.Driver, err = String(root, dir+"/current_driver"); err != nil {
		return i, err
	}
	if i.Governor, err = String(root, dir+"/current_governor_ro"); err != nil {
		i.Governor, _ = String(root, dir+"/current_governor")
	}
	states := perCPU(cpu, "cpuidle")
	names, err := numbered(root, states, "state")
	if errors.Is(err, fs.ErrNotExist) {
		return i, nil // no driver, no states
	}
	if err != nil {
		return i, err
	}
	for _, name := range names {
		file := func(f string) string { return states + "/" + name + "/" + f }
		var s IdleState
		if s.Name, err = String(root, file("name")); err != nil {
			return i, err
		}
		latency, err := Int(root, file("latency"))
		if err != nil {
			return i, err
		}
		s.Latency = micros(latency)
		s.About, _ = String(root, file("desc"))
		stay, _ := Int(root, file("residency"))
		s.Stay = micros(stay)
		// A mask in kernels since 5.10: any bit disables.
		disabled, _ := Int(root, file("disable"))
		s.Enabled = disabled == 0
		s.Used, _ = Int(root, file("usage"))
		spent, _ := Int(root, file("time"))
		s.Time = micros(spent)
		i.States = append(i.States, s)
	}
	return i, nil
}
