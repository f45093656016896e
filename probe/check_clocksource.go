package probe

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/detent-go/detent/internal/hostfs"
)

// The check of the kernel's clocksource. It has ClocksourceData.
var clocksourceCheck = Check{
	Name:  "clocksource",
	About: "what the kernel takes its time from and why, and whether programs can read it without a system call",
	Run: func(_ context.Context, e *Env) Result {
		if err := e.linux(); err != nil {
			return Result{Err: err}
		}
		source, err := hostfs.ReadClocksource(e.Root)
		if err != nil {
			return Result{Err: unseen("the kernel's clocksource", err, "")}
		}
		parameters, err := hostfs.ReadParameters(e.Root)
		if err != nil {
			err = unseen("the kernel's parameters", err, "")
		}
		log, logErr := e.kernelLog()
		d := &ClocksourceData{
			Current: source.Current, Available: source.Available,
			VDSO:       servedHere(source.Current, log, parameters),
			Parameters: parameters.Named(clocksourceParameters...),
			Changes:    readChanges(log), Distrust: readDistrust(log), LogSource: log.Source, LogWhole: log.Whole,
			platform: e.platformData(),
		}
		if info, err := hostfs.ReadCPUInfo(e.Root); err == nil {
			d.adjust = info.Flags["tsc_adjust"]
		}
		d.kernel, _ = hostfs.Kernel(e.Root)
		return Result{Err: errors.Join(err, logErr), Data: d, Findings: judgeClocksource(d)}
	},
}

// clocksourceParameters decide what the kernel takes its time from, or how far
// it trusts that.
var clocksourceParameters = []string{
	"clocksource", "tsc", "notsc", "no-kvmclock", "no-kvmclock-vsyscall", "nopv", "xen_nopv", "hv_nopvspin", "hpet", "nohpet", "acpi_pm_good", "vdso", "processor.max_cstate",
}

// ClocksourceData is the data of the check "clocksource".
type ClocksourceData struct {
	Current   string   `json:"current"`
	Available []string `json:"available"` // best first
	// VDSO says whether the current one is read without a system call, by what is
	// known about it; the check "clocks" measures it.
	VDSO       Served              `json:"vdso"`
	Parameters []string            `json:"parameters"` // of the kernel's command line, those about clocks
	Changes    []ClocksourceChange `json:"changes"`    // in the kernel's log, in order
	Distrust   *Distrust           `json:"distrust,omitempty"`
	// LogSource is what Changes and Distrust were read from; "" if there was
	// nothing to read. LogWhole says that it goes back to the machine's start.
	LogSource string `json:"log_source,omitempty"`
	LogWhole  bool   `json:"log_whole"`

	platform *PlatformData
	adjust   bool // the CPU flag tsc_adjust
	kernel   string
}

const (
	currentFile   = "/sys/devices/system/clocksource/clocksource0/current_clocksource"
	availableFile = "/sys/devices/system/clocksource/clocksource0/available_clocksource"
)

// startup is how long the kernel's own search for the best clocksource may take.
const startup = time.Minute

