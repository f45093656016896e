package probe

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/detent-go/detent/internal/hostfs"
)

// judged compares findings, and what every finding has to have.
func judged(t *testing.T, name string, got []Finding, want ...string) {
	t.Helper()
	var ids []string
	for _, f := range got {
		ids = append(ids, f.ID+" "+f.Severity.String())
		complete(t, f)
	}
	slices.Sort(ids)
	slices.Sort(want)
	if !slices.Equal(ids, want) {
		t.Errorf("%s: finds %q, want %q", name, ids, want)
	}
}

// remedied reports whether some remedy holds a text.
func remedied(got []Finding, id, text string) bool {
	for _, f := range got {
		if f.ID == id && strings.Contains(strings.Join(f.Remedy, "\n"), text) {
			return true
		}
	}
	return false
}

func TestJudgeClocksource(t *testing.T) {
	bare, guest := &PlatformData{Virtual: No}, &PlatformData{Virtual: Yes, Hypervisor: "kvm"}
	for _, test := range []struct {
		name   string
		d      ClocksourceData
		want   []string
		remedy string // of the first finding wanted
	}{
		{"tsc", ClocksourceData{Current: "tsc", VDSO: ServedYes, platform: bare}, nil, ""},
		{"tsc asked for", ClocksourceData{Current: "tsc", VDSO: ServedYes, Parameters: []string{"clocksource=tsc"}, platform: bare}, nil, ""},
		{"notsc", ClocksourceData{Current: "hpet", Available: []string{"hpet"}, VDSO: ServedNo, Parameters: []string{"notsc"}, platform: bare},
			[]string{"clocksource.no-vdso critical"}, "remove notsc"},
		{"hpet chosen", ClocksourceData{Current: "hpet", Available: []string{"tsc", "hpet"}, VDSO: ServedNo, Parameters: []string{"clocksource=hpet"}, platform: bare},
			[]string{"clocksource.no-vdso critical"}, "remove clocksource=hpet"},
		{"hpet by hand", ClocksourceData{Current: "hpet", Available: []string{"tsc", "hpet"}, VDSO: ServedNo, platform: bare},
			[]string{"clocksource.no-vdso critical"}, "echo tsc > "},
		{"no clock for guests", ClocksourceData{Current: "acpi_pm", Available: []string{"acpi_pm"}, VDSO: ServedNo, platform: guest},
			[]string{"clocksource.no-vdso critical"}, "kvmclock"},
		{"no-kvmclock", ClocksourceData{Current: "acpi_pm", Available: []string{"acpi_pm"}, VDSO: ServedNo, Parameters: []string{"no-kvmclock"}, platform: guest},
			[]string{"clocksource.no-vdso critical"}, "remove no-kvmclock from"},
		{"jiffies", ClocksourceData{Current: "jiffies", Available: []string{"jiffies"}, VDSO: ServedNo, platform: bare},
			[]string{"clocksource.no-vdso critical"}, "dmesg"},
		{"xen without the bit", ClocksourceData{Current: "xen", Available: []string{"xen", "tsc"}, VDSO: ServedNo, platform: &PlatformData{Virtual: Yes, Hypervisor: "xen"}},
			[]string{"clocksource.no-vdso warning"}, "echo tsc > "},
		{"tsc=unstable", ClocksourceData{Current: "hpet", Available: []string{"hpet"}, VDSO: ServedNo, Parameters: []string{"tsc=unstable"}, platform: bare,
			Distrust: &Distrust{Clocksource: "tsc", Kind: DistrustChosen, Reason: "boot parameter", Lines: []string{"x"}}, LogSource: "l"},
			[]string{"clocksource.tsc-unstable warning", "clocksource.no-vdso critical"}, "remove tsc=unstable"},
		{"unstable under kvm-clock", ClocksourceData{Current: "kvm-clock", Available: []string{"kvm-clock"}, VDSO: ServedYes, platform: guest,
			Distrust: &Distrust{Clocksource: "tsc", Kind: DistrustWarp, Reason: "TSCs unsynchronized", Lines: []string{"x"}}, LogSource: "l"},
			[]string{"clocksource.tsc-unstable info"}, ""},
		{"Hyper-V's way", ClocksourceData{Current: "hyperv_clocksource_tsc_page", VDSO: ServedYes, platform: guest,
			Distrust: &Distrust{Clocksource: "tsc", Kind: DistrustHypervisor, Reason: "running on Hyper-V", Lines: []string{"x"}}, LogSource: "l"}, nil, ""},
		{"a warp must not be overridden", ClocksourceData{Current: "hpet", Available: []string{"hpet"}, VDSO: ServedNo, platform: bare,
			Distrust: &Distrust{Clocksource: "tsc", Kind: DistrustWarp, Reason: "check_tsc_sync_source failed", Lines: []string{"x"}}, LogSource: "l"},
			[]string{"clocksource.tsc-unstable warning", "clocksource.no-vdso critical"}, "do not force"},
		{"vdso=0", ClocksourceData{Current: "tsc", VDSO: ServedYes, Parameters: []string{"vdso=0"}, platform: bare}, []string{"clocksource.vdso-disabled critical"}, "remove vdso=0"},
		{"trusted in a guest", ClocksourceData{Current: "tsc", VDSO: ServedYes, Parameters: []string{"tsc=reliable"}, platform: guest}, nil, ""},
		{"changed at start", ClocksourceData{Current: "tsc", VDSO: ServedYes, platform: bare, LogSource: "l",
			Changes: []ClocksourceChange{{time.Second, "tsc-early"}, {3 * time.Second, "tsc"}}}, nil, ""},
		{"changed later", ClocksourceData{Current: "tsc", VDSO: ServedYes, platform: bare, LogSource: "l",
			Changes: []ClocksourceChange{{time.Second, "tsc"}, {time.Hour, "hpet"}, {2 * time.Hour, "tsc"}}}, []string{"clocksource.changed info"}, ""},
		{"unheard of", ClocksourceData{Current: "sundial", Available: []string{"sundial"}, VDSO: ServedUnknown, platform: bare}, nil, ""},
	} {
		got := judgeClocksource(&test.d)
		judged(t, test.name, got, slices.Clone(test.want)...)
		if test.remedy != "" {
			if id, _, _ := strings.Cut(test.want[0], " "); !remedied(got, id, test.remedy) {
				t.Errorf("%s: no remedy %q in %+v", test.name, test.remedy, got)
			}
		}
	}
}

