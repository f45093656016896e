package probe

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/detent-go/detent/clock"
	"github.com/detent-go/detent/internal/hostfs"
)

// The check of the kernel's tick. It has TickData.
var tickCheck = Check{
	Name:  "tick",
	About: "how often the kernel's tick comes, whether it stops, and whether timers are finer than it",
	Run: func(_ context.Context, e *Env) Result {
		if err := e.linux(); err != nil {
			return Result{Err: err}
		}
		d := &TickData{HighResolution: Unclear}
		parameters, err := hostfs.ReadParameters(e.Root)
		if err != nil {
			err = unseen("the kernel's parameters", err, "")
		}
		d.Parameters = parameters.Named("nohz", "nohz_full", "isolcpus", "highres", "rcu_nocbs", "skew_tick", "hz")
		config, configErr := hostfs.ReadConfig(e.Root)
		if configErr == nil {
			d.ConfigSource = config.Source
			d.fromConfig(config)
		}
		d.fromParameters(parameters)
		if list, listErr := hostfs.ReadTimerList(e.Root); listErr == nil {
			d.HighResolution, d.HighResolutionSource = known(list.HighRes), "/proc/timer_list"
			if !list.Tickless {
				d.Mode, d.ModeSource = TickPeriodic, "/proc/timer_list"
			} else if d.Mode == "" || d.Mode == TickPeriodic {
				d.Mode, d.ModeSource = TickIdle, "/proc/timer_list"
			}
		}
		if e.Own {
			// The kernel's own words, for everybody: a coarse clock steps at every
			// tick, and a fine one by 1 ns if timers are fine.
			if step := clock.MonoCoarse.Resolution(); step > 0 {
				d.HZ, d.HZSource = int((time.Second+step/2)/step), "clock_getres(CLOCK_MONOTONIC_COARSE)"
			}
			if step := clock.Mono.Resolution(); step > 0 {
				d.HighResolution, d.HighResolutionSource = known(step == 1), "clock_getres(CLOCK_MONOTONIC)"
			}
		}
		full, fullErr := hostfs.CPUs(e.Root, "sys/devices/system/cpu/nohz_full")
		isolated, isolatedErr := hostfs.CPUs(e.Root, "sys/devices/system/cpu/isolated")
		d.Full, d.Isolated = full.String(), isolated.String()
		if len(full) > 0 {
			d.Mode, d.ModeSource = TickFull, "/sys/devices/system/cpu/nohz_full"
		}
		err = errors.Join(err, missing(fullErr), missing(isolatedErr))
		if d.HZ == 0 {
			err = errors.Join(err, unseen("the kernel's HZ", configErr, "the distribution's package of kernel headers or debug files may have it"))
		}
		return Result{Err: err, Data: d, Findings: judgeTick(d)}
	},
}

// TickData is the data of the check "tick". Each Source says where the field
// before it is from.
type TickData struct {
	HZ                   int      `json:"hz"` // ticks a second; 0: unknown
	HZSource             string   `json:"hz_source,omitempty"`
	Mode                 TickMode `json:"mode"`
	ModeSource           string   `json:"mode_source,omitempty"`
	HighResolution       Known    `json:"high_resolution"` // timers are finer than the tick
	HighResolutionSource string   `json:"high_resolution_source,omitempty"`
	Full                 string   `json:"nohz_full"` // CPUs whose tick stops while one thread runs there
	Isolated             string   `json:"isolated"`  // CPUs that the scheduler places nobody on
	Parameters           []string `json:"parameters"`
	ConfigSource         string   `json:"config_source,omitempty"`
}

// A TickMode says when the tick stops; "" if that is not known.
type TickMode string

const (
	TickPeriodic TickMode = "periodic" // never
	TickIdle     TickMode = "idle"     // on idle CPUs
	TickFull     TickMode = "full"     // on some CPUs also while one thread runs there
)

func known(yes bool) Known {
	if yes {
		return Yes
	}
	return No
}

func (d *TickData) fromConfig(c *hostfs.Config) {
	if hz, err := strconv.Atoi(c.Value("HZ")); err == nil && hz > 0 {
		d.HZ, d.HZSource = hz, c.Source
	}
	d.HighResolution, d.HighResolutionSource = known(c.On("HIGH_RES_TIMERS")), c.Source
	// NO_HZ_FULL without its CPUs named at start is NO_HZ_IDLE.
	switch {
	case c.On("NO_HZ_IDLE"), c.On("NO_HZ_FULL"):
		d.Mode, d.ModeSource = TickIdle, c.Source
	case c.On("HZ_PERIODIC"):
		d.Mode, d.ModeSource = TickPeriodic, c.Source
	}
}

