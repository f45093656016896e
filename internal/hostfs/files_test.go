package hostfs

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"io/fs"
	"os"
	"runtime"
	"slices"
	"testing"
	"testing/fstest"
	"time"
)

func TestParameters(t *testing.T) {
	p, err := ReadParameters(tree("proc/cmdline", "ro  clocksource=hpet tsc=reliable \"a b=c d\" rcu-nocbs=1-3 quiet tsc=unstable -- --clocksource=x notsc\n"))
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(p, Parameters{"ro", "clocksource=hpet", "tsc=reliable", "a b=c d", "rcu-nocbs=1-3", "quiet", "tsc=unstable"}) {
		t.Errorf("%q", p)
	}
	if v, ok := p.Last("tsc"); !ok || v != "unstable" {
		t.Errorf("tsc is %q, %v", v, ok)
	}
	if v := p.Values("rcu_nocbs"); !slices.Equal(v, []string{"1-3"}) {
		t.Errorf("rcu_nocbs is %q", v)
	}
	if v, ok := p.Last("notsc"); ok {
		t.Errorf("init's parameter is the kernel's: %q", v)
	}
	if n := p.Named("tsc", "quiet"); !slices.Equal(n, []string{"tsc=reliable", "quiet", "tsc=unstable"}) {
		t.Errorf("%q", n)
	}
}

func TestAuxv(t *testing.T) {
	var b []byte
	for _, word := range []uint64{AuxSysinfoEHDR, 0x7fff0000, AuxPageSize, 4096, 0, 0} {
		b = binary.LittleEndian.AppendUint64(b, word)
	}
	v, err := Auxv(tree("proc/self/auxv", string(b)), "self")
	if err != nil || v[AuxSysinfoEHDR] != 0x7fff0000 || v[AuxPageSize] != 4096 || len(v) != 2 {
		t.Errorf("%v, %v", v, err)
	}
	for _, cut := range []int{0, 7, 32, 33} {
		if _, err := Auxv(tree("proc/7/auxv", string(b[:cut])), "7"); !errors.Is(err, ErrFormat) || Path(err) != "/proc/7/auxv" {
			t.Errorf("%d bytes: %v", cut, err)
		}
	}
}

func TestConfig(t *testing.T) {
	const text = "# x\nCONFIG_HZ=250\nCONFIG_NO_HZ_IDLE=y\n# CONFIG_NO_HZ_FULL is not set\nCONFIG_LOCALVERSION=\"-a\"\n"
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	w.Write([]byte(text))
	w.Close()
	for source, root := range map[string]fs.FS{
		"/proc/config.gz":           tree("proc/config.gz", packed.String()),
		"/boot/config-6.1.0-a":      tree("proc/sys/kernel/osrelease", "6.1.0-a\n", "boot/config-6.1.0-a", text),
		"/lib/modules/6.1.0/config": tree("proc/sys/kernel/osrelease", "6.1.0\n", "lib/modules/6.1.0/config", text),
	} {
		c, err := ReadConfig(root)
		if err != nil || c.Source != source || c.Value("HZ") != "250" || !c.On("NO_HZ_IDLE") || c.On("NO_HZ_FULL") || c.Value("LOCALVERSION") != "-a" {
			t.Errorf("%s: %+v, %v", source, c, err)
		}
	}
	if _, err := ReadConfig(tree("proc/config.gz", "no gzip")); !errors.Is(err, ErrFormat) || Path(err) != "/proc/config.gz" {
		t.Error(err)
	}
	if _, err := ReadConfig(tree("proc/config.gz", packed.String()[:30])); !errors.Is(err, ErrFormat) {
		t.Error(err)
	}
	if _, err := ReadConfig(tree("proc/sys/kernel/osrelease", "../../etc\n")); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}

func TestFrequencyPolicies(t *testing.T) {
	if p, err := ReadFrequencyPolicies(tree()); p != nil || err != nil {
		t.Errorf("%v, %v", p, err)
	}
	const dir = cpuDir + "/cpufreq/"
	p, err := ReadFrequencyPolicies(tree(
		dir+"policy10/scaling_governor", "performance\n", dir+"policy2/scaling_governor", "powersave\n",
		dir+"policy2/affected_cpus", "2 3\n", dir+"policy2/scaling_max_freq", "2000000\n", dir+"policy2/cpuinfo_max_freq", "4000000\n",
		dir+"boost", "1\n",
	))
	if err != nil || len(p) != 2 || p[0].CPUs.String() != "2-3" || p[0].Max != 2000000 || p[0].Highest != 4000000 || p[1].Governor != "performance" {
		t.Errorf("%+v, %v", p, err)
	}
}

