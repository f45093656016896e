package probe

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/detent-go/detent/internal/hostfs"
)

// The check of timer and clock devices. It has DevicesData.
var devicesCheck = Check{
	Name:  "devices",
	About: "the devices that timers and clocks are made of: CPU timers, HPET, ACPI timer, PTP clocks",
	Run: func(_ context.Context, e *Env) Result {
		if err := e.linux(); err != nil {
			return Result{Err: err}
		}
		d := &DevicesData{}
		timers, broadcast, err := hostfs.ReadClockevents(e.Root)
		if err = missing(err); err != nil {
			err = unseen("timer devices", err, "")
		}
		d.Broadcast = broadcast
		for cpu, device := range timers {
			i := slices.IndexFunc(d.Timers, func(t TimerDevice) bool { return t.Name == device })
			if i < 0 {
				i = len(d.Timers)
				d.Timers = append(d.Timers, TimerDevice{Name: device})
			}
			d.Timers[i].cpus = append(d.Timers[i].cpus, cpu)
		}
		for i := range d.Timers {
			d.Timers[i].CPUs = d.Timers[i].cpus.String()
		}
		log, _ := e.kernelLog() // the check log says if it cannot be seen
		source, _ := hostfs.ReadClocksource(e.Root)
		d.HPET = slices.Contains(source.Available, "hpet") || hostfs.Exists(e.Root, "dev/hpet") || hostfs.Exists(e.Root, "sys/bus/acpi/devices/PNP0103:00")
		d.ACPITimer = slices.Contains(source.Available, "acpi_pm")
		if l, ok := hasLine(log, "TSC_DEADLINE disabled due to Errata"); ok {
			d.DeadlineErratum = l.String()
		}
		clocks, ptpErr := hostfs.ReadPTPClocks(e.Root)
		for _, c := range clocks {
			p := PTPClock{Device: "/dev/" + c.Device, Name: c.Name, Host: ofHost(c.Name)}
			if f, openErr := e.Root.Open("dev/" + c.Device); openErr == nil {
				p.Readable = true
				f.Close()
			}
			d.PTP = append(d.PTP, p)
		}
		if ptpErr != nil {
			ptpErr = unseen("PTP clocks", ptpErr, "")
		}
		return Result{Err: errors.Join(err, ptpErr), Data: d, Findings: judgeDevices(d, log.Source)}
	},
}

// DevicesData is the data of the check "devices".
type DevicesData struct {
	Timers    []TimerDevice `json:"timers"`    // that interrupt CPUs
	Broadcast string        `json:"broadcast"` // that wakes CPUs whose own device sleeps with them; "" if none
	HPET      bool          `json:"hpet"`
	ACPITimer bool          `json:"acpi_pm"`
	PTP       []PTPClock    `json:"ptp"`
	// DeadlineErratum is the kernel's reason not to use the CPU's deadline timer.
	DeadlineErratum string `json:"deadline_erratum,omitempty"`
}

// A TimerDevice interrupts CPUs when their next timers are due.
type TimerDevice struct {
	Name string `json:"name"` // as the kernel calls it: lapic-deadline, arch_sys_timer
	CPUs string `json:"cpus"`

	cpus hostfs.CPUSet
}

// A PTPClock is a clock device.
type PTPClock struct {
	Device   string `json:"device"`
	Name     string `json:"name"` // as its driver calls it
	Host     bool   `json:"host"` // it shows a virtual machine its host's time
	Readable bool   `json:"readable"`
}

// ofHost knows the devices by which hypervisors show their time.
func ofHost(name string) bool {
	for _, n := range []string{"KVM virtual PTP", "hyperv", "ptp_vmw", "vmclock", "ena-ptp", "ptp_vmclock"} {
		if strings.EqualFold(name, n) || strings.HasPrefix(strings.ToLower(name), n) {
			return true
		}
	}
	return false
}

// slowTimers are devices shared by all CPUs behind a slow bus.
func slowTimer(name string) bool {
	return strings.HasPrefix(name, "hpet") || name == "pit" || name == "rtc"
}

func judgeDevices(d *DevicesData, logSource string) []Finding {
	var found []Finding
	for _, t := range d.Timers {
		if !slowTimer(t.Name) {
			continue
		}
		found = append(found, Finding{
			ID: "devices.slow-timer", Severity: Warning, Confidence: Certain,
			Title:    fmt.Sprintf("timers of CPUs %s are interrupts of %s, not of a timer in the CPU", t.CPUs, t.Name),
			Detail:   "To arm it takes microseconds, and one device serves all CPUs.",
			Evidence: []Evidence{{"timer device", t.Name, "/sys/devices/system/clockevents"}},
			Remedy:   []string{"look for nolapic, noapic, nolapic_timer on the kernel's command line and remove them: cat /proc/cmdline", "dmesg | grep -i apic   # shows why the kernel does not use the CPU's own timer"},
		})
	}
	if d.DeadlineErratum != "" {
		found = append(found, Finding{
			ID: "devices.deadline-timer-off", Severity: Notice, Confidence: Certain,
			Title:    "an erratum of the CPU keeps the kernel from its finest timer: the microcode is too old",
			Evidence: []Evidence{{"kernel's log", d.DeadlineErratum, logSource}},
			Remedy:   []string{"install the distribution's microcode package (intel-microcode, microcode_ctl) or update the firmware, and start the machine anew"},
		})
	}
	return found
}
