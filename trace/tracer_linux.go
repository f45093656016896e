//go:build amd64 || arm64

package trace

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"
	"github.com/cilium/ebpf/ringbuf"
	"github.com/cilium/ebpf/rlimit"
	"golang.org/x/sys/unix"

	"github.com/detent-go/detent/trace/internal/bpf"
	"github.com/detent-go/detent/trace/internal/goprog"
	"github.com/detent-go/detent/trace/internal/proc"
	"github.com/detent-go/detent/trace/internal/symbol"
)

// eventBuffer is how many events wait for the reader of Events.
const eventBuffer = 256

// A Tracer watches until it is closed. Its methods may be called by any goroutine.
//
// # Ground rules
//
// The goroutines of a tracer are the reader of the kernel's events, the watcher of
// the clock and the sweeper, which gathers ended processes and lists cgroups. What
// they share with Snapshot is under mu. The hooks and maps are made by Start and
// closed by Close after all of these have ended.
type Tracer struct {
	opts    Options
	root    fs.FS
	began   time.Time
	hooks   []*hook
	maps    map[string]*ebpf.Map
	stats   io.Closer // keeps the kernel counting what programs take
	ring    *ringbuf.Reader
	clock   *clockWatcher
	notes   []Hook // hooks that are not programs of the kernel's
	out     chan Event
	quit    chan struct{}
	wait    sync.WaitGroup
	closing sync.Once
	ended   chan struct{} // closed when Close is done
	err     error         // of Close

	mu       sync.Mutex
	detach   func() bool // from the context
	closed   bool
	known    map[int]*known
	archive  archive
	stacks   map[int]*samples
	symbols  *symbol.Cache
	frames   map[frameKey]Frame
	programs map[string]*goprog.Program // by their file
	kernel   map[uint64]string          // functions of the kernel's timers
	lost     map[string]uint64          // what has been dropped in this process
	quotas   map[string]*proc.Quota     // by the cgroups of a process: see quotaBaseLocked
}

// Start begins to watch, until the context ends or Close is called. If opts is nil,
// it watches all processes with DefaultFeatures.
//
// It returns a [*MissingError] where the kernel or the user's privileges do not
// suffice, and an error that matches fs.ErrNotExist if a process of Options.PIDs does
// not exist.
func Start(ctx context.Context, opts *Options) (*Tracer, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	t := &Tracer{
		opts:  opts.withDefaults(),
		root:  os.DirFS("/"),
		out:   make(chan Event, eventBuffer),
		quit:  make(chan struct{}),
		ended: make(chan struct{}),
		known: make(map[int]*known), frames: make(map[frameKey]Frame),
		programs: make(map[string]*goprog.Program),
		kernel:   make(map[uint64]string), stacks: make(map[int]*samples), lost: make(map[string]uint64),
		quotas: make(map[string]*proc.Quota),
	}
	t.symbols = symbol.NewCache(t.root)
	if err := t.start(); err != nil {
		t.Close()
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { t.Close() })
	t.mu.Lock()
	t.detach = stop
	t.mu.Unlock()
	return t, nil
}

func (t *Tracer) start() error {
	for _, pid := range t.opts.PIDs {
		if _, err := fs.Stat(t.root, fmt.Sprintf("proc/%d", pid)); err != nil {
			return fmt.Errorf("trace: process %d: %w", pid, fs.ErrNotExist)
		}
	}
	if t.opts.Cgroup != "" {
		if info, err := os.Stat(t.opts.Cgroup); err != nil {
			return fmt.Errorf("trace: cgroup: %w", err)
		} else if !info.IsDir() {
			return fmt.Errorf("trace: cgroup %s: %w", t.opts.Cgroup, fs.ErrInvalid)
		}
	}
	const needPrograms = WatchClockCalls | WatchLateness | WatchTimers | WatchCallTimes | WatchProfile | WatchGoTimers
	if t.opts.Features&needPrograms != 0 {
		if err := t.startPrograms(); err != nil {
			return err
		}
	}
	t.began = time.Now()
	t.mu.Lock()
	for _, pid := range t.opts.PIDs {
		t.meetLocked(pid, "")
	}
	t.mu.Unlock()
	if t.opts.Features&WatchClockChanges != 0 {
		if err := t.watchClock(); err != nil {
			return err
		}
	}
	if t.ring != nil {
		t.wait.Go(t.readEvents)
	}
	t.wait.Go(t.sweep)
	return nil
}

