package probe

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/detent-go/detent/internal/hostfs"
)

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

func TestJudgeShifts(t *testing.T) {
	judged(t, "none", judgeShifts(&ShiftsData{Initial: Yes}))
	judged(t, "a namespace without offsets", judgeShifts(&ShiftsData{Initial: No}))
	judged(t, "a namespace", judgeShifts(&ShiftsData{Initial: No, Monotonic: time.Hour}), "shifts.time-namespace info")
	judged(t, "children", judgeShifts(&ShiftsData{Initial: Yes, ChildrenDiffer: true}), "shifts.children-elsewhere info")
	judged(t, "suspended", judgeShifts(&ShiftsData{Initial: Yes, Suspended: 8 * time.Hour}), "shifts.suspended info")
	judged(t, "read one after the other", judgeShifts(&ShiftsData{Initial: Yes, Suspended: 300 * time.Nanosecond}))
}

// Who cannot see the processes of others does not say that nobody keeps the clock.
func TestJudgeDisciplineUnseen(t *testing.T) {
	found := judgeDiscipline(&DisciplineData{platform: &PlatformData{}, unseen: true})
	if len(found) != 1 || found[0].ID != "discipline.unsynchronized" || found[0].Confidence == Certain ||
		strings.Contains(found[0].Title, "nobody") || !strings.Contains(found[0].Evidence[3].Value, "cannot be seen") {
		t.Errorf("%+v", found)
	}
	for _, root := range []fstest.MapFS{{}, {"proc/17/comm": {Data: []byte("sh\n")}}} {
		e := &Env{Root: root, Own: true}
		if e.linux() != nil {
			t.Skip(e.linux())
		}
		if r := disciplineCheck.Run(context.Background(), e); !errors.Is(r.Err, errors.ErrUnsupported) && (r.Err == nil || !r.Data.(*DisciplineData).unseen) {
			t.Errorf("%v: %+v", root, r)
		}
	}
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
