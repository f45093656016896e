package probe

import (
	"cmp"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/detent-go/detent/internal/hostfs"
)

// ReportVersion is that of the JSON form of a Report. It grows when a field
// changes its meaning or goes away, not when one is added.
const ReportVersion = 1

// A Report is what a run found out.
type Report struct {
	Version int           `json:"version"`
	Started time.Time     `json:"started"`
	Took    time.Duration `json:"took_ns"`
	Machine Machine       `json:"machine"`
	Results []Result      `json:"results"`
}

// A Machine is what the findings are about. It does not name the host.
type Machine struct {
	OS     string `json:"os"`
	Arch   string `json:"arch"`
	Kernel string `json:"kernel,omitempty"`
	CPU    string `json:"cpu,omitempty"` // the model
	CPUs   int    `json:"cpus"`          // that this process can run on; all of the machine's in a copied tree
	// Hypervisor is "" on bare metal, and where it cannot be told.
	Hypervisor string `json:"hypervisor,omitempty"`
	// Go and GOMAXPROCS are those of this process; empty for a copied tree.
	Go         string `json:"go,omitempty"`
	GOMAXPROCS int    `json:"gomaxprocs,omitempty"`
}

// Findings returns those of all results: worst first, of equal ones the surer
// first, then by ID, then in the order of the checks.
func (r *Report) Findings() []Finding {
	var all []Finding
	for _, result := range r.Results {
		all = append(all, result.Findings...)
	}
	slices.SortStableFunc(all, func(a, b Finding) int {
		return cmp.Or(
			-cmp.Compare(a.Severity, b.Severity),
			-cmp.Compare(a.Confidence, b.Confidence),
			strings.Compare(a.ID, b.ID),
		)
	})
	return all
}

// Worst returns the highest severity among the findings; Info if there is none.
func (r *Report) Worst() Severity {
	worst := Info
	for _, result := range r.Results {
		for _, f := range result.Findings {
			worst = max(worst, f.Severity)
		}
	}
	return worst
}

// readMachine leaves empty what cannot be read.
func readMachine(e *Env) Machine {
	m := Machine{OS: "linux", Arch: e.Arch}
	if e.Own {
		m.OS, m.CPUs = runtime.GOOS, runtime.NumCPU()
		m.Go, m.GOMAXPROCS = runtime.Version(), runtime.GOMAXPROCS(0)
	}
	if e.linux() != nil {
		return m
	}
	m.Kernel, _ = hostfs.Kernel(e.Root)
	if info, err := hostfs.ReadCPUInfo(e.Root); err == nil {
		m.CPU = info.Model
	}
	m.Hypervisor = e.platformData().machine()
	if online, err := hostfs.OnlineCPUs(e.Root); err == nil && !e.Own {
		m.CPUs = len(online)
	}
	return m
}
