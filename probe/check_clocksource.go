package probe

import (
	"context"
	"fmt"
	"strings"

	"github.com/detent-go/detent/internal/hostfs"
)

var clocksourceCheck = Check{
	Name:  "clocksource",
	About: "what the kernel takes its time from, and whether programs can read it without a system call",
	Run: func(_ context.Context, e *Env) Result {
		if err := e.linux(); err != nil {
			return Result{Err: err}
		}
		source, err := hostfs.ReadClocksource(e.Root)
		if err != nil {
			return Result{Err: unseen("the kernel's clocksource", err, "")}
		}
		data := &ClocksourceData{Current: source.Current, Available: source.Available, VDSO: vdsoOf(source.Current)}
		return Result{Data: data, Findings: judgeClocksource(data)}
	},
}

// ClocksourceData is the data of the check "clocksource".
type ClocksourceData struct {
	Current   string   `json:"current"`
	Available []string `json:"available"`
	VDSO      Served   `json:"vdso"`
}

// Served says whether the vDSO reads a clocksource by itself, by the source of
// the kernel; the check of the clocks' costs measures it.
type Served string

const (
	ServedYes     Served = "yes"
	ServedNo      Served = "no"
	ServedMaybe   Served = "depends" // on the hypervisor
	ServedUnknown Served = "unknown"
)

// vdsoOf knows the names that kernels give their clocksources.
func vdsoOf(name string) Served {
	switch name {
	case "tsc", "tsc-early", "kvm-clock", "hyperv_clocksource_tsc_page",
		"arch_sys_counter", "riscv_clocksource", "timebase", "tod":
		return ServedYes
	case "xen":
		return ServedMaybe
	case "hpet", "acpi_pm", "pit", "jiffies", "refined-jiffies", "hyperv_clocksource_msr":
		return ServedNo
	}
	return ServedUnknown
}

func judgeClocksource(d *ClocksourceData) []Finding {
	if d.VDSO != ServedNo {
		return nil
	}
	return []Finding{{
		ID: "clocksource.no-vdso", Severity: Critical, Confidence: Certain,
		Title:  fmt.Sprintf("the kernel keeps time by %s: every reading of a clock is a system call", d.Current),
		Detail: "The vDSO cannot read this device, so that time.Now costs ten to a hundred times what it should.",
		Evidence: []Evidence{
			{"current_clocksource", d.Current, "/sys/devices/system/clocksource/clocksource0/current_clocksource"},
			{"available_clocksource", strings.Join(d.Available, " "), "/sys/devices/system/clocksource/clocksource0/available_clocksource"},
		},
	}}
}