func TestServedHere(t *testing.T) {
	log := func(whole bool, lines ...string) *hostfs.Log {
		l := &hostfs.Log{Whole: whole}
		for _, text := range lines {
			l.Lines = append(l.Lines, hostfs.LogLine{Text: text})
		}
		return l
	}
	for _, test := range []struct {
		name       string
		log        *hostfs.Log
		parameters hostfs.Parameters
		want       Served
	}{
		{"kvm-clock", log(true, "kvm-clock: using sched offset of 5 cycles"), nil, ServedYes},
		{"kvm-clock", log(true), nil, ServedNo},
		{"kvm-clock", log(true, "Linux version 6.1.0-17-amd64 (x)"), nil, ServedNo},
		{"kvm-clock", log(true, "Linux version 3.10.0-1160.el7.x86_64 (x)"), nil, ServedYes}, // did not say so
		{"kvm-clock", log(false), nil, ServedYes},                                            // the line may be lost
		{"kvm-clock", log(false), hostfs.Parameters{"no-kvmclock-vsyscall"}, ServedNo},
		{"xen", log(true), nil, ServedMaybe},
		{"xen", log(true, "xen: VDSO_CLOCKMODE_PVCLOCK not supported (tsc unstable)"), nil, ServedNo},
		{"xen", log(true, "xen: VCLOCK_PVCLOCK not supported (err -22)"), nil, ServedNo},
		{"arch_sys_counter", log(true, "arch_timer: Enabling local workaround for ARM erratum 1418040"), nil, ServedYes},
		{"arch_sys_counter", log(true, "arch_timer: Enabling global workaround for Freescale erratum a005858"), nil, ServedNo},
		{"arch_sys_counter", log(true, "arch_timer: Enabling local workaround for ARM erratum 858921"), nil, ServedNo},
		{"hyperv_clocksource_tsc_page", log(true), nil, ServedYes},
		{"hyperv_clocksource_msr", log(true), nil, ServedNo},
		{"tsc", log(true), nil, ServedYes},
		{"jiffies", log(true), nil, ServedNo},
		{"sundial", log(true), nil, ServedUnknown},
	} {
		if got := servedHere(test.name, test.log, test.parameters); got != test.want {
			t.Errorf("%s, log %+v, %q: %s, want %s", test.name, test.log, test.parameters, got, test.want)
		}
	}
}

