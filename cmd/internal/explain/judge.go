package explain

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/detent-go/detent/probe"
)

// Judge returns what is the matter, the root cause first: worst first, of equal ones
// the surer first.
func Judge(f Facts) []probe.Finding {
	var found []probe.Finding
	found = append(found, judgeClocks(&f)...)
	found = append(found, judgeThrottling(&f)...)
	found = append(found, judgeScheduler(&f)...)
	found = append(found, judgeContention(&f)...)
	found = append(found, judgeInterrupts(&f)...)
	found = append(found, judgeSlack(&f)...)
	found = append(found, judgeFloor(&f)...)
	// What was concluded of the machine is there where it is the cause of one of
	// these.
	for _, id := range causes(found) {
		if m := f.finding(id); m != nil {
			found = append(found, *m)
		}
	}
	slices.SortStableFunc(found, func(a, b probe.Finding) int {
		return cmp.Or(-cmp.Compare(a.Severity, b.Severity), -cmp.Compare(a.Confidence, b.Confidence))
	})
	return found
}

func causes(found []probe.Finding) []string {
	var ids []string
	for _, f := range found {
		if f.Because != "" && !slices.Contains(ids, f.Because) {
			ids = append(ids, f.Because)
		}
	}
	return ids
}

// Worst is the highest severity; Info if there is no finding.
func Worst(found []probe.Finding) probe.Severity {
	worst := probe.Info
	for _, f := range found {
		worst = max(worst, f.Severity)
	}
	return worst
}

// percent writes a share of one CPU.
func percent(share float64) string {
	switch {
	case share >= 0.095:
		return fmt.Sprintf("%.0f%%", 100*share)
	case share >= 0.0095:
		return fmt.Sprintf("%.1f%%", 100*share)
	}
	return fmt.Sprintf("%.2f%%", 100*share)
}
