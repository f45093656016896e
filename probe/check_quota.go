package probe

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/detent-go/detent/internal/hostfs"
)

// The check of cgroup limits. It has QuotaData.
var quotaCheck = Check{
	Name:  "quota",
	About: "the CPU time that cgroups allow this process, and how often they made it wait",
	Run: func(_ context.Context, e *Env) Result {
		if err := e.linux(); err != nil {
			return Result{Err: err}
		}
		groups, err := hostfs.ReadCgroups(e.Root)
		if errors.Is(err, fs.ErrNotExist) && e.mounted() == nil {
			return Result{Err: fmt.Errorf("no cgroup hands out CPU time here: %w", errors.ErrUnsupported)}
		}
		if err != nil {
			return Result{Err: unseen("cgroups", err, "")}
		}
		online, err := hostfs.OnlineCPUs(e.Root)
		if err != nil {
			err = unseen("the CPUs", err, "")
		}
		d := &QuotaData{Version: groups.Version, CPUs: len(online)}
		for _, g := range groups.Groups {
			d.Groups = append(d.Groups, Cgroup{
				Path: g.Path, CPUs: g.CPUs(), Quota: g.Quota, Period: g.Period, Burst: g.Burst,
				Weight: g.Weight, Idle: g.Idle, Periods: g.Periods, Throttled: g.Throttled, Waited: g.Waited,
			})
		}
		if g := groups.Tightest(); g != nil {
			d.Limit = g.CPUs()
		}
		if n, nsErr := hostfs.Namespace(e.Root, "cgroup"); nsErr == nil {
			d.Namespaced = n != hostfs.InitialCgroupNamespace
		}
		return Result{Err: err, Data: d, Findings: judgeQuota(d)}
	},
}

// QuotaData is the data of the check "quota".
type QuotaData struct {
	Version int `json:"version"`
	// Groups are those that this process is in, from its own upwards.
	Groups []Cgroup `json:"groups"`
	Limit  float64  `json:"limit_cpus"` // the tightest; 0: none
	CPUs   int      `json:"cpus"`       // online
	// Namespaced: there are groups above that cannot be seen from here.
	Namespaced bool `json:"namespaced"`
}

// A Cgroup is what one cgroup allows.
type Cgroup struct {
	Path      string        `json:"path"`
	CPUs      float64       `json:"cpus"` // 0: no limit
	Quota     time.Duration `json:"quota_ns"`
	Period    time.Duration `json:"period_ns"`
	Burst     time.Duration `json:"burst_ns"`
	Weight    int64         `json:"weight"` // 0: unknown; the default is 100 in version 2, 1024 in version 1
	Idle      bool          `json:"idle"`
	Periods   int64         `json:"periods"` // in which it had something to run, since it was made
	Throttled int64         `json:"throttled_periods"`
	Waited    time.Duration `json:"throttled_ns"` // summed over CPUs
}

// pause is how long a period's rest is for a group whose threads have used up
// the quota on all CPUs at once.
func (g Cgroup) pause(cpus int) time.Duration {
	return g.Period - time.Duration(float64(g.Quota)/float64(max(1, cpus)))
}

func (g Cgroup) limitFile(version int) string {
	if version == 1 {
		return g.Path + "/cpu.cfs_quota_us"
	}
	return g.Path + "/cpu.max"
}

