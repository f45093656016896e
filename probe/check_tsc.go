package probe

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/detent-go/detent/internal/hostfs"
	"github.com/detent-go/detent/internal/tsc"
)

// The check of what the CPU promises of its TSC. It has TSCData.
var tscCheck = Check{
	Name:  "tsc",
	About: "what the CPU and the kernel promise of the TSC: one rate in all states, a known frequency, set alike on all CPUs",
	Run: func(_ context.Context, e *Env) Result {
		if err := e.linux(); err != nil {
			return Result{Err: err}
		}
		if !e.x86() {
			return Result{Err: fmt.Errorf("%s has no TSC: %w", e.Arch, errors.ErrUnsupported)}
		}
		info, err := hostfs.ReadCPUInfo(e.Root)
		if err != nil {
			return Result{Err: unseen("the CPU's flags", err, "")}
		}
		if !info.Flags["tsc"] {
			return Result{Err: fmt.Errorf("the CPU has no TSC: %w", errors.ErrUnsupported)}
		}
		log, _ := e.kernelLog() // the check log says if it cannot be seen
		d := &TSCData{
			Constant: info.Flags["constant_tsc"], Nonstop: info.Flags["nonstop_tsc"],
			KnownFrequency: info.Flags["tsc_known_freq"], Reliable: info.Flags["tsc_reliable"],
			Adjust: info.Flags["tsc_adjust"], RDTSCP: info.Flags["rdtscp"],
			DeadlineTimer: info.Flags["tsc_deadline_timer"], AlwaysRunningAPICTimer: info.Flags["arat"], ART: info.Flags["art"],
			KHz: readTSCFrequency(log), Firmware: readTSCFirmware(log), LogSource: log.Source, SameOnAllCPUs: info.Same,
			Virtual: e.platformData().Virtual, hypervisor: e.platformData().Hypervisor,
		}
		if e.Own {
			if why := tsc.Check(); why != nil {
				d.Unusable = why.Error()
			}
		}
		return Result{Data: d, Findings: judgeTSC(d)}
	},
}

// TSCData is the data of the check "tsc".
type TSCData struct {
	Constant       bool `json:"constant_tsc"`   // its rate does not change with the CPU's frequency
	Nonstop        bool `json:"nonstop_tsc"`    // it runs in all idle states
	KnownFrequency bool `json:"tsc_known_freq"` // the machine states its frequency
	Reliable       bool `json:"tsc_reliable"`   // the hypervisor or the platform vouches for it
	Adjust         bool `json:"tsc_adjust"`     // the kernel can see, and undo, what firmware writes to it
	RDTSCP         bool `json:"rdtscp"`
	DeadlineTimer  bool `json:"tsc_deadline_timer"` // the CPU's timer takes a TSC value: as fine as it can be
	// AlwaysRunningAPICTimer: the CPU's timer runs in all idle states.
	AlwaysRunningAPICTimer bool `json:"arat"`
	ART                    bool `json:"art"` // it can be related to the clocks of devices
	SameOnAllCPUs          bool `json:"same_on_all_cpus"`
	// KHz is the frequency by the kernel's log; 0: not to be seen.
	KHz      float64  `json:"khz,omitempty"`
	Firmware []string `json:"firmware,omitempty"` // the kernel's complaints about what firmware did to it
	// Unusable is why this process cannot use it, by package clock's own rules;
	// empty if it can, or for a copied tree.
	Unusable  string `json:"unusable,omitempty"`
	Virtual   Known  `json:"virtual"`
	LogSource string `json:"log_source,omitempty"` // where KHz and Firmware are from; "": there was no log to read

	hypervisor string
}

// readTSCFrequency prefers the refined calibration, which takes place a second
// later, to the first one.
func readTSCFrequency(log *hostfs.Log) float64 {
	for _, text := range []string{"Refined TSC clocksource calibration: ", "tsc: Detected "} {
		if l, ok := hasLine(log, text); ok {
			var mhz float64
			_, rest, _ := strings.Cut(l.Text, text)
			if _, err := fmt.Sscanf(rest, "%f MHz", &mhz); err == nil {
				return mhz * 1000
			}
		}
	}
	return 0
}