func judgeClocksource(d *ClocksourceData) []Finding {
	p := hostfs.Parameters(d.Parameters)
	evidence := []Evidence{
		{"current clocksource", orNone(d.Current), currentFile},
		{"available clocksources", orNone(strings.Join(d.Available, " ")), availableFile},
	}
	if len(d.Parameters) > 0 {
		evidence = append(evidence, Evidence{"kernel parameters", strings.Join(d.Parameters, " "), "/proc/cmdline"})
	}
	var found []Finding
	if f, ok := judgeServedNo(d, evidence); ok {
		found = append(found, f)
	}
	if d.VDSO == ServedMaybe {
		found = append(found, Finding{
			ID: "clocksource.vdso-depends", Severity: Info, Confidence: Possible,
			Title:    fmt.Sprintf("whether %s can be read without a system call depends on the hypervisor: the check clocks measures it", d.Current),
			Detail:   "Xen lets guests read its clock by themselves if its own clocksource is the TSC and it counts in step on all CPUs; it rarely says so.",
			Evidence: evidence,
			Remedy:   switchTo(d.better(), "if the check clocks finds system calls"),
		})
	}
	if f, ok := judgeDistrust(d, evidence); ok {
		found = append(found, f)
	}
	if v, ok := p.Last("vdso"); ok && v == "0" {
		found = append(found, Finding{
			ID: "clocksource.vdso-disabled", Severity: Critical, Confidence: Certain,
			Title:    "the kernel was started with vdso=0: every reading of a clock is a system call in every process",
			Evidence: evidence,
			Remedy:   []string{removeParameters("vdso=0")},
		})
	}
	if v := p.Named("tsc"); d.Current == "tsc" && (slices.Contains(v, "tsc=reliable") || slices.Contains(v, "tsc=nowatchdog")) && d.platform.Virtual == No {
		found = append(found, Finding{
			ID: "clocksource.unwatched", Severity: Info, Confidence: Certain,
			Title:    "the kernel was told to trust the TSC: it would not notice one that goes wrong",
			Detail:   "The checks of the counters' offsets and of backward steps measure what the kernel no longer does.",
			Evidence: evidence,
			Remedy:   []string{"nothing, if the TSC is known to be good on this kind of machine; otherwise " + removeParameters(v...)},
		})
	}
	if f, ok := judgeChanges(d); ok {
		found = append(found, f)
	}
	return found
}

func judgeServedNo(d *ClocksourceData, evidence []Evidence) (Finding, bool) {
	if d.VDSO != ServedNo {
		return Finding{}, false
	}
	f := Finding{
		ID: "clocksource.no-vdso", Severity: Critical, Confidence: Certain,
		Title:    fmt.Sprintf("the kernel keeps time by %s, which programs cannot read: every reading of a clock is a system call", d.Current),
		Evidence: evidence,
	}
	switch d.Current {
	case "hpet", "acpi_pm", "pit":
		f.Detail = "The kernel has to ask a device on a slow bus, one reading at a time for all CPUs: a reading takes from half a microsecond to several, instead of 20 ns."
	case "jiffies", "refined-jiffies":
		f.Detail = "Time advances by a whole tick at once, 1 to 10 ms, and timers are no finer."
	case "arch_sys_counter":
		f.Confidence = Likely
		f.Detail = "The kernel works around an erratum of this CPU's counter, and only it can."
	default:
		f.Severity, f.Confidence = Warning, Likely
		f.Detail = "The host does not say that its CPUs' counters are in step, so that the kernel reads the clock on behalf of programs: some 200 ns instead of 20."
	}
	best := d.better()
	p := hostfs.Parameters(d.Parameters)
	chosen, _ := p.Last("clocksource")
	switch {
	case d.Distrust != nil && d.Distrust.Clocksource != d.Current && best == "":
		f.Because = "clocksource.tsc-unstable"
	case len(p.Values("notsc")) > 0:
		f.Remedy = []string{removeParameters("notsc")}
	case chosen == d.Current:
		f.Remedy = append(switchTo(best, ""), removeParameters("clocksource="+chosen))
	case best != "":
		f.Remedy = switchTo(best, "")
	case len(p.Values("no-kvmclock-vsyscall")) > 0:
		f.Remedy = []string{removeParameters("no-kvmclock-vsyscall")}
	case len(p.Values("no-kvmclock")) > 0:
		f.Remedy = []string{removeParameters("no-kvmclock")}
	default:
		f.Remedy = d.platform.betterClock(d.Current)
	}
	return f, true
}