func TestIdle(t *testing.T) {
	const dir, state = cpuDir + "/cpuidle/", cpuDir + "/cpu0/cpuidle/state"
	i, err := ReadIdle(tree(
		dir+"current_driver", "intel_idle\n", dir+"current_governor_ro", "menu\n",
		state+"0/name", "POLL\n", state+"0/latency", "0\n",
		state+"1/name", "C6\n", state+"1/latency", "133\n", state+"1/residency", "600\n", state+"1/disable", "1\n", state+"1/usage", "5\n", state+"1/time", "77\n",
	), 0)
	want := IdleState{Name: "C6", Latency: 133 * time.Microsecond, Stay: 600 * time.Microsecond, Used: 5, Time: 77 * time.Microsecond}
	if err != nil || i.Driver != "intel_idle" || i.Governor != "menu" || len(i.States) != 2 || i.States[1] != want || !i.States[0].Enabled {
		t.Errorf("%+v, %v", i, err)
	}
	if i, err := ReadIdle(tree(dir+"current_driver", "none\n"), 0); err != nil || i.States != nil {
		t.Errorf("%+v, %v", i, err)
	}
	if _, err := ReadIdle(tree(), 0); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}

func TestLoad(t *testing.T) {
	c, err := ReadCPUTime(tree("proc/stat", "cpu  100 5 50 800 5 1 2 37 0 0\ncpu0 1 1 1 1\n"))
	if err != nil || c.Steal != 37 || c.Total() != 1000 {
		t.Errorf("%+v, %v", c, err)
	}
	if d := c.Minus(CPUTime{User: 90, Idle: 900}); d.User != 10 || d.Idle != 0 || d.Steal != 37 {
		t.Errorf("%+v", d)
	}
	for _, text := range []string{"", "cpu 1 2 3\n", "cpu  1 2 3 4 5 6 7 x\n", "intr 1 2 3 4 5 6 7 8 9\n", "cpu 1 2 3 4 5 6 7 9223372036854775807\n"} {
		if _, err := ReadCPUTime(tree("proc/stat", text)); !errors.Is(err, ErrFormat) {
			t.Errorf("%q: %v", text, err)
		}
	}
	if up, err := Uptime(tree("proc/uptime", "12629.33 20012.10\n")); up != 12629330*time.Millisecond || err != nil {
		t.Error(up, err)
	}
	for _, text := range []string{"", "-1 2\n", "NaN 1\n", "1e30 1\n", "x\n"} {
		if _, err := Uptime(tree("proc/uptime", text)); !errors.Is(err, ErrFormat) {
			t.Errorf("uptime %q: %v", text, err)
		}
	}
	if d, err := ThrottledFor(tree(cpuDir+"/cpu3/thermal_throttle/package_throttle_total_time_ms", "1500\n"), 3); d != 1500*time.Millisecond || err != nil {
		t.Error(d, err)
	}
	p, err := ReadPressure(tree("p", "some avg10=3.85 avg60=1.73 avg300=2.80 total=2984117184\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=0\n"), "p")
	if err != nil || p != (Pressure{3.85, 1.73, 2.80, 2984117184 * time.Microsecond}) {
		t.Errorf("%+v, %v", p, err)
	}
	if _, err := ReadPressure(tree("p", "some avg10=\n"), "p"); !errors.Is(err, ErrFormat) {
		t.Error(err)
	}
}