func (d *TickData) fromParameters(p hostfs.Parameters) {
	if v, ok := p.Last("highres"); ok && off(v) {
		d.HighResolution, d.HighResolutionSource = No, "/proc/cmdline"
	}
	if v, ok := p.Last("nohz"); ok && off(v) {
		d.Mode, d.ModeSource = TickPeriodic, "/proc/cmdline"
	}
}

// off is how the kernel's switches are written.
func off(v string) bool { return v == "off" || v == "0" || v == "no" || v == "n" }

func judgeTick(d *TickData) []Finding {
	var found []Finding
	evidence := []Evidence{}
	if len(d.Parameters) > 0 {
		evidence = append(evidence, Evidence{"kernel parameters", strings.Join(d.Parameters, " "), "/proc/cmdline"})
	}
	if d.HighResolution == No {
		f := Finding{
			ID: "tick.low-resolution", Severity: Warning, Confidence: Certain,
			Title:    "the kernel's timers are no finer than its tick",
			Detail:   "Every sleep and every timeout, of whatever program, ends at a tick.",
			Evidence: append([]Evidence{{"high-resolution timers", "no", d.HighResolutionSource}}, evidence...),
			Remedy: []string{
				"look whether the kernel could use a clocksource and a timer device fit for it: dmesg | grep -i -e 'high resolution' -e hres -e clocksource; cat /sys/devices/system/clockevents/clockevent0/current_device",
				"use a kernel with CONFIG_HIGH_RES_TIMERS=y",
			},
		}
		if d.HZ > 0 {
			f.Title += fmt.Sprintf(", %v", time.Second/time.Duration(d.HZ))
		}
		if v := hostfs.Parameters(d.Parameters).Named("highres"); len(v) > 0 {
			f.Remedy = []string{removeParameters(v...)}
		}
		found = append(found, f)
	}
	if d.Mode == TickPeriodic {
		f := Finding{
			ID: "tick.periodic", Severity: Info, Confidence: Certain,
			Title:    "the tick never stops: idle CPUs wake for it all the time",
			Detail:   "Timers are as precise as otherwise. It costs power, and in a virtual machine an exit to the hypervisor each time.",
			Evidence: append([]Evidence{{"tick", string(d.Mode), d.ModeSource}}, evidence...),
			Remedy:   []string{"use a kernel with CONFIG_NO_HZ_IDLE=y"},
		}
		if d.HZ > 0 {
			f.Title = fmt.Sprintf("the tick never stops: idle CPUs wake %d times a second", d.HZ)
		}
		if v := hostfs.Parameters(d.Parameters).Named("nohz"); len(v) > 0 {
			f.Remedy = []string{removeParameters(v...)}
		}
		found = append(found, f)
	}
	if d.Full != "" || d.Isolated != "" {
		f := Finding{
			ID: "tick.isolated-cpus", Severity: Info, Confidence: Certain,
			Evidence: append([]Evidence{
				{"isolated", orNone(d.Isolated), "/sys/devices/system/cpu/isolated"},
				{"nohz_full", orNone(d.Full), "/sys/devices/system/cpu/nohz_full"},
			}, evidence...),
			Detail: "Nobody runs there who does not ask to. Entering the kernel on a nohz_full CPU costs some hundred nanoseconds more.",
			Remedy: []string{"to use them, start one process, or pin one thread, on one of them: taskset -c N PROGRAM. A Go program on several isolated CPUs at once needs each of its threads pinned, for nobody balances there"},
		}
		switch {
		case d.Isolated == "":
			f.Title = fmt.Sprintf("the tick stops on CPUs %s while one thread runs there", d.Full)
		case d.Full == "":
			f.Title = fmt.Sprintf("CPUs %s are isolated: the scheduler places nobody there", d.Isolated)
		case d.Full == d.Isolated:
			f.Title = fmt.Sprintf("CPUs %s are isolated, and their tick stops while one thread runs there", d.Isolated)
		default:
			f.Title = fmt.Sprintf("CPUs %s are isolated, and the tick of CPUs %s stops while one thread runs there", d.Isolated, d.Full)
		}
		found = append(found, f)
	}
	return found
}

func orNone(s string) string {
	if s == "" {
		return "none"
	}
	return s
}