// The kernel's words for giving up a clocksource, of ten years.
func TestReadDistrust(t *testing.T) {
	for _, test := range []struct {
		text string
		want Distrust
	}{
		{"[    1.0] x\n", Distrust{}},
		{"[   99.000000] clocksource: timekeeping watchdog on CPU3: Marking clocksource 'tsc' as unstable because the skew is too large:\n" +
			"[   99.000001] clocksource:                       'hpet' wd_nsec: 503029760 wd_now: 2c wd_last: 1d mask: ffffffff\n" +
			"[   99.000002] clocksource:                       'tsc' cs_nsec: 487001748 cs_now: 4 cs_last: 3 mask: ffffffffffffffff\n",
			Distrust{Clocksource: "tsc", At: 99 * time.Second, Kind: DistrustSkew, Reason: "the skew is too large", Skew: -16028012, Interval: 503029760, Watchdog: "hpet"}},
		{"[   99.000000] clocksource: timekeeping watchdog: Marking clocksource 'tsc' as unstable because the skew is too large:\n" +
			"[   99.000001] clocksource:                       'acpi_pm' wd_now: 8d5199 wd_last: 60e92e mask: ffffff\n",
			Distrust{Clocksource: "tsc", At: 99 * time.Second, Kind: DistrustSkew, Reason: "the skew is too large", Watchdog: "acpi_pm"}},
		{"[   99.000000] clocksource: timekeeping watchdog on CPU1: hpet read-back delay of 137000ns, attempt 4, marking unstable\n",
			Distrust{Clocksource: "tsc", At: 99 * time.Second, Kind: DistrustReadBack, Reason: "it took too long to read the clocks beside each other"}},
		{"[   99.000000] clocksource: timekeeping watchdog on CPU1: wd-tsc-wd excessive read-back delay of 137000ns vs. limit of 125000ns, wd-wd read-back delay only 3000ns, attempt 3, marking tsc unstable\n" +
			"[   99.000001] tsc: Marking TSC unstable due to clocksource watchdog\n",
			Distrust{Clocksource: "tsc", At: 99 * time.Second, Kind: DistrustReadBack, Reason: "it took too long to read the clocks beside each other"}},
		{"[    0.300000] Measured 4036 cycles TSC warp between CPUs, turning off TSC clock.\n[    0.300001] tsc: Marking TSC unstable due to check_tsc_sync_source failed\n",
			Distrust{Clocksource: "tsc", At: 300 * time.Millisecond, Kind: DistrustWarp, Reason: "Measured 4036 cycles TSC warp between CPUs, turning off TSC clock."}},
		{"[    0.300000] tsc: Marking TSC unstable due to TSCs unsynchronized\n", Distrust{Clocksource: "tsc", At: 300 * time.Millisecond, Kind: DistrustWarp, Reason: "TSCs unsynchronized"}},
		{"[    0.300000] Marking TSC unstable due to TSC halts in idle\n", Distrust{Clocksource: "tsc", At: 300 * time.Millisecond, Kind: DistrustIdle, Reason: "TSC halts in idle"}},
		{"[    0.300000] tsc: Marking TSC unstable due to cpufreq changes\n", Distrust{Clocksource: "tsc", At: 300 * time.Millisecond, Kind: DistrustFrequency, Reason: "cpufreq changes"}},
		{"[    0.300000] tsc: Marking TSC unstable due to boot parameter\n", Distrust{Clocksource: "tsc", At: 300 * time.Millisecond, Kind: DistrustChosen, Reason: "boot parameter"}},
		{"[    0.300000] tsc: Marking TSC unstable due to running on Hyper-V\n", Distrust{Clocksource: "tsc", At: 300 * time.Millisecond, Kind: DistrustHypervisor, Reason: "running on Hyper-V"}},
		{"[    0.300000] tsc: Marking TSC unstable due to KVM discovered backwards TSC\n", Distrust{Clocksource: "tsc", At: 300 * time.Millisecond, Kind: DistrustWarp, Reason: "KVM discovered backwards TSC"}},
		{"[    0.300000] tsc: Marking TSC unstable due to could not calculate TSC khz\n", Distrust{Clocksource: "tsc", At: 300 * time.Millisecond, Kind: DistrustOther, Reason: "could not calculate TSC khz"}},
		{"Jul 16 05:00:05 host kernel: Clocksource tsc unstable (delta = -95170507948 ns).  Enable clocksource failover by adding clocksource_failover kernel parameter.\n",
			Distrust{Clocksource: "tsc", At: -1, Kind: DistrustSkew, Reason: "the skew is too large"}},
	} {
		got := readDistrust(hostfs.ParseLog("", test.text))
		if got == nil {
			got = &Distrust{}
		} else if len(got.Lines) == 0 {
			t.Errorf("%q: no lines", test.text)
		}
		got.Lines = nil
		if !equalDistrust(*got, test.want) {
			t.Errorf("%q\nread as %+v\nwant    %+v", test.text, *got, test.want)
		}
	}
}

func equalDistrust(a, b Distrust) bool {
	return a.Clocksource == b.Clocksource && a.At == b.At && a.Kind == b.Kind && a.Reason == b.Reason &&
		a.Skew == b.Skew && a.Interval == b.Interval && a.Watchdog == b.Watchdog
}

func TestJudgeTSC(t *testing.T) {
	good := TSCData{Constant: true, Nonstop: true, AlwaysRunningAPICTimer: true, Virtual: No}
	judged(t, "invariant", judgeTSC(&good))
	old := TSCData{Virtual: No}
	judged(t, "an old CPU", judgeTSC(&old), "tsc.not-invariant notice", "tsc.timer-stops notice")
	guest := TSCData{Constant: true, Virtual: Yes, Unusable: "no"}
	judged(t, "a guest", judgeTSC(&guest), "tsc.not-invariant info")
	forbidden := good
	forbidden.Unusable = "the process may not read the TSC"
	judged(t, "forbidden", judgeTSC(&forbidden), "tsc.forbidden info")
	firmware := good
	firmware.Firmware, firmware.LogSource = []string{"[Firmware Bug]: TSC ADJUST: CPU0: -123 force to 0"}, "/dev/kmsg"
	judged(t, "firmware", judgeTSC(&firmware), "tsc.firmware-adjusts notice")
}