// startPrograms loads the kernel's programs, tells them whom to follow, and attaches
// them.
func (t *Tracer) startPrograms() error {
	if !t.opts.everyone() {
		if err := checkNamespace(t.root); err != nil {
			return err
		}
	}
	if _, err := btf.LoadKernelSpec(); err != nil {
		return missing(t.root, err)
	}
	// For kernels before 5.11, which count maps against a limit of memory. A
	// refusal shows when the maps are made.
	_ = rlimit.RemoveMemlock()
	spec, err := bpf.LoadTrace()
	if err != nil {
		return fmt.Errorf("trace: %w", err)
	}
	t.hooks = hooksFor(t.opts.Features)
	if err := t.configure(spec); err != nil {
		return fmt.Errorf("trace: %w", err)
	}
	// Without it the programs run as well, and their cost is unknown.
	t.stats, err = ebpf.EnableStats(uint32(unix.BPF_STATS_RUN_TIME))
	if err != nil {
		t.stats = nil
		t.notes = append(t.notes, Hook{Name: "BPF_ENABLE_STATS", Feature: "overhead", Absent: err.Error()})
	}
	if t.maps, err = load(spec, t.hooks); err != nil {
		return missing(t.root, err)
	}
	if err := t.followPIDs(t.opts.PIDs); err != nil {
		return err
	}
	if t.opts.Cgroup != "" {
		if err := t.followCgroup(); err != nil {
			return err
		}
	}
	if t.ring, err = ringbuf.NewReader(t.maps[bpf.TraceMapEvents]); err != nil {
		return missing(t.root, err)
	}
	return t.attach()
}

// attach fails only if nothing that was asked for can be attached.
func (t *Tracer) attach() error {
	var refusal error
	active := false
	for _, h := range t.hooks {
		h.attach()
		switch {
		case h.prog == nil || !h.manual:
		case h.feature == WatchProfile:
			t.attachProfile(h)
		case h.feature == WatchGoTimers:
			t.attachGoTimers(h)
		}
		if h.feature == follow {
			continue
		}
		active = active || h.active()
		if refusal == nil {
			refusal = h.err
		}
	}
	if !active {
		return missing(t.root, errors.Join(refusal))
	}
	return nil
}

// What /proc/kallsyms calls the functions that tell a timer's kind, and the
// program's variable for each.
var timerFunctions = map[string]string{
	"hrtimer_wakeup":  bpf.TraceVarFnHrtimerWakeup,
	"timerfd_tmrproc": bpf.TraceVarFnTimerfd,
	"posix_timer_fn":  bpf.TraceVarFnPosix,
	"it_real_fn":      bpf.TraceVarFnItimer,
	"process_timeout": bpf.TraceVarFnProcessTimeout,
}

// configure sets the programs' variables and the sizes of the maps.
func (t *Tracer) configure(spec *ebpf.CollectionSpec) error {
	set := func(name string, value any) error { return spec.Variables[name].Set(value) }
	mode := uint32(followAll)
	switch {
	case t.opts.everyone():
	case len(t.opts.PIDs) == 1 && t.opts.Cgroup == "" && !t.opts.Children:
		mode = followOne
		if err := set(bpf.TraceVarFollowOne, uint32(t.opts.PIDs[0])); err != nil {
			return err
		}
	default:
		mode = followSet
	}
	children := t.opts.Children || t.opts.Cgroup != ""
	if err := errors.Join(
		set(bpf.TraceVarFollowMode, mode),
		set(bpf.TraceVarFollowChildren, children && mode == followSet),
		set(bpf.TraceVarLateThreshold, uint64(max(t.opts.Late, 0))),
	); err != nil {
		return err
	}
	if t.opts.Features&(WatchTimers|WatchLateness) != 0 {
		names := make([]string, 0, len(timerFunctions))
		for name := range timerFunctions {
			names = append(names, name)
		}
		found, err := addresses(t.root, names...)
		if err == nil && len(found) == 0 {
			err = fmt.Errorf("the kernel hides its addresses (kptr_restrict): %w (CAP_SYSLOG)", fs.ErrPermission)
		}
		if err != nil {
			t.notes = append(t.notes, Hook{
				Name: "/proc/kallsyms", Feature: WatchTimers.String(),
				Absent: "kinds of timers cannot be told apart: " + err.Error(),
			})
		}
		for name, addr := range found {
			if err := set(timerFunctions[name], addr); err != nil {
				return err
			}
		}
	}
	t.size(spec)
	return nil
}

// Whom the programs follow, as their common.h has it.
const (
	followAll = iota
	followOne
	followSet
)