func judgeQuota(d *QuotaData) []Finding {
	var found []Finding
	for _, g := range d.Groups {
		if g.CPUs > 0 && g.CPUs == d.Limit && g.CPUs < float64(d.CPUs) {
			found = append(found, Finding{
				ID: "cpu.quota", Severity: Info, Confidence: Certain,
				Title:    fmt.Sprintf("a cgroup allows %s of %d: %s in each %s, then all threads stand still", ofCPUs(g.CPUs), d.CPUs, short(g.Quota), short(g.Period)),
				Detail:   fmt.Sprintf("Threads that run on all CPUs at once use it up in %s and are kept from running for up to %s, whatever timers are due.", short(g.Period-g.pause(d.CPUs)), short(g.pause(d.CPUs))),
				Evidence: []Evidence{{"quota", fmt.Sprintf("%v in %v", g.Quota, g.Period), g.limitFile(d.Version)}},
				Remedy: []string{
					"let the program keep no more threads busy than the limit: GOMAXPROCS, which Go sets by it unless told otherwise",
					"or give the group more, or shorter periods with shorter pauses: " + d.set(g, g.Quota/10, g.Period/10),
				},
			})
			break
		}
	}
	for _, g := range d.Groups {
		if g.Throttled == 0 || g.Periods == 0 {
			continue
		}
		f := Finding{
			ID: "cpu.quota-throttled", Severity: Info, Confidence: Certain,
			Title: fmt.Sprintf("the CPU quota has stopped this process in %s of the periods that it ran in (%d of %d)", percent(float64(g.Throttled), float64(g.Periods)), g.Throttled, g.Periods),
			Detail: fmt.Sprintf("Each time, its CPUs were kept from running for %s on average (summed over CPUs): timers that became due meanwhile were late by up to a period.",
				short(g.Waited/time.Duration(g.Throttled))),
			Evidence: []Evidence{
				{"nr_periods, nr_throttled", fmt.Sprintf("%d, %d", g.Periods, g.Throttled), g.Path + "/cpu.stat"},
				{"throttled time", g.Waited.String(), g.Path + "/cpu.stat"},
				{"limit", ofCPUs(g.CPUs), g.limitFile(d.Version)},
			},
			Remedy: []string{
				"raise the limit, or remove it and keep the request (Kubernetes: resources.limits.cpu): " + d.set(g, 2*g.Quota, g.Period),
				"or keep fewer threads busy: GOMAXPROCS no higher than the limit, and look for others in the same group",
			},
		}
		switch ratio := float64(g.Throttled) / float64(g.Periods); {
		case ratio >= 0.05:
			f.Severity = Warning
		case ratio >= 0.005:
			f.Severity = Notice
		}
		if d.Version == 2 && g.Burst == 0 && g.Quota > 0 {
			f.Remedy = append(f.Remedy, fmt.Sprintf("or let it save up what quiet periods leave over: echo %d > %s/cpu.max.burst", g.Quota.Microseconds(), g.Path))
		}
		found = append(found, f)
	}
	for _, g := range d.Groups {
		def := int64(100)
		file := g.Path + "/cpu.weight"
		if d.Version == 1 {
			def, file = 1024, g.Path+"/cpu.shares"
		}
		switch {
		case g.Idle:
			found = append(found, Finding{
				ID: "cpu.idle-group", Severity: Warning, Confidence: Certain,
				Title:    "this process's cgroup runs only when nobody else wants to (cpu.idle)",
				Evidence: []Evidence{{"cpu.idle", "1", g.Path + "/cpu.idle"}},
				Remedy:   []string{fmt.Sprintf("echo 0 > %s/cpu.idle", g.Path)},
			})
		case g.Weight > 0 && g.Weight*10 <= def:
			found = append(found, Finding{
				ID: "cpu.low-weight", Severity: Notice, Confidence: Certain,
				Title:    fmt.Sprintf("on a busy machine this process gets %s of what a cgroup with default weight gets", percent(float64(g.Weight), float64(def))),
				Detail:   "Kubernetes gives this weight to pods that request little or no CPU.",
				Evidence: []Evidence{{"weight", fmt.Sprintf("%d, default %d", g.Weight, def), file}},
				Remedy:   []string{fmt.Sprintf("Kubernetes: set resources.requests.cpu; otherwise echo %d > %s", def, file)},
			})
		}
	}
	return found
}

// set is the command that gives a group a limit.
func (d *QuotaData) set(g Cgroup, quota, period time.Duration) string {
	if quota <= 0 || period < time.Millisecond {
		quota, period = g.Quota, g.Period
	}
	if d.Version == 1 {
		return fmt.Sprintf("echo %d > %s/cpu.cfs_period_us; echo %d > %s/cpu.cfs_quota_us", period.Microseconds(), g.Path, quota.Microseconds(), g.Path)
	}
	return fmt.Sprintf("echo '%d %d' > %s/cpu.max", quota.Microseconds(), period.Microseconds(), g.Path)
}