func TestJudgeFrequency(t *testing.T) {
	policy := func(driver, governor string, low, high int64) *FrequencyData {
		return &FrequencyData{Policies: []FrequencyPolicy{{CPUs: "0-3", Driver: driver, Governor: governor, Min: low, Max: high, Lowest: 800_000, Highest: 4_000_000}}}
	}
	judged(t, "intel_pstate", judgeFrequency(policy("intel_pstate", "powersave", 800_000, 4_000_000)))
	judged(t, "amd-pstate-epp", judgeFrequency(policy("amd-pstate-epp", "powersave", 800_000, 4_000_000)))
	judged(t, "performance", judgeFrequency(policy("acpi-cpufreq", "performance", 800_000, 4_000_000)))
	judged(t, "schedutil", judgeFrequency(policy("intel_cpufreq", "schedutil", 800_000, 4_000_000)))
	judged(t, "powersave", judgeFrequency(policy("acpi-cpufreq", "powersave", 800_000, 4_000_000)), "frequency.pinned-low warning")
	judged(t, "ondemand", judgeFrequency(policy("acpi-cpufreq", "ondemand", 800_000, 4_000_000)), "frequency.slow-to-rise info")
	judged(t, "limited", judgeFrequency(policy("intel_pstate", "powersave", 800_000, 2_000_000)), "frequency.limited notice")
	judged(t, "warm", judgeFrequency(&FrequencyData{Throttles: 3, ThrottledFor: time.Second, Uptime: time.Hour}), "frequency.throttled-by-heat info")
	judged(t, "hot", judgeFrequency(&FrequencyData{Throttles: 3, ThrottledFor: time.Hour, Uptime: 24 * time.Hour}), "frequency.throttled-by-heat notice")
	judged(t, "not counted", judgeFrequency(&FrequencyData{Throttles: -1}))
	groups := groupPolicies([]hostfs.FrequencyPolicy{
		{CPUs: hostfs.CPUSet{0}, Governor: "a"}, {CPUs: hostfs.CPUSet{1}, Governor: "b"}, {CPUs: hostfs.CPUSet{2}, Governor: "a"},
	})
	if len(groups) != 2 || groups[0].CPUs != "0,2" || groups[1].CPUs != "1" {
		t.Errorf("grouped as %+v", groups)
	}
}

func TestJudgeIdle(t *testing.T) {
	deep := IdleData{Driver: "intel_idle", Governor: "menu", States: []IdleState{
		{Name: "C1", Latency: 2 * time.Microsecond, Enabled: true}, {Name: "C6", Latency: 133 * time.Microsecond, Enabled: true}}}
	judged(t, "deep", judgeIdle(&deep), "idle.exit-latency info")
	off := IdleData{States: []IdleState{{Name: "C6", Latency: 133 * time.Microsecond}}}
	judged(t, "switched off", judgeIdle(&off))
	judged(t, "polling", judgeIdle(&IdleData{Parameters: []string{"idle=poll"}}), "idle.polling info")
	judged(t, "none", judgeIdle(&IdleData{}))
}

func TestJudgeTick(t *testing.T) {
	judged(t, "usual", judgeTick(&TickData{HZ: 250, Mode: TickIdle, HighResolution: Yes}))
	judged(t, "unknown", judgeTick(&TickData{HighResolution: Unclear}))
	got := judgeTick(&TickData{HZ: 250, Mode: TickPeriodic, ModeSource: "x", HighResolution: No, HighResolutionSource: "x", Parameters: []string{"highres=off", "nohz=off"}})
	judged(t, "off", got, "tick.low-resolution warning", "tick.periodic info")
	if !remedied(got, "tick.low-resolution", "remove highres=off") || !remedied(got, "tick.periodic", "remove nohz=off") {
		t.Errorf("remedies: %+v", got)
	}
	for _, d := range []TickData{{Full: "2-7", Isolated: "2-7"}, {Full: "2-7"}, {Isolated: "2-7"}, {Full: "2-7", Isolated: "4-7"}} {
		d.HighResolution = Yes
		judged(t, "isolated", judgeTick(&d), "tick.isolated-cpus info")
	}
	d := &TickData{}
	d.fromParameters(hostfs.Parameters{"highres=off", "nohz=off"})
	if d.HighResolution != No || d.Mode != TickPeriodic {
		t.Errorf("%+v", d)
	}
}

func TestJudgeScheduler(t *testing.T) {
	judged(t, "usual", judgeScheduler(&SchedulerData{Preemption: PreemptVoluntary, RealtimeRuntime: 950 * time.Millisecond, RealtimePeriod: time.Second}))
	judged(t, "unknown", judgeScheduler(&SchedulerData{}))
	got := judgeScheduler(&SchedulerData{Preemption: PreemptNone, PreemptionSource: "x", Switchable: true, RealtimeRuntime: -1, Extension: "scx_rusty"})
	judged(t, "all", got, "scheduler.not-preemptible info", "scheduler.realtime-unlimited info", "scheduler.extension info")
	if !remedied(got, "scheduler.not-preemptible", "preempt=full") {
		t.Errorf("%+v", got)
	}
}

