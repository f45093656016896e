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