// betterClock says what the host can do for a guest, or the firmware for a machine,
// that has no good clocksource.
func (p *PlatformData) betterClock(current string) []string {
	switch p.Hypervisor {
	case "kvm", "qemu":
		if current == "kvm-clock" {
			return []string{"on the host: cat " + currentFile + " must say tsc, or KVM cannot promise guests that their TSCs are in step; repair that first, then restart the guest"}
		}
		return []string{"on the host, give the guest KVM's clock and the host's TSC: libvirt <timer name='kvmclock' present='yes'/> and <timer name='tsc' present='yes' mode='native'/>, <cpu mode='host-passthrough'><feature policy='require' name='invtsc'/></cpu>; QEMU -cpu host,+invtsc,+kvmclock. The guest has to be started anew, and can then migrate only to hosts with a TSC of the same frequency"}
	case "xen":
		return []string{"on the host: start Xen with clocksource=tsc tsc=stable:socket if its hardware allows, and give the guest tsc_mode=\"native\" in its configuration"}
	case "hyperv":
		return []string{"move the machine to a host with an invariant TSC: Hyper-V offers its TSC page only there"}
	case "vmware":
		return []string{"in the machine's .vmx: remove monitor_control.virtual_rdtsc = \"FALSE\" and any timeTracker setting, use virtual hardware version 13 or later, and start it anew"}
	case "virtualbox":
		return []string{"on the host: VBoxManage modifyvm NAME --paravirt-provider kvm, which gives Linux guests kvm-clock"}
	}
	if p.Virtual == Yes {
		return []string{"ask whoever runs the hypervisor for a clock that guests can read by themselves: an invariant TSC, kvm-clock or Hyper-V's TSC page"}
	}
	return []string{
		"dmesg | grep -i -e tsc -e clocksource   # shows why the kernel did not take the TSC",
		"update the firmware, and look there that the TSC is not switched off or made to stop in idle states",
	}
}

func judgeDistrust(d *ClocksourceData, evidence []Evidence) (Finding, bool) {
	u := d.Distrust
	if u == nil || u.Kind == DistrustHypervisor && d.VDSO != ServedNo {
		return Finding{}, false // kernels on Hyper-V do so by design
	}
	f := Finding{
		ID: "clocksource.tsc-unstable", Severity: Warning, Confidence: Certain,
		Title: fmt.Sprintf("the kernel gave up %s: %s", u.Clocksource, u.Reason),
	}
	if u.At >= 0 {
		f.Title = fmt.Sprintf("the kernel gave up %s %s after the machine's start: %s", u.Clocksource, short(u.At), u.Reason)
	}
	if u.Skew != 0 && u.Interval > 0 {
		f.Title += fmt.Sprintf(" (%s in %s against %s)", short(u.Skew), short(u.Interval), u.Watchdog)
	}
	for _, line := range u.Lines {
		f.Evidence = append(f.Evidence, Evidence{"kernel's log", line, d.LogSource})
	}
	f.Evidence = append(f.Evidence, evidence...)
	if d.VDSO != ServedNo {
		// What is in use instead is as good; the TSC is of interest to those who read it themselves.
		f.Severity = Info
		f.Detail = fmt.Sprintf("The kernel uses %s instead, which costs programs no more. Package clock's TSC falls back to the kernel's clock.", d.Current)
		if d.platform.Virtual != No {
			return f, true
		}
	}
	again := "start the machine anew: the kernel tries the TSC afresh each time, and until then uses " + d.Current
	switch u.Kind {
	case DistrustSkew:
		f.Detail = "Every half second the kernel compares the TSC with another clock. Either the TSC is wrong (firmware that writes to it in system management mode, a CPU that was unplugged or suspended), or the other clock is, or the comparison was held up for long by a busy hypervisor. " + f.Detail
		f.Remedy = []string{"update the machine's firmware, then " + again}
		if d.adjust && olderThan(d.kernel, 5, 17) {
			f.Remedy = append(f.Remedy, "use Linux 5.17 or later: on CPUs as these (tsc_adjust), in machines with few sockets, it no longer makes the comparison, since false alarms were more frequent than bad TSCs")
		}
		f.Remedy = append(f.Remedy,
			"if the checks of the counters' offsets and rate find the TSC sound: add tsc=nowatchdog to the kernel's command line and start anew; the kernel then never notices a TSC that goes wrong",
		)
	case DistrustReadBack:
		f.Detail = "Something kept the kernel from reading two clocks beside each other (system management mode, a hypervisor that took the CPU away). That says nothing about the TSC. " + f.Detail
		f.Remedy = []string{again}
		if olderThan(d.kernel, 5, 18) {
			f.Remedy = append(f.Remedy, "use Linux 5.18 or later, which skips the comparison when it was disturbed")
		}
		f.Remedy = append(f.Remedy, "add tsc=nowatchdog to the kernel's command line; the kernel then never notices a TSC that goes wrong")
	case DistrustWarp:
		f.Detail = "The TSCs of CPUs differ, so that time would step back when a thread moves. " + f.Detail
		f.Remedy = []string{
			"update the machine's firmware: it has to start all sockets' TSCs together; then " + again,
			"do not force it with tsc=reliable: time would step back",
		}
	case DistrustIdle:
		f.Detail = "This CPU's TSC stands still in deep idle states. " + f.Detail
		f.Remedy = []string{"add processor.max_cstate=1 intel_idle.max_cstate=0 to the kernel's command line and start anew: CPUs then never sleep deeply, and the machine uses more power"}
	case DistrustFrequency:
		f.Detail = "This CPU's TSC runs at the CPU's own frequency. " + f.Detail
		f.Remedy = []string{"fix the frequency: cpupower frequency-set -g performance at every start, before the kernel notices a change; or use a machine with constant_tsc"}
	case DistrustChosen:
		f.Remedy = []string{removeParameters(hostfs.Parameters(d.Parameters).Named("tsc")...)}
	default:
		f.Remedy = []string{"update the machine's firmware and kernel, then " + again}
	}
	if d.platform.Virtual == Yes && (u.Kind == DistrustSkew || u.Kind == DistrustReadBack) {
		f.Remedy = append(d.platform.betterClock(d.Current), f.Remedy...)
	}
	f.Detail = strings.TrimSpace(f.Detail)
	return f, true
}