// size fits the maps to the number of processes, and makes those small that
// nothing will write to.
func (t *Tracer) size(spec *ebpf.CollectionSpec) {
	n := t.opts.MaxProcesses
	for name, per := range map[string]struct {
		entries int
		feature Features
	}{
		bpf.TraceMapClockUses:     {4, WatchClockCalls},
		bpf.TraceMapClockStacks:   {4, WatchClockCalls},
		bpf.TraceMapClockTimes:    {2, WatchCallTimes},
		bpf.TraceMapInCalls:       {4, WatchCallTimes},
		bpf.TraceMapStacks:        {4, WatchClockCalls | WatchProfile},
		bpf.TraceMapArmedTimers:   {16, WatchTimers | WatchLateness},
		bpf.TraceMapTimerUses:     {8, WatchTimers | WatchLateness},
		bpf.TraceMapThreads:       {16, WatchTimers | WatchLateness},
		bpf.TraceMapLatenesses:    {2, WatchLateness},
		bpf.TraceMapFollowed:      {4, ^Features(0)},
		bpf.TraceMapProfiles:      {1, WatchProfile},
		bpf.TraceMapProfileStacks: {4, WatchProfile},
		bpf.TraceMapVdsos:         {1, WatchProfile},
		bpf.TraceMapGoTimers:      {1, WatchGoTimers},
	} {
		m := spec.Maps[name]
		m.MaxEntries = 1
		if per.feature&t.opts.Features != 0 {
			m.MaxEntries = uint32(max(per.entries*n, 64))
		}
	}
}

// Events are what happens, in order. The channel is closed by Close. Events that are
// not taken in time are dropped, and counted in Snapshot.Dropped.
func (t *Tracer) Events() <-chan Event { return t.out }

// send never blocks.
func (t *Tracer) send(e Event) {
	select {
	case t.out <- e:
	default:
		t.lose("events: not taken in time")
	}
}

func (t *Tracer) lose(what string) {
	t.mu.Lock()
	t.lost[what]++
	t.mu.Unlock()
}

// Close ends the watching: when it returns, no program of the tracer's is in the
// kernel and no goroutine of it runs.
func (t *Tracer) Close() error {
	t.closing.Do(func() {
		t.mu.Lock()
		t.closed = true
		if t.detach != nil {
			t.detach()
		}
		t.mu.Unlock()
		close(t.quit)
		var errs []error
		for _, h := range t.hooks {
			errs = append(errs, h.detach())
		}
		if t.ring != nil {
			errs = append(errs, t.ring.Close())
		}
		if t.clock != nil {
			errs = append(errs, t.clock.close())
		}
		t.wait.Wait()
		for _, h := range t.hooks {
			errs = append(errs, h.close())
		}
		for _, m := range t.maps {
			errs = append(errs, m.Close())
		}
		if t.stats != nil {
			errs = append(errs, t.stats.Close())
		}
		close(t.out)
		t.err = errors.Join(errs...)
		close(t.ended)
	})
	<-t.ended
	return t.err
}

// sweep gathers, now and then, what ended processes have left, and keeps up with a
// cgroup.
func (t *Tracer) sweep() {
	tick := time.NewTicker(t.opts.Interval)
	defer tick.Stop()
	for {
		select {
		case <-t.quit:
			return
		case <-tick.C:
		}
		if t.opts.Cgroup != "" && t.maps != nil {
			if err := t.followCgroup(); err != nil {
				t.lose("cgroup: " + err.Error())
			}
		}
		t.mu.Lock()
		if !t.closed {
			// Its error is the next snapshot's as well.
			_, _ = t.gatherLocked(onlyEnded)
		}
		t.mu.Unlock()
	}
}

func (t *Tracer) followPIDs(pids []int) error {
	for _, pid := range pids {
		if err := t.maps[bpf.TraceMapFollowed].Put(uint32(pid), uint32(1)); err != nil {
			return fmt.Errorf("trace: following process %d: %w", pid, err)
		}
	}
	return nil
}

// followCgroup follows the processes that are in the cgroup now, and no longer
// those that have left it. Their children are followed by the kernel's program.
func (t *Tracer) followCgroup() error {
	pids, err := cgroupPIDs(t.root, strings.TrimPrefix(t.opts.Cgroup, "/"))
	if err != nil {
		return fmt.Errorf("trace: cgroup: %w", err)
	}
	pids = append(pids, t.opts.PIDs...)
	wanted := make(map[uint32]bool, len(pids))
	for _, pid := range pids {
		wanted[uint32(pid)] = true
	}
	var pid, one uint32
	var gone []uint32
	m := t.maps[bpf.TraceMapFollowed]
	for it := m.Iterate(); it.Next(&pid, &one); {
		if !wanted[pid] {
			gone = append(gone, pid)
		}
	}
	for _, pid := range gone {
		// A child that has been started since the list was made is there again
		// with the next.
		_ = m.Delete(pid)
	}
	return t.followPIDs(pids)
}
