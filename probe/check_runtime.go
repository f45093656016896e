package probe

import (
	"context"
	"fmt"
	"maps"
	"math"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/detent-go/detent/internal/hostfs"
)

// The check of this process's Go runtime. It has RuntimeData.
var runtimeCheck = Check{
	Name:  "runtime",
	About: "this process's Go runtime: GOMAXPROCS against the CPU quota, and settings that change timers",
	Run: func(_ context.Context, e *Env) Result {
		if err := e.own(); err != nil {
			return Result{Err: err}
		}
		d := &RuntimeData{
			Version: runtime.Version(), GOMAXPROCS: runtime.GOMAXPROCS(0), NumCPU: runtime.NumCPU(),
			Environment: os.Getenv("GOMAXPROCS"), Settings: readSettings(),
		}
		if info, ok := debug.ReadBuildInfo(); ok {
			for _, s := range info.Settings {
				d.Race = d.Race || s.Key == "-race" && s.Value == "true"
			}
		}
		if e.linux() == nil {
			if groups, err := hostfs.ReadCgroups(e.Root); err == nil {
				if g := groups.Tightest(); g != nil {
					d.Quota, d.quotaFile = g.CPUs(), g.Path
				}
			}
		}
		return Result{Data: d, Findings: judgeRuntime(d)}
	},
}

// RuntimeData is the data of the check "runtime".
type RuntimeData struct {
	Version     string  `json:"version"`
	GOMAXPROCS  int     `json:"gomaxprocs"`
	NumCPU      int     `json:"num_cpu"`                          // that this process may run on
	Quota       float64 `json:"quota_cpus,omitempty"`             // the tightest of its cgroups; 0: none
	Environment string  `json:"gomaxprocs_environment,omitempty"` // the variable GOMAXPROCS
	// Settings are those of GODEBUG that change how timers behave, from the program's
	// defaults and the environment.
	Settings map[string]string `json:"godebug"`
	Race     bool              `json:"race"` // built with the race detector

	quotaFile string
}

// timerSettings are those of GODEBUG that concern timers and the scheduler.
var timerSettings = []string{"asynctimerchan", "asyncpreemptoff", "containermaxprocs", "updatemaxprocs"}

// readSettings gives the environment precedence, as the runtime does.
func readSettings() map[string]string {
	var defaults string
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "DefaultGODEBUG" {
				defaults = s.Value
			}
		}
	}
	return parseSettings(defaults, os.Getenv("GODEBUG"))
}

func parseSettings(lists ...string) map[string]string {
	settings := map[string]string{}
	for _, list := range lists {
		for s := range strings.SplitSeq(list, ",") {
			if name, value, ok := strings.Cut(strings.TrimSpace(s), "="); ok && slices.Contains(timerSettings, name) {
				settings[name] = value
			}
		}
	}
	return settings
}

// follows is the GOMAXPROCS that the runtime takes for a quota: whole CPUs, and
// two at least, or the collector would have to share the only one.
func (d *RuntimeData) follows() int {
	return min(d.NumCPU, max(2, int(math.Ceil(d.Quota))))
}

func judgeRuntime(d *RuntimeData) []Finding {
	var found []Finding
	evidence := []Evidence{{"GOMAXPROCS", fmt.Sprint(d.GOMAXPROCS), "runtime"}, {"CPUs", fmt.Sprint(d.NumCPU), "runtime"}}
	if d.Quota > 0 {
		evidence = append(evidence, Evidence{"quota", ofCPUs(d.Quota), d.quotaFile})
	}
	for _, name := range slices.Sorted(maps.Keys(d.Settings)) {
		evidence = append(evidence, Evidence{"GODEBUG", name + "=" + d.Settings[name], "environment or the program's defaults"})
	}
	if d.Environment != "" {
		evidence = append(evidence, Evidence{"environment", "GOMAXPROCS=" + d.Environment, "environment"})
	}
	switch {
	case d.Quota > 0 && d.GOMAXPROCS > d.follows():
		f := Finding{
			ID: "runtime.gomaxprocs-above-quota", Severity: Warning, Confidence: Certain,
			Title:    fmt.Sprintf("GOMAXPROCS is %d, but the cgroup allows %s: the quota stops the program whenever it is busy", d.GOMAXPROCS, ofCPUs(d.Quota)),
			Detail:   "Go sets GOMAXPROCS by the quota itself unless something keeps it from doing so.",
			Evidence: evidence,
		}
		switch {
		case d.Environment != "":
			f.Remedy = []string{fmt.Sprintf("remove GOMAXPROCS=%s from the environment: Go then takes %d", d.Environment, d.follows())}
		case d.Settings["containermaxprocs"] == "0":
			f.Remedy = []string{"set go 1.25 or later in the go.mod of the program, which makes containermaxprocs=1 its default, or remove containermaxprocs=0 from GODEBUG"}
		default:
			f.Remedy = []string{"look for a call of runtime.GOMAXPROCS in the program: it ends Go's own adjustment; runtime.SetDefaultGOMAXPROCS() begins it again"}
		}
		found = append(found, f)
	case d.GOMAXPROCS == 1 && d.NumCPU > 1:
		found = append(found, Finding{
			ID: "runtime.one-p", Severity: Info, Confidence: Certain,
			Title:    fmt.Sprintf("GOMAXPROCS is 1 on %d CPUs: a goroutine that computes delays every timer by up to 10 ms", d.NumCPU),
			Evidence: evidence,
			Remedy:   []string{"remove GOMAXPROCS=1 from the environment, or the call that sets it; or use a lane of package timer, whose thread does not need a P to wait"},
		})
	}
	if d.Settings["asyncpreemptoff"] == "1" {
		found = append(found, Finding{
			ID: "runtime.no-async-preemption", Severity: Warning, Confidence: Certain,
			Title:    "GODEBUG=asyncpreemptoff=1: a loop without function calls delays timers until it ends",
			Evidence: evidence,
			Remedy:   []string{"remove asyncpreemptoff=1 from GODEBUG, unless a debugger needs it at the moment"},
		})
	}
	if v := d.Settings["asynctimerchan"]; v == "1" || v == "2" {
		found = append(found, Finding{
			ID: "runtime.async-timer-channels", Severity: Notice, Confidence: Certain,
			Title:    fmt.Sprintf("GODEBUG=asynctimerchan=%s: channels of package time's timers may hold a stale value after Stop and Reset", v),
			Detail:   "As before Go 1.23; unreferenced timers are not collected either. Package timer's are not concerned.",
			Evidence: evidence,
			Remedy:   []string{"set go 1.23 or later in the go.mod of the program, and remove asynctimerchan from GODEBUG and from //go:debug lines"},
		})
	}
	if d.Race {
		found = append(found, Finding{
			ID: "runtime.race-detector", Severity: Info, Confidence: Certain,
			Title:    "this program is built with the race detector: what it measures of itself is several times too slow",
			Evidence: []Evidence{{"-race", "true", "build information"}},
			Remedy:   []string{"build it without -race to measure"},
		})
	}
	return found
}