func TestProcess(t *testing.T) {
	root := fstest.MapFS{
		"proc/self/stat":           {Data: []byte("42 (a) b) c) S 1 2 3 0 -1 4194560 5 0 0 0 1 1 0 0 39 19 1 0 77 1 1 18446744073709551615 1 1 1 0 0 0 0 0 0 0 0 0 17 1 50 1 0 0 0\n")},
		"proc/self/limits":         {Data: []byte("Limit                     Soft Limit           Hard Limit           Units     \nMax locked memory         8388608              unlimited            bytes     \nMax realtime priority     unlimited            0                    \n")},
		"proc/self/ns/time":        {Data: []byte("time:[4026531834]"), Mode: fs.ModeSymlink},
		"proc/self/ns/cgroup":      {Data: []byte("cgroup:[x]"), Mode: fs.ModeSymlink},
		"proc/self/timens_offsets": {Data: []byte("monotonic           5         100\nboottime          -7        0\n")},
		"proc/self/timerslack_ns":  {Data: []byte("50000\n")},
		"proc/self/status":         {Data: []byte("Name:\tx\nCpus_allowed_list:\t0-1\n")},
		"proc/1/comm":              {Data: []byte("systemd\n")},
		"proc/77/comm":             {Data: []byte("chronyd\n")},
		"proc/78/status":           {Data: []byte("")},
	}
	th, err := ReadThread(root)
	if err != nil || th != (Thread{Nice: 19, Policy: PolicyFIFO, Priority: 50}) {
		t.Errorf("%+v, %v", th, err)
	}
	if n, err := Limit(root, "Max locked memory"); n != 8388608 || err != nil {
		t.Error(n, err)
	}
	if n, err := Limit(root, "Max realtime priority"); n != -1 || err != nil {
		t.Error(n, err)
	}
	if _, err := Limit(root, "Max nonsense"); !errors.Is(err, ErrFormat) {
		t.Error(err)
	}
	if n, err := Namespace(root, "time"); n != InitialTimeNamespace || err != nil {
		t.Error(n, err)
	}
	if _, err := Namespace(root, "cgroup"); !errors.Is(err, ErrFormat) {
		t.Error(err)
	}
	if _, err := Namespace(root, "pid"); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	if o, err := ReadTimeOffsets(root); o != (TimeOffsets{5*time.Second + 100, -7 * time.Second}) || err != nil {
		t.Error(o, err)
	}
	if d, err := TimerSlack(root); d != 50*time.Microsecond || err != nil {
		t.Error(d, err)
	}
	if f, err := Fields(root, "proc/self/status"); f["Cpus_allowed_list"] != "0-1" || err != nil {
		t.Error(f, err)
	}
	if p, err := Processes(root); len(p) != 2 || p[77] != "chronyd" || err != nil {
		t.Error(p, err)
	}
}

func TestDevices(t *testing.T) {
	root := tree(
		"sys/class/ptp/ptp0/clock_name", "KVM virtual PTP\n",
		"sys/devices/system/clockevents/clockevent0/current_device", "lapic-deadline\n",
		"sys/devices/system/clockevents/clockevent10/current_device", "c\n",
		"sys/devices/system/clockevents/clockevent2/current_device", "b\n",
		"sys/devices/system/clockevents/broadcast/current_device", "hpet\n",
		"sys/class/dmi/id/sys_vendor", "QEMU\n", "sys/class/dmi/id/product_name", "Standard PC (Q35 + ICH9, 2009)\n",
	)
	if p, err := ReadPTPClocks(root); err != nil || !slices.Equal(p, []PTPClock{{"ptp0", "KVM virtual PTP"}}) {
		t.Error(p, err)
	}
	if p, err := ReadPTPClocks(tree()); p != nil || err != nil {
		t.Error(p, err)
	}
	if c, b, err := ReadClockevents(root); err != nil || !slices.Equal(c, []string{"lapic-deadline", "b", "c"}) || b != "hpet" {
		t.Error(c, b, err)
	}
	if d, err := ReadDMI(root); err != nil || d.Vendor != "QEMU" || d.Product == "" {
		t.Error(d, err)
	}
}

func TestTimerList(t *testing.T) {
	for text, want := range map[string]TimerList{
		"cpu: 0\n  .hres_active    : 1\n  .nohz_mode      : 2\njiffies: 5\ncpu: 1\n  .nohz_mode : 0\n": {true, true},
		"cpu: 0\n  .hres_active    : 0\n  .nohz           : 0\n  .highres        : 0\n":                {false, false},
		"cpu: 0\n  .hres_active    : 1\n": {true, false},
	} {
		if got, err := ReadTimerList(tree("proc/timer_list", text)); got != want || err != nil {
			t.Errorf("%q: %+v, %v", text, got, err)
		}
	}
	if _, err := ReadTimerList(tree("proc/timer_list", "no\n")); !errors.Is(err, ErrFormat) {
		t.Error(err)
	}
}

