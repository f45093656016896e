package probe

import (
	"strings"
	"testing"
	"time"

	"github.com/detent-go/detent/internal/hostfs"
)

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
