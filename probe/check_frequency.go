package probe

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"github.com/detent-go/detent/internal/hostfs"
)

// The check of how fast CPUs run. It has FrequencyData.
var frequencyCheck = Check{
	Name:  "frequency",
	About: "who chooses the CPUs' frequency, within which limits, and whether heat has lowered it",
	Run: func(_ context.Context, e *Env) Result {
		if err := e.linux(); err != nil {
			return Result{Err: err}
		}
		policies, err := hostfs.ReadFrequencyPolicies(e.Root)
		if err != nil {
			return Result{Err: unseen("frequency policies", err, "")}
		}
		if len(policies) == 0 {
			return Result{Err: fmt.Errorf("the kernel does not choose the CPUs' frequency: %w", errors.ErrUnsupported)}
		}
		d := &FrequencyData{Policies: groupPolicies(policies)}
		if status, err := hostfs.String(e.Root, "sys/devices/system/cpu/intel_pstate/status"); err == nil {
			d.PState = "intel_pstate " + status
		} else if status, err := hostfs.String(e.Root, "sys/devices/system/cpu/amd_pstate/status"); err == nil {
			d.PState = "amd_pstate " + status
		}
		d.Throttles, d.ThrottledFor, err = readThrottles(e)
		d.Uptime, _ = hostfs.Uptime(e.Root)
		return Result{Err: err, Data: d, Findings: judgeFrequency(d)}
	},
}

// FrequencyData is the data of the check "frequency".
type FrequencyData struct {
	Policies []FrequencyPolicy `json:"policies"`         // CPUs with the same settings together
	PState   string            `json:"pstate,omitempty"` // the driver's mode, "intel_pstate active"
	// Throttles counts how often heat lowered a package's frequency since the
	// machine started, the most of any package; -1: not counted.
	Throttles int64 `json:"throttles"`
	// ThrottledFor is for how long, of the Uptime; 0 where the kernel does not count it.
	ThrottledFor time.Duration `json:"throttled_ns"`
	Uptime       time.Duration `json:"uptime_ns"`
}

// A FrequencyPolicy is how the frequency of CPUs is chosen. Frequencies are in
// kHz; 0: not stated.
type FrequencyPolicy struct {
	CPUs       string `json:"cpus"` // 0-3,8
	Driver     string `json:"driver"`
	Governor   string `json:"governor"`
	Preference string `json:"preference,omitempty"`
	Min        int64  `json:"min_khz"` // that the policy allows
	Max        int64  `json:"max_khz"`
	Lowest     int64  `json:"lowest_khz"` // that the hardware can
	Highest    int64  `json:"highest_khz"`
}

func groupPolicies(policies []hostfs.FrequencyPolicy) []FrequencyPolicy {
	var groups []FrequencyPolicy
	var cpus []hostfs.CPUSet
next:
	for _, p := range policies {
		g := FrequencyPolicy{Driver: p.Driver, Governor: p.Governor, Preference: p.Preference, Min: p.Min, Max: p.Max, Lowest: p.Lowest, Highest: p.Highest}
		for i := range groups {
			if groups[i] == g {
				cpus[i] = append(cpus[i], p.CPUs...)
				continue next
			}
		}
		groups, cpus = append(groups, g), append(cpus, append(hostfs.CPUSet(nil), p.CPUs...))
	}
	for i := range groups {
		groups[i].CPUs = cpus[i].String()
	}
	return groups
}

func readThrottles(e *Env) (most int64, longest time.Duration, err error) {
	online, err := hostfs.OnlineCPUs(e.Root)
	if err != nil {
		return -1, 0, unseen("the CPUs", err, "")
	}
	most = -1
	for _, cpu := range online {
		_, pack, err := hostfs.Throttles(e.Root, cpu)
		if errors.Is(err, fs.ErrNotExist) {
			return -1, 0, nil
		}
		if err != nil {
			return -1, 0, unseen("thermal throttling", err, "")
		}
		most = max(most, pack)
		if d, err := hostfs.ThrottledFor(e.Root, cpu); err == nil {
			longest = max(longest, d)
		}
	}
	return most, longest, nil
}