func TestReadPreemption(t *testing.T) {
	for want, files := range map[Preemption][]string{
		PreemptRT:        {"sys/kernel/realtime", "1\n"},
		PreemptFull:      {"sys/kernel/debug/sched/preempt", "none voluntary (full) lazy\n", "proc/sys/kernel/osrelease", "6\n", "boot/config-6", "CONFIG_PREEMPT_NONE=y\n"},
		PreemptVoluntary: {"proc/sys/kernel/osrelease", "6\n", "boot/config-6", "CONFIG_PREEMPT_VOLUNTARY=y\nCONFIG_PREEMPT_DYNAMIC=y\n"},
		PreemptLazy:      {"proc/version", "Linux version 6.13 #1 SMP PREEMPT_DYNAMIC x", "proc/cmdline", "preempt=lazy\n"},
		PreemptNone:      {"proc/sys/kernel/osrelease", "6\n", "boot/config-6", "CONFIG_PREEMPT_NONE=y\n", "proc/cmdline", "preempt=full\n"}, // not a kernel that can
		"":               {"proc/version", "Linux version 6.13 #1 SMP x"},
	} {
		var text strings.Builder
		for i := 0; i < len(files); i += 2 {
			text.WriteString("-- " + files[i] + " --\n" + files[i+1])
			if !strings.HasSuffix(files[i+1], "\n") {
				text.WriteString("\n")
			}
		}
		m, err := parseMachine(text.String())
		if err != nil {
			t.Fatal(err)
		}
		p, _ := hostfs.ReadParameters(m.root)
		if got, source, _ := readPreemption(&Env{Root: m.root}, p); got != want {
			t.Errorf("%q: %q from %s, want %q", files, got, source, want)
		}
	}
}

func TestJudgeProcess(t *testing.T) {
	usual := ProcessData{TimerSlack: 50 * time.Microsecond, Policy: "other", allowed: hostfs.CPUSet{0, 1}, online: hostfs.CPUSet{0, 1}}
	judged(t, "usual", judgeProcess(&usual))
	judged(t, "unknown", judgeProcess(&ProcessData{TimerSlack: -1}))
	judged(t, "slack", judgeProcess(&ProcessData{TimerSlack: 200 * time.Microsecond}), "process.timer-slack notice")
	judged(t, "much slack", judgeProcess(&ProcessData{TimerSlack: 40 * time.Millisecond}), "process.timer-slack warning")
	judged(t, "nice", judgeProcess(&ProcessData{Policy: "other", Nice: 10}), "process.low-priority notice")
	judged(t, "favoured", judgeProcess(&ProcessData{Policy: "other", Nice: -5}))
	judged(t, "real-time", judgeProcess(&ProcessData{Policy: "fifo", Priority: 50}))
	judged(t, "idle", judgeProcess(&ProcessData{Policy: "idle"}), "process.low-priority warning")
	judged(t, "batch", judgeProcess(&ProcessData{Policy: "batch", Nice: 19}), "process.low-priority notice")
	judged(t, "isolated", judgeProcess(&ProcessData{allowed: hostfs.CPUSet{2, 3}, isolated: hostfs.CPUSet{2, 3, 4}}), "process.on-isolated-cpus warning")
	judged(t, "one isolated", judgeProcess(&ProcessData{allowed: hostfs.CPUSet{2}, isolated: hostfs.CPUSet{2, 3, 4}}))
	judged(t, "some isolated", judgeProcess(&ProcessData{allowed: hostfs.CPUSet{1, 2}, isolated: hostfs.CPUSet{2, 3, 4}}))
}

func TestJudgeShifts(t *testing.T) {
	judged(t, "none", judgeShifts(&ShiftsData{Initial: Yes}))
	judged(t, "a namespace without offsets", judgeShifts(&ShiftsData{Initial: No}))
	judged(t, "a namespace", judgeShifts(&ShiftsData{Initial: No, Monotonic: time.Hour}), "shifts.time-namespace info")
	judged(t, "children", judgeShifts(&ShiftsData{Initial: Yes, ChildrenDiffer: true}), "shifts.children-elsewhere info")
	judged(t, "suspended", judgeShifts(&ShiftsData{Initial: Yes, Suspended: 8 * time.Hour}), "shifts.suspended info")
	judged(t, "read one after the other", judgeShifts(&ShiftsData{Initial: Yes, Suspended: 300 * time.Nanosecond}))
}