// Whatever this machine's kernel writes can be read: errors are about what is not
// there or not permitted, never about the form.
func TestThisMachine(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("no /proc and /sys")
	}
	root := os.DirFS("/")
	for name, read := range map[string]func() (any, error){
		"clocksource": func() (any, error) { return ReadClocksource(root) },
		"cpuinfo":     func() (any, error) { i, err := ReadCPUInfo(root); return i.Model, err },
		"parameters":  func() (any, error) { return ReadParameters(root) },
		"auxv":        func() (any, error) { return Auxv(root, "self") },
		"mounts":      func() (any, error) { m, err := ReadMounts(root); return len(m), err },
		"cgroups":     func() (any, error) { return ReadCgroups(root) },
		"config":      func() (any, error) { _, err := ReadConfig(root); return nil, err },
		"frequency":   func() (any, error) { return ReadFrequencyPolicies(root) },
		"idle":        func() (any, error) { return ReadIdle(root, 0) },
		"stat":        func() (any, error) { return ReadCPUTime(root) },
		"pressure":    func() (any, error) { return ReadPressure(root, "proc/pressure/cpu") },
		"thread":      func() (any, error) { return ReadThread(root) },
		"limit":       func() (any, error) { return Limit(root, "Max realtime priority") },
		"slack":       func() (any, error) { return TimerSlack(root) },
		"processes":   func() (any, error) { p, err := Processes(root); return len(p), err },
		"namespace":   func() (any, error) { return Namespace(root, "time") },
		"offsets":     func() (any, error) { return ReadTimeOffsets(root) },
		"ptp":         func() (any, error) { return ReadPTPClocks(root) },
		"clockevents": func() (any, error) { c, b, err := ReadClockevents(root); return append(c, b), err },
		"dmi":         func() (any, error) { return ReadDMI(root) },
		"timer_list":  func() (any, error) { return ReadTimerList(root) },
		"uptime":      func() (any, error) { return Uptime(root) },
		"online":      func() (any, error) { return OnlineCPUs(root) },
	} {
		got, err := read()
		t.Logf("%-11s %+v %v", name, got, err)
		if errors.Is(err, ErrFormat) {
			t.Errorf("%s: %v", name, err)
		}
		if err != nil && Path(err) == "" {
			t.Errorf("%s: the error does not name the file: %v", name, err)
		}
	}
}

// Whatever stands in the files, nothing panics.
func FuzzReaders(f *testing.F) {
	for _, seed := range []string{
		"", "max 100000\n", "0::/a\n", "22 1 0:21 / /sys/fs/cgroup rw - cgroup2 c rw\n", "cpu  1 2 3 4 5 6 7 8\n",
		"42 (x) S 1\n", "time:[1]", "monotonic 1 2\n", "nr_periods 3\n", "cpu: 0\n .nohz : 1\n", "a=\"b c\" -- d\n", "Max x 1 2\n",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		root := fstest.MapFS{}
		for _, name := range []string{
			"proc/self/cgroup", "proc/cmdline", "proc/stat", "proc/uptime", "proc/self/stat", "proc/self/limits", "proc/self/status",
			"proc/self/timens_offsets", "proc/self/timerslack_ns", "proc/pressure/cpu", "proc/timer_list", "proc/cpuinfo", "proc/config.gz", "proc/self/auxv",
			"sys/fs/cgroup/cpu.max", "sys/fs/cgroup/cpu.stat", "sys/fs/cgroup/cpu.weight", cpuDir + "/online",
			cpuDir + "/cpufreq/policy0/scaling_governor", cpuDir + "/cpufreq/policy0/affected_cpus", cpuDir + "/cpuidle/current_driver",
			cpuDir + "/cpu0/cpuidle/state0/name", cpuDir + "/cpu0/cpuidle/state0/latency", "proc/self/mountinfo",
		} {
			root[name] = &fstest.MapFile{Data: []byte(text)}
		}
		root["proc/self/ns/time"] = &fstest.MapFile{Data: []byte(text), Mode: fs.ModeSymlink}
		read := func() {
			ReadCgroups(root)
			ReadMounts(root)
		}
		read()
		root["proc/self/mountinfo"] = &fstest.MapFile{Data: []byte("22 1 0:21 / /sys/fs/cgroup rw - cgroup2 c rw\n")}
		read()
		root["proc/self/cgroup"] = &fstest.MapFile{Data: []byte("0::/\n")}
		read()
		ReadParameters(root)
		ReadCPUTime(root)
		Uptime(root)
		ReadThread(root)
		Limit(root, "Max x")
		Fields(root, "proc/self/status")
		ReadTimeOffsets(root)
		TimerSlack(root)
		ReadPressure(root, "proc/pressure/cpu")
		ReadTimerList(root)
		ReadCPUInfo(root)
		ReadConfig(root)
		Auxv(root, "self")
		OnlineCPUs(root)
		ReadFrequencyPolicies(root)
		ReadIdle(root, 0)
		Namespace(root, "time")
	})
}