func judgeFrequency(d *FrequencyData) []Finding {
	var found []Finding
	for _, p := range d.Policies {
		source := "/sys/devices/system/cpu/cpufreq"
		evidence := []Evidence{
			{"CPUs", p.CPUs, source},
			{"driver, governor", strings.TrimSpace(p.Driver + " " + p.Governor + " " + p.Preference), source},
			{"allowed", fmt.Sprintf("%s to %s", mhz(p.Min), mhz(p.Max)), source},
			{"possible", fmt.Sprintf("%s to %s", mhz(p.Lowest), mhz(p.Highest)), source},
		}
		if lowestOnly(p) {
			found = append(found, Finding{
				ID: "frequency.pinned-low", Severity: Warning, Confidence: Certain,
				Title:    fmt.Sprintf("CPUs %s stay at their lowest frequency, %s of %s: governor powersave of %s", p.CPUs, mhz(p.Lowest), mhz(p.Highest), p.Driver),
				Detail:   "Everything that happens between a timer's interrupt and the program takes as much longer.",
				Evidence: evidence,
				Remedy:   []string{"cpupower frequency-set -g schedutil   # or performance, where lateness matters more than power; in effect at once, until the next start"},
			})
		} else if p.Max > 0 && p.Highest > 0 && 10*p.Max < 8*p.Highest {
			found = append(found, Finding{
				ID: "frequency.limited", Severity: Notice, Confidence: Certain,
				Title:    fmt.Sprintf("CPUs %s may run at %s at most, of %s", p.CPUs, mhz(p.Max), mhz(p.Highest)),
				Evidence: evidence,
				Remedy:   []string{fmt.Sprintf("cpupower frequency-set -u %dkHz   # in effect at once, until the next start; look for what set the limit: tuned, TLP, power-profiles-daemon, the firmware's power cap", p.Highest)},
			})
		}
		if slowToRise(p) {
			found = append(found, Finding{
				ID: "frequency.slow-to-rise", Severity: Info, Confidence: Likely,
				Title:    fmt.Sprintf("CPUs %s change frequency with the load (governor %s): after a rest they begin at %s", p.CPUs, p.Governor, mhz(p.Min)),
				Detail:   "What wakes rarely, as a timer does, runs slowly for its first milliseconds.",
				Evidence: evidence,
				Remedy:   []string{"cpupower frequency-set -g performance   # where lateness matters more than power; in effect at once, until the next start"},
			})
		}
	}
	if d.Throttles > 0 {
		const source = "/sys/devices/system/cpu/cpu*/thermal_throttle"
		f := Finding{
			ID: "frequency.throttled-by-heat", Severity: Info, Confidence: Certain,
			Title:    fmt.Sprintf("heat has lowered the CPUs' frequency %s since the machine's start", plural(d.Throttles, "time")),
			Evidence: []Evidence{{"package_throttle_count", fmt.Sprint(d.Throttles), source}},
			Remedy:   []string{"look at the machine's cooling and at what the firmware allows: turbostat --show PkgTmp,PkgWatt,Bzy_MHz"},
		}
		if d.ThrottledFor > 0 {
			f.Title += ", for " + short(d.ThrottledFor)
			f.Evidence = append(f.Evidence, Evidence{"package_throttle_total_time_ms", fmt.Sprint(d.ThrottledFor.Milliseconds()), source})
		}
		if d.Uptime > 0 && 100*d.ThrottledFor >= d.Uptime {
			f.Severity = Notice
		}
		found = append(found, f)
	}
	return found
}

// lowestOnly: the governor powersave means the lowest frequency, except with the
// drivers that choose by themselves below it.
func lowestOnly(p FrequencyPolicy) bool {
	if p.Governor != "powersave" || p.Highest <= p.Lowest {
		return false
	}
	return p.Driver != "" && p.Driver != "intel_pstate" && p.Driver != "amd-pstate-epp"
}

func slowToRise(p FrequencyPolicy) bool {
	return (p.Governor == "ondemand" || p.Governor == "conservative") && p.Min < p.Max
}

func mhz(khz int64) string {
	if khz == 0 {
		return "unknown"
	}
	return fmt.Sprintf("%d MHz", (khz+500)/1000)
}