func TestJudgeQuota(t *testing.T) {
	group := func(g Cgroup) *QuotaData {
		g.Path, g.Period = "/g", 100*time.Millisecond
		if g.Quota > 0 {
			g.CPUs = float64(g.Quota) / float64(g.Period)
		}
		return &QuotaData{Version: 2, CPUs: 8, Groups: []Cgroup{g}, Limit: g.CPUs}
	}
	judged(t, "none", judgeQuota(group(Cgroup{Weight: 100})))
	judged(t, "more than there is", judgeQuota(group(Cgroup{Quota: time.Second})))
	judged(t, "two CPUs", judgeQuota(group(Cgroup{Quota: 200 * time.Millisecond})), "cpu.quota info")
	judged(t, "rarely", judgeQuota(group(Cgroup{Quota: 200 * time.Millisecond, Periods: 100_000, Throttled: 3, Waited: time.Second})), "cpu.quota info", "cpu.quota-throttled info")
	judged(t, "at times", judgeQuota(group(Cgroup{Quota: 200 * time.Millisecond, Periods: 1000, Throttled: 30, Waited: time.Second})), "cpu.quota info", "cpu.quota-throttled notice")
	judged(t, "often", judgeQuota(group(Cgroup{Quota: 200 * time.Millisecond, Periods: 1000, Throttled: 300, Waited: time.Second})), "cpu.quota info", "cpu.quota-throttled warning")
	judged(t, "a limit since lifted", judgeQuota(group(Cgroup{Periods: 1000, Throttled: 300, Waited: time.Second})), "cpu.quota-throttled warning")
	judged(t, "idle", judgeQuota(group(Cgroup{Idle: true})), "cpu.idle-group warning")
	judged(t, "light", judgeQuota(group(Cgroup{Weight: 1})), "cpu.low-weight notice")
	v1 := group(Cgroup{Weight: 2, Quota: 50 * time.Millisecond})
	v1.Version = 1
	got := judgeQuota(v1)
	judged(t, "version 1", got, "cpu.quota info", "cpu.low-weight notice")
	if !remedied(got, "cpu.low-weight", "echo 1024 > /g/cpu.shares") || !remedied(got, "cpu.quota", "cpu.cfs_quota_us") {
		t.Errorf("%+v", got)
	}
	if pause := (Cgroup{Quota: 200 * time.Millisecond, Period: 100 * time.Millisecond}).pause(8); pause != 75*time.Millisecond {
		t.Errorf("two CPUs of eight are used up in 25 ms, so that 75 are left, not %v", pause)
	}
}

func TestJudgeContention(t *testing.T) {
	judged(t, "idle", judgeContention(&ContentionData{Sample: time.Second, Pressure: &Pressure{1, 1, 1}}))
	judged(t, "a tick", judgeContention(&ContentionData{Sample: 200 * time.Millisecond, Steal: 0.06}))
	judged(t, "stolen now", judgeContention(&ContentionData{Sample: time.Second, Steal: 0.06}), "cpu.steal warning")
	judged(t, "stolen before", judgeContention(&ContentionData{Sample: time.Second, StealSinceStart: 0.03}), "cpu.steal notice")
	judged(t, "much before", judgeContention(&ContentionData{StealSinceStart: 0.3}), "cpu.steal warning")
	judged(t, "pressed", judgeContention(&ContentionData{Pressure: &Pressure{Avg60: 40}}), "cpu.pressure notice")
	judged(t, "hard pressed", judgeContention(&ContentionData{Pressure: &Pressure{Avg60: 95, Avg300: 90}}), "cpu.pressure warning")
}

func TestJudgeDevices(t *testing.T) {
	judged(t, "usual", judgeDevices(&DevicesData{Timers: []TimerDevice{{Name: "lapic-deadline", CPUs: "0-3"}}}, "l"))
	judged(t, "hpet", judgeDevices(&DevicesData{Timers: []TimerDevice{{Name: "hpet2", CPUs: "0"}}}, "l"), "devices.slow-timer warning")
	judged(t, "erratum", judgeDevices(&DevicesData{DeadlineErratum: "TSC_DEADLINE disabled due to Errata; please update microcode to version: 0x3a (or later)"}, "l"), "devices.deadline-timer-off notice")
	for name, want := range map[string]bool{"KVM virtual PTP": true, "hyperv": true, "vmclock": true, "ena-ptp-05": true, "i40e": false, "mlx5_ptp": false} {
		if ofHost(name) != want {
			t.Errorf("%s shows the host's time: %v", name, !want)
		}
	}
}

