package doctor

import (
	"fmt"
	"strings"

	"github.com/detent-go/detent/probe"
)

// Verdict sums a report up in a line.
func Verdict(r *probe.Report) string {
	findings := r.Findings()
	counts := map[probe.Severity]int{}
	for _, f := range findings {
		counts[f.Severity]++
	}
	if counts[probe.Critical]+counts[probe.Warning] == 0 {
		healthy := "This machine keeps time as it should"
		switch all := len(probe.Checks()); {
		case len(r.Results) < all:
			healthy = fmt.Sprintf("Nothing is wrong by the %d of %d checks that were made", len(r.Results), all)
		case len(Unseen(r)) > 0:
			healthy += ", as far as can be seen"
		}
		if n := counts[probe.Notice]; n > 0 {
			return fmt.Sprintf("%s; %s.", healthy, plural(n, "thing costs precision or time in some programs", "things cost precision or time in some programs"))
		}
		return healthy + "."
	}
	var parts []string
	for _, s := range []struct {
		severity  probe.Severity
		one, many string
	}{
		{probe.Critical, "critical fault", "critical faults"},
		{probe.Warning, "warning", "warnings"},
		{probe.Notice, "notice", "notices"},
	} {
		if n := counts[s.severity]; n > 0 {
			parts = append(parts, plural(n, s.one, s.many))
		}
	}
	return fmt.Sprintf("%s. First of all: %s", strings.Join(parts, ", "), firstOfAll(findings))
}

// sentence ends with a point.
func sentence(s string) string { return strings.TrimSuffix(s, ".") + "." }

// Unseen returns the results that could not see everything, but for those that
// this machine conclusively has nothing for.
func Unseen(r *probe.Report) []probe.Result {
	var list []probe.Result
	for _, result := range r.Results {
		if s := result.Status(); s == probe.Partial || s == probe.Unknown {
			list = append(list, result)
		}
	}
	return list
}

// Machine describes in a line what the report is about.
func Machine(m probe.Machine) string {
	var parts []string
	add := func(format string, what any) {
		if s := fmt.Sprintf(format, what); s != "" && s != "0" {
			parts = append(parts, s)
		}
	}
	add("%s", m.CPU)
	if m.CPUs > 0 {
		parts = append(parts, plural(m.CPUs, "CPU", "CPUs"))
	}
	if m.Hypervisor != "" {
		parts = append(parts, "in a virtual machine ("+m.Hypervisor+")")
	}
	if m.Kernel != "" {
		parts = append(parts, "Linux "+strings.TrimPrefix(m.Kernel, "Linux "))
	}
	parts = append(parts, strings.Trim(m.OS+"/"+m.Arch, "/"))
	add("%s", m.Go)
	if m.GOMAXPROCS > 0 {
		parts = append(parts, fmt.Sprintf("GOMAXPROCS %d", m.GOMAXPROCS))
	}
	return strings.Join(parts, ", ")
}

func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
