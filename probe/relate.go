package probe

import "slices"

// causesOf names the findings that explain another, where different checks make
// them: the first that the report has counts.
func causesOf(id string) []string {
	switch id {
	case "clocks.vdso-falls-back":
		return []string{"clocksource.no-vdso", "clocksource.vdso-disabled", "clocksource.vdso-depends"}
	case "clocks.process-without-vdso":
		return []string{"clocksource.vdso-disabled"}
	case "clocks.low-resolution-timers":
		return []string{"tick.low-resolution"}
	case "steps.back", "steps.counter":
		return []string{"counter.offset", "counter.drift"}
	case "sleep.early":
		return []string{"steps.back", "counter.offset"}
	case "sleep.floor":
		return []string{"tick.low-resolution", "clocks.low-resolution-timers", "idle.exit-latency"}
	case "log.clocks-disagree":
		return []string{"clocksource.tsc-unstable"}
	case "log.heat":
		return []string{"frequency.throttled-by-heat"}
	case "cpu.quota-throttled":
		return []string{"runtime.gomaxprocs-above-quota"}
	case "pauses.stolen":
		return []string{"cpu.steal"}
	case "pauses.throttled":
		return []string{"cpu.quota"}
	case "pauses.busy":
		return []string{"cpu.pressure"}
	}
	return nil
}

// reconcile takes back what was concluded of the clocksource if the clocks, measured,
// do not bear it out.
func (r *Report) reconcile() {
	for _, result := range r.Results {
		if d, ok := result.Data.(*ClocksData); !ok || d.Runtime != ServedYes {
			continue
		}
		for i := range r.Results {
			other := &r.Results[i]
			other.Findings = slices.DeleteFunc(other.Findings, func(f Finding) bool {
				return f.ID == "clocksource.vdso-depends" || f.ID == "clocksource.no-vdso" && f.Confidence < Certain
			})
			if d, ok := other.Data.(*ClocksourceData); ok && (d.VDSO == ServedMaybe || d.VDSO == ServedUnknown) {
				d.VDSO = ServedYes
			}
		}
	}
}

// relate names the causes of findings.
func (r *Report) relate() {
	has := map[string]bool{}
	for _, result := range r.Results {
		for _, f := range result.Findings {
			has[f.ID] = true
		}
	}
	for _, result := range r.Results {
		for i := range result.Findings {
			f := &result.Findings[i]
			for _, cause := range causesOf(f.ID) {
				if f.Because == "" && has[cause] {
					f.Because = cause
				}
			}
		}
	}
}