// olderThan reports whether a kernel's release is known to be before a version.
// Distributions carry newer code back, so that an old number proves little.
func olderThan(release string, major, minor int) bool {
	var a, b int
	if _, err := fmt.Sscanf(release, "%d.%d", &a, &b); err != nil {
		return false
	}
	return a < major || a == major && b < minor
}

func judgeChanges(d *ClocksourceData) (Finding, bool) {
	late := 0
	for _, c := range d.Changes {
		if c.At > startup {
			late++
		}
	}
	if late == 0 || d.Distrust != nil {
		return Finding{}, false
	}
	f := Finding{
		ID: "clocksource.changed", Severity: Info, Confidence: Certain,
		Title:  fmt.Sprintf("the clocksource was changed %s after the machine's start, last to %s", plural(late, "time"), d.Changes[len(d.Changes)-1].To),
		Detail: "The kernel states no fault, so somebody with root's rights did it. A program that keeps a clock of its own from the TSC has to notice.",
	}
	const most = 6
	last := d.Changes[max(0, len(d.Changes)-most):]
	if more := len(d.Changes) - len(last); more > 0 {
		f.Evidence = append(f.Evidence, Evidence{"kernel's log", plural(more, "change") + " before", d.LogSource})
	}
	for _, c := range last {
		f.Evidence = append(f.Evidence, Evidence{"kernel's log", fmt.Sprintf("%s: %s", short(c.At), c.To), d.LogSource})
	}
	return f, true
}

// switchTo says how to take another clocksource at once and for good.
func switchTo(name, when string) []string {
	if name == "" {
		return nil
	}
	if when != "" {
		when = "  # " + when
	}
	steps := []string{
		fmt.Sprintf("echo %s > %s%s", name, currentFile, when),
		fmt.Sprintf("for good: add clocksource=%s to the kernel's command line", name),
	}
	if name == "tsc" {
		steps[0] += "\nThe kernel does so without a pause, and does not if it finds the TSC unstable. In a virtual machine that may migrate, do it only if all its hosts have TSCs of the same frequency or scale them"
	}
	return steps
}

func removeParameters(parameters ...string) string {
	return fmt.Sprintf("remove %s from the kernel's command line (GRUB_CMDLINE_LINUX in /etc/default/grub, then update-grub or grub2-mkconfig -o /boot/grub2/grub.cfg) and start the machine anew", strings.Join(parameters, " "))
}