func TestJudgeLog(t *testing.T) {
	for text, want := range map[string]string{
		"hrtimer: interrupt took 4136 ns":                                                                                    "",
		"hrtimer: interrupt took 140123 ns":                                                                                  "log.long-interrupt info",
		"hrtimer: interrupt took 6663395 ns":                                                                                 "log.long-interrupt notice",
		"watchdog: BUG: soft lockup - CPU#0 stuck for 22s! [kworker/0:1:42]":                                                 "log.lockup warning",
		"watchdog: Watchdog detected hard LOCKUP on cpu 3":                                                                   "log.lockup warning",
		"rcu: INFO: rcu_sched self-detected stall on CPU":                                                                    "log.rcu-stall warning",
		"rcu: INFO: rcu_preempt detected stalls on CPUs/tasks:":                                                              "log.rcu-stall warning",
		"sched: RT throttling activated":                                                                                     "log.realtime-throttled notice",
		"clocksource: wd-tsc-wd read-back delay of 612345ns, clock-skew test skipped!":                                       "log.clocks-not-compared info",
		"clocksource: Long readout interval, skipping watchdog check: cs_nsec: 1234567890 wd_nsec: 1234567891":               "log.clocks-not-compared info",
		"workqueue: psi_avgs_work hogged CPU for >10000us 4 times, consider switching to WQ_UNBOUND":                         "log.kernel-hogs-cpu info",
		"mce: CPU3: Package temperature above threshold, cpu clock throttled (total events = 1)":                             "log.heat info",
		"clocksource:         CPUs 1 ahead of CPU 12 for clocksource tsc.":                                                   "log.clocks-disagree warning",
		"clocksource:         CPUs 0-2 behind CPU 12 for clocksource tsc.":                                                   "log.clocks-disagree warning",
		"usb 1-1: new high-speed USB device number 2 using xhci_hcd":                                                         "",
		"clocksource: Checking clocksource tsc synchronization from CPU 12 to CPUs 0-2,5.":                                   "",
		"systemd[1]: a service complains: BUG: soft lockup, and is not the kernel, but nobody can tell it from its text ...": "",
	} {
		log := hostfs.ParseLog("l", "[    5.000000] "+text+"\n[    6.000000] "+text+"\n")
		d := &LogData{Source: "l", Events: readEvents(log)}
		var wanted []string
		if want != "" {
			wanted = []string{want}
			if d.Events[0].Count != 2 || d.Events[0].First != 5*time.Second || d.Events[0].Last != 6*time.Second {
				t.Errorf("%q: %+v", text, d.Events[0])
			}
		}
		judged(t, text, judgeLog(d), wanted...)
	}
	old := &LogData{Source: "l", Uptime: 72 * time.Hour, Events: []LogEvent{{Kind: EventLockup, Count: 1, Last: time.Hour, Line: "x"}}}
	judged(t, "the day before yesterday", judgeLog(old), "log.lockup notice")
	old.Events[0].Last = 71 * time.Hour
	judged(t, "an hour ago", judgeLog(old), "log.lockup warning")
}

func TestJudgeDiscipline(t *testing.T) {
	bare := &PlatformData{Virtual: No, Container: No}
	good := func() *DisciplineData {
		return &DisciplineData{Synchronized: true, Frequency: -12.5, Status: []string{"PLL", "NANO"}, Daemons: []string{"chrony"}, platform: bare}
	}
	judged(t, "kept", judgeDiscipline(good()))
	for _, test := range []struct {
		name string
		make func(d *DisciplineData)
		want string
	}{
		{"nobody", func(d *DisciplineData) { d.Synchronized, d.Daemons = false, nil }, "discipline.unsynchronized notice"},
		{"chrony without rtcsync", func(d *DisciplineData) { d.Synchronized = false }, "discipline.unsynchronized info"},
		{"a container", func(d *DisciplineData) {
			d.Synchronized, d.Daemons, d.platform = false, nil, &PlatformData{Container: Yes}
		}, "discipline.unsynchronized notice"},
		{"WSL2", func(d *DisciplineData) {
			d.Synchronized, d.Daemons, d.platform = false, nil, &PlatformData{WSL: true}
		}, "discipline.unsynchronized info"},
		{"a bad oscillator", func(d *DisciplineData) { d.Frequency = 250 }, "discipline.slewed notice"},
		{"turned hard", func(d *DisciplineData) { d.Frequency = -80_000 }, "discipline.slewed warning"},
		{"off", func(d *DisciplineData) { d.Offset = -30 * time.Millisecond }, "discipline.offset notice"},
		{"unconfirmed", func(d *DisciplineData) { d.MaxError = 8 * time.Second }, "discipline.uncertain notice"},
		{"leap second", func(d *DisciplineData) { d.Leap = leapState(1) }, "discipline.leap-second notice"},
		{"rivals", func(d *DisciplineData) { d.Daemons = []string{"chrony", "systemd-timesyncd"} }, "discipline.rivals warning"},
		{"not rivals", func(d *DisciplineData) { d.Daemons = []string{"chrony", "phc2sys", "vmtoolsd"} }, ""},
	} {
		d := good()
		test.make(d)
		var want []string
		if test.want != "" {
			want = []string{test.want}
		}
		judged(t, test.name, judgeDiscipline(d), want...)
	}
}

func TestTimex(t *testing.T) {
	d := timex{state: 5, status: 0x2041, offset: 1500, freq: -32768, maxError: 16_000_000, estError: 7, tick: 10_000, tai: 37}.data()
	if d.Synchronized || d.Offset != 1500 || d.Frequency != -0.5 || d.MaxError != 16*time.Second || d.TAI != 37 || d.Leap != "" || !slices.Equal(d.Status, []string{"PLL", "UNSYNC", "NANO"}) {
		t.Errorf("%+v", d)
	}
	d = timex{state: 1, status: 0x11, offset: 1500, freq: 65536 * 20, tick: 10_001}.data()
	if !d.Synchronized || d.Offset != 1500*time.Microsecond || d.Frequency != 120 || d.Leap == "" {
		t.Errorf("%+v", d)
	}
}

