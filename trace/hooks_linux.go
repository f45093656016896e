//go:build amd64 || arm64

package trace

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"

	"github.com/detent-go/detent/trace/internal/bpf"
)

// A hook is a program of the kernel's and what it is attached to.
type hook struct {
	name    string // of the hook, for people
	program string // in the object file
	feature Features
	// manual hooks are attached by their feature, to programs or CPUs.
	manual bool

	prog  *ebpf.Program
	links []io.Closer
	err   error // why it is absent
}

// follow is the pseudo feature of the hooks that keep up with processes.
const follow Features = 1 << 31

// hooksFor lists the hooks that the features need.
func hooksFor(f Features) []*hook {
	f |= follow
	all := []*hook{
		{name: "tp_btf/sys_enter", program: bpf.TraceProgSysEnter, feature: WatchClockCalls},
		{name: "tp_btf/sys_enter", program: bpf.TraceProgSysEnterTime, feature: WatchCallTimes},
		{name: "tp_btf/sys_exit", program: bpf.TraceProgSysExitTime, feature: WatchCallTimes},
		{name: "tp_btf/hrtimer_start", program: bpf.TraceProgHrtimerStart, feature: WatchTimers | WatchLateness},
		{name: "tp_btf/hrtimer_expire_entry", program: bpf.TraceProgHrtimerExpireEntry, feature: WatchTimers | WatchLateness},
		{name: "tp_btf/hrtimer_expire_exit", program: bpf.TraceProgHrtimerExpireExit, feature: WatchTimers | WatchLateness},
		{name: "tp_btf/sched_waking", program: bpf.TraceProgSchedWaking, feature: WatchTimers | WatchLateness},
		{name: "tp_btf/timer_expire_entry", program: bpf.TraceProgTimerExpireEntry, feature: WatchTimers},
		{name: "tp_btf/sched_wakeup", program: bpf.TraceProgSchedWakeup, feature: WatchLateness},
		{name: "tp_btf/sched_wakeup_new", program: bpf.TraceProgSchedWakeupNew, feature: WatchLateness},
		{name: "tp_btf/sched_switch", program: bpf.TraceProgSchedSwitch, feature: WatchLateness},
		{name: "tp_btf/sched_process_exit", program: bpf.TraceProgSchedProcessExit, feature: follow},
		{name: "tp_btf/sched_process_fork", program: bpf.TraceProgSchedProcessFork, feature: follow},
		{name: "tp_btf/sched_process_exec", program: bpf.TraceProgSchedProcessExec, feature: follow},
		{name: "perf_event/cpu-clock", program: bpf.TraceProgCpuSample, feature: WatchProfile, manual: true},
		{name: "uprobe/runtime timers", program: bpf.TraceProgGoTimer, feature: WatchGoTimers, manual: true},
	}
	var wanted []*hook
	for _, h := range all {
		if h.feature&f != 0 {
			h.feature &= f
			wanted = append(wanted, h)
		}
	}
	return wanted
}

// feature in words, for Hook.Feature.
func (h *hook) wantedBy() string {
	if h.feature == follow {
		return "follow"
	}
	return h.feature.String()
}

// load puts the programs of the hooks into the kernel, with the maps. It fails only
// if not even the maps can be made; a program that is refused is noted in its hook.
func load(spec *ebpf.CollectionSpec, hooks []*hook) (map[string]*ebpf.Map, error) {
	programs := spec.Programs
	spec.Programs = nil
	c, err := ebpf.NewCollection(spec)
	if err != nil {
		return nil, err
	}
	opts := ebpf.CollectionOptions{MapReplacements: c.Maps}
	spec.Programs = make(map[string]*ebpf.ProgramSpec, len(hooks))
	for _, h := range hooks {
		spec.Programs[h.program] = programs[h.program]
	}
	if all, err := ebpf.NewCollectionWithOptions(spec, opts); err == nil {
		for _, h := range hooks {
			h.prog = all.DetachProgram(h.program)
		}
		all.Close()
		return c.Maps, nil
	}
	// One of them is not for this kernel. Each by itself tells which.
	for _, h := range hooks {
		spec.Programs = map[string]*ebpf.ProgramSpec{h.program: programs[h.program]}
		one, err := ebpf.NewCollectionWithOptions(spec, opts)
		if err != nil {
			h.err = shorten(err)
			continue
		}
		h.prog = one.DetachProgram(h.program)
		one.Close()
	}
	return c.Maps, nil
}

// shorten leaves out the verifier's log.
func shorten(err error) error {
	var refused *ebpf.VerifierError
	if errors.As(err, &refused) {
		return fmt.Errorf("refused by the verifier: %w", refused.Cause)
	}
	return err
}

// attach starts what can be started at once.
func (h *hook) attach() {
	if h.prog == nil || h.manual {
		return
	}
	l, err := link.AttachTracing(link.TracingOptions{Program: h.prog})
	if err != nil {
		h.err = shorten(err)
		return
	}
	h.links = append(h.links, l)
}

// active says that the hook is attached somewhere.
func (h *hook) active() bool { return len(h.links) > 0 }

func (h *hook) detach() error {
	var errs []error
	for _, l := range h.links {
		errs = append(errs, l.Close())
	}
	h.links = nil
	return errors.Join(errs...)
}

func (h *hook) close() error {
	err := h.detach()
	if h.prog != nil {
		err = errors.Join(err, h.prog.Close())
	}
	return err
}

// state is what the hook has cost by now.
func (h *hook) state() Hook {
	s := Hook{Name: h.name, Feature: h.wantedBy()}
	if !h.active() {
		s.Absent = "not attached"
	}
	if h.err != nil {
		s.Absent = h.err.Error()
	}
	if h.prog != nil {
		if stats, err := h.prog.Stats(); err == nil {
			s.Runs, s.Time = stats.RunCount, time.Duration(stats.Runtime)
		}
	}
	return s
}