// readTSCFirmware finds what the kernel says when firmware has set TSCs apart. It
// puts them right where the CPU has tsc_adjust.
func readTSCFirmware(log *hostfs.Log) []string {
	var lines []string
	const most = 4
	for _, l := range log.Lines {
		if len(lines) < most && strings.Contains(l.Text, "TSC ADJUST") {
			lines = append(lines, l.String())
		}
	}
	return lines
}

func judgeTSC(d *TSCData) []Finding {
	flags := Evidence{"flags", orNone(d.flags()), "/proc/cpuinfo"}
	var found []Finding
	if !d.Constant || !d.Nonstop {
		f := Finding{
			ID: "tsc.not-invariant", Severity: Notice, Confidence: Certain,
			Title:    "the CPU does not promise that its TSC runs at one rate: " + missingFlags(d),
			Detail:   "The kernel uses another clock as soon as the rate changes, and package clock's TSC does not use the counter.",
			Evidence: []Evidence{flags},
			Remedy:   []string{"use a machine whose CPUs have constant_tsc and nonstop_tsc (Intel since 2008, AMD since 2007)"},
		}
		if d.Virtual == Yes {
			f.Severity = Info
			f.Detail = "Usual in virtual machines that may migrate. The hypervisor's own clock, which the kernel uses, is right all the same; package clock's TSC does not use the counter."
			f.Remedy = nil
			if d.hypervisor == "kvm" {
				f.Remedy = []string{"on the host, if the machine need not migrate to hosts with another TSC frequency: QEMU -cpu host,+invtsc; libvirt <feature policy='require' name='invtsc'/>"}
			}
		}
		found = append(found, f)
	}
	if len(d.Firmware) > 0 {
		f := Finding{
			ID: "tsc.firmware-adjusts", Severity: Notice, Confidence: Certain,
			Title:  "the firmware sets the CPUs' TSCs apart; the kernel has put them right",
			Detail: "Firmware that does so at start may do so later, from system management mode, and the kernel looks only now and then.",
			Remedy: []string{"update the machine's firmware"},
		}
		for _, line := range d.Firmware {
			f.Evidence = append(f.Evidence, Evidence{"kernel's log", line, d.LogSource})
		}
		found = append(found, f)
	}
	if d.Unusable != "" && d.Constant && d.Nonstop {
		found = append(found, Finding{
			ID: "tsc.forbidden", Severity: Info, Confidence: Certain,
			Title:    "this process cannot use the TSC itself: " + d.Unusable,
			Detail:   "Package clock's TSC is the kernel's clock here.",
			Evidence: []Evidence{flags, {"reason", d.Unusable, "CPUID, prctl(PR_GET_TSC)"}},
		})
	}
	if d.Virtual == No && !d.AlwaysRunningAPICTimer {
		found = append(found, Finding{
			ID: "tsc.timer-stops", Severity: Notice, Confidence: Likely,
			Title:    "the CPU's own timer stops in deep idle states (no flag arat): another device has to wake it, later",
			Evidence: []Evidence{flags},
			Remedy:   []string{"add processor.max_cstate=1 intel_idle.max_cstate=0 to the kernel's command line and start anew, where timers have to be precise: CPUs then never sleep deeply, and the machine uses more power"},
		})
	}
	return found
}

func (d *TSCData) flags() string {
	var flags []string
	for _, f := range []struct {
		name string
		has  bool
	}{
		{"constant_tsc", d.Constant}, {"nonstop_tsc", d.Nonstop}, {"tsc_known_freq", d.KnownFrequency}, {"tsc_reliable", d.Reliable},
		{"tsc_adjust", d.Adjust}, {"rdtscp", d.RDTSCP}, {"tsc_deadline_timer", d.DeadlineTimer}, {"arat", d.AlwaysRunningAPICTimer}, {"art", d.ART},
	} {
		if f.has {
			flags = append(flags, f.name)
		}
	}
	return strings.Join(flags, " ")
}

func missingFlags(d *TSCData) string {
	var lost []string
	if !d.Constant {
		lost = append(lost, "no constant_tsc")
	}
	if !d.Nonstop {
		lost = append(lost, "no nonstop_tsc")
	}
	return strings.Join(lost, ", ")
}