func TestJudgeRuntime(t *testing.T) {
	judged(t, "usual", judgeRuntime(&RuntimeData{GOMAXPROCS: 8, NumCPU: 8}))
	judged(t, "follows the quota", judgeRuntime(&RuntimeData{GOMAXPROCS: 3, NumCPU: 8, Quota: 2.5, quotaFile: "q"}))
	judged(t, "two at least", judgeRuntime(&RuntimeData{GOMAXPROCS: 2, NumCPU: 8, Quota: 0.5, quotaFile: "q"}))
	judged(t, "one CPU", judgeRuntime(&RuntimeData{GOMAXPROCS: 1, NumCPU: 1, Quota: 0.5, quotaFile: "q"}))
	for remedy, d := range map[string]*RuntimeData{
		"remove GOMAXPROCS=8":     {GOMAXPROCS: 8, NumCPU: 8, Quota: 2, quotaFile: "q", Environment: "8"},
		"containermaxprocs=0":     {GOMAXPROCS: 8, NumCPU: 8, Quota: 2, quotaFile: "q", Settings: map[string]string{"containermaxprocs": "0"}},
		"call of runtime.GOMAXPR": {GOMAXPROCS: 8, NumCPU: 8, Quota: 2, quotaFile: "q"},
	} {
		got := judgeRuntime(d)
		judged(t, remedy, got, "runtime.gomaxprocs-above-quota warning")
		if !remedied(got, "runtime.gomaxprocs-above-quota", remedy) {
			t.Errorf("no remedy %q: %+v", remedy, got)
		}
	}
	judged(t, "one", judgeRuntime(&RuntimeData{GOMAXPROCS: 1, NumCPU: 8}), "runtime.one-p info")
	judged(t, "settings", judgeRuntime(&RuntimeData{GOMAXPROCS: 8, NumCPU: 8, Race: true, Settings: parseSettings("asynctimerchan=0,asyncpreemptoff=0", "asynctimerchan=1, asyncpreemptoff=1,madvdontneed=1")}),
		"runtime.no-async-preemption warning", "runtime.async-timer-channels notice", "runtime.race-detector info")
	judged(t, "settings off", judgeRuntime(&RuntimeData{GOMAXPROCS: 8, NumCPU: 8, Settings: parseSettings("asynctimerchan=1", "asynctimerchan=0")}))
}

func TestJudgePlatform(t *testing.T) {
	judged(t, "bare metal", judgePlatform(&PlatformData{Virtual: No}))
	judged(t, "TCG", judgePlatform(&PlatformData{CPU: "QEMU TCG CPU version 2.5+"}), "platform.emulated warning")
	judged(t, "gVisor", judgePlatform(&PlatformData{GVisor: true}), "platform.gvisor notice")
}

func TestRelate(t *testing.T) {
	r := &Report{Results: []Result{
		{Findings: []Finding{{ID: "clocks.vdso-falls-back"}, {ID: "log.heat"}}},
		{Findings: []Finding{{ID: "clocksource.no-vdso", Because: "clocksource.tsc-unstable"}}},
	}}
	r.relate()
	f := r.Findings()
	got := map[string]string{}
	for _, f := range f {
		got[f.ID] = f.Because
	}
	if got["clocks.vdso-falls-back"] != "clocksource.no-vdso" || got["log.heat"] != "" || got["clocksource.no-vdso"] != "clocksource.tsc-unstable" {
		t.Errorf("%v", got)
	}
}

func TestReconcile(t *testing.T) {
	made := func(runtime Served) *Report {
		return &Report{Results: []Result{
			{Data: &ClocksourceData{VDSO: ServedMaybe}, Findings: []Finding{
				{ID: "clocksource.vdso-depends"}, {ID: "clocksource.no-vdso", Confidence: Likely}, {ID: "clocksource.changed"}}},
			{Data: &ClocksData{Runtime: runtime}},
		}}
	}
	r := made(ServedYes)
	r.reconcile()
	if f := findingsOf(r); !slices.Equal(f, []string{"clocksource.changed info"}) || r.Results[0].Data.(*ClocksourceData).VDSO != ServedYes {
		t.Errorf("measured: %q, %+v", f, r.Results[0].Data)
	}
	for _, served := range []Served{ServedNo, ServedUnknown} {
		r := made(served)
		r.reconcile()
		if f := findingsOf(r); len(f) != 3 {
			t.Errorf("%s: %q", served, f)
		}
	}
}

func TestText(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0s", 999: "999ns", 1174837: "1.17ms", -16028012: "-16ms", 503712354: "504ms", 59 * time.Second: "59s",
		90 * time.Second: "1m30s", 10 * time.Minute: "10m", 8996*time.Second + 144: "2h30m", 48 * time.Hour: "48h", time.Hour + 29*time.Minute: "1h29m",
	} {
		if got := short(d); got != want {
			t.Errorf("%d ns is %s, want %s", d, got, want)
		}
	}
	for part, want := range map[float64]string{0: "0 %", 0.00037: "0.037 %", 0.012: "1.2 %", 0.5: "50 %"} {
		if got := percent(part, 1); got != want {
			t.Errorf("%g is %s, want %s", part, got, want)
		}
	}
	if n, ok := number("a b: -12 c", "b: "); n != -12 || !ok {
		t.Error(n, ok)
	}
	if _, ok := number("a b: x", "b: "); ok {
		t.Error("x is a number")
	}
}
