package probe

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/detent-go/detent/internal/hist"
	"github.com/detent-go/detent/internal/hostfs"
	"github.com/detent-go/detent/internal/tsc"
)

// PausesData is the data of the check "pauses": for how long a loop on each CPU that
// does nothing but read the clock did not get to.
type PausesData struct {
	CPUs []CPUPauses `json:"cpus"`
	// Common counts the longer pauses that all CPUs of a group had at the same
	// time, of Groups that were looked at together and had several CPUs.
	Common int `json:"common"`
	Groups int `json:"groups"`
	// Steal is what the hypervisor says it took, of all CPUs together, as a part of
	// their time meanwhile; negative if the kernel does not tell.
	Steal float64 `json:"steal"`
	// Throttled is for how long the quota of a cgroup kept the process from running
	// meanwhile, summed over CPUs, in so many Throttles; 0 where there is no quota.
	// Group is that whose quota it was.
	Throttled time.Duration `json:"throttled_ns,omitempty"`
	Throttles int64         `json:"throttles,omitempty"`
	Group     string        `json:"throttled_by,omitempty"`
	// Pinned says that each loop stayed on its CPU, and that pauses are told apart.
	Pinned bool `json:"pinned"`
}

// CPUPauses are those of one CPU.
type CPUPauses struct {
	CPU int           `json:"cpu"` // -1: any
	For time.Duration `json:"for_ns"`
	// Readings were made, and Gaps are those between two that took a microsecond
	// or longer: what a loop that spins sees as jitter.
	Readings uint64       `json:"readings"`
	Gaps     Distribution `json:"gaps"`

	// The longer gaps, of 20 us and more, by what happened meanwhile. Another
	// thread ran on the CPU, or the cgroup's quota was used up:
	Preempted PauseSum `json:"preempted"`
	// The thread itself had gone to sleep, at the Go scheduler's request:
	Scheduler PauseSum `json:"scheduler"`
	// The thread kept its CPU and did not run: interrupts, the hypervisor, or the
	// firmware (SMI) had it.
	Stolen PauseSum `json:"stolen"`
}

// A PauseSum sums up pauses of one kind.
type PauseSum struct {
	Count   int           `json:"count"`
	Total   time.Duration `json:"total_ns"`
	Longest time.Duration `json:"longest_ns"`
}

func (s *PauseSum) add(d time.Duration) {
	s.Count++
	s.Total += d
	s.Longest = max(s.Longest, d)
}

const (
	gap   = 1000   // ns from which a gap is one
	pause = 20_000 // ns from which its cause is looked at

	// stint is how long a loop runs before it lets the Go scheduler have the P,
	// uncounted: the scheduler preempts after 10 ms.
	stint = 5 * time.Millisecond

	// mostKept pauses of a CPU are kept to be compared with those of others.
	mostKept = 512
)

// A span is when a pause was, by a stopwatch that all loops share.
type span struct{ from, to int64 }

// A pauser looks at one CPU.
type pauser struct {
	CPUPauses
	hist hist.Hist
	kept []span // the stolen ones
}

func pausesTime(e Effort) time.Duration {
	switch e {
	case Quick:
		return 200 * time.Millisecond
	case Thorough:
		return time.Minute
	}
	return time.Second
}

// measurePauses looks at all CPUs, as many at a time as leaves most of a larger
// machine to others.
func measurePauses(ctx context.Context, e *Env) (*PausesData, error) {
	cpus, err := tsc.CPUs()
	if err != nil && !errors.Is(err, errors.ErrUnsupported) {
		return nil, err
	}
	d := &PausesData{Pinned: err == nil, Steal: -1}
	if len(cpus) == 0 {
		cpus = []int{-1}
	}
	size := max(1, min(runtime.GOMAXPROCS(0), max(2, len(cpus)/4)))
	groups := slices.Collect(slices.Chunk(cpus, size))
	each := pausesTime(e.Effort) / time.Duration(len(groups))
	before, statErr := hostfs.ReadCPUTime(e.Root)
	quota := watchQuota(e)
	for _, group := range groups {
		if ctx.Err() != nil {
			break
		}
		list, err := watchCPUs(ctx, group, each)
		if err != nil {
			return nil, err
		}
		if len(list) > 1 {
			d.Groups++
			d.Common += commonSpans(list)
		}
		for _, p := range list {
			p.Gaps = distributionOfHist(&p.hist)
			d.CPUs = append(d.CPUs, p.CPUPauses)
		}
	}
	if after, err := hostfs.ReadCPUTime(e.Root); err == nil && statErr == nil {
		if spent := after.Minus(before); spent.Total() > 0 {
			d.Steal = float64(spent.Steal) / float64(spent.Total())
		}
	}
	d.Throttled, d.Throttles, d.Group = quota()
	return d, ended(ctx)
}

// watchQuota returns what tells for how long, and how often, the cgroup with the
// tightest quota has kept the process from running since.
func watchQuota(e *Env) func() (waited time.Duration, times int64, group string) {
	nothing := func() (time.Duration, int64, string) { return 0, 0, "" }
	groups, err := hostfs.ReadCgroups(e.Root)
	if err != nil {
		return nothing
	}
	g := groups.Tightest()
	if g == nil {
		return nothing
	}
	before, err := groups.ReadThrottling(e.Root, g)
	if err != nil {
		return nothing
	}
	return func() (time.Duration, int64, string) {
		after, err := groups.ReadThrottling(e.Root, g)
		if err != nil {
			return 0, 0, ""
		}
		return after.Waited - before.Waited, after.Throttled - before.Throttled, g.Path
	}
}

// watchCPUs looks at some CPUs at the same time.
func watchCPUs(ctx context.Context, cpus []int, within time.Duration) ([]*pauser, error) {
	list := make([]*pauser, len(cpus))
	errs := make([]error, len(cpus))
	s := newStopwatch()
	var wg sync.WaitGroup
	for i, cpu := range cpus {
		p := &pauser{CPUPauses: CPUPauses{CPU: cpu}}
		// Nothing is allocated while a loop runs.
		p.kept = make([]span, 0, mostKept)
		list[i] = p
		watch := func() error {
			p.watch(ctx, s, within)
			return nil
		}
		wg.Go(func() {
			if cpu < 0 {
				errs[i] = watch()
				return
			}
			errs[i] = tsc.OnCPU(cpu, watch)
		})
	}
	wg.Wait()
	// A CPU that went offline is no reason to know nothing of the others.
	list = slices.DeleteFunc(list, func(p *pauser) bool { return p.Readings == 0 })
	if len(list) == 0 {
		return nil, errors.Join(errs...)
	}
	return list, nil
}

// watch reads the clock for some time.
func (p *pauser) watch(ctx context.Context, s stopwatch, within time.Duration) {
	end := s.ns() + int64(within)
	for began := s.ns(); began < end && ctx.Err() == nil; began = s.ns() {
		switches := switchesOfThread()
		last := s.ns()
		stop := min(began+int64(stint), end)
		for last < stop {
			now := s.ns()
			p.Readings++
			if d := now - last; d >= gap {
				p.hist.Record(d)
				if d >= pause {
					after := switchesOfThread()
					p.sort(switches, after, span{last, now})
					switches = after
					now = s.ns()
				}
			}
			last = now
		}
		p.For += time.Duration(last - began)
		runtime.Gosched()
	}
}

// switches counts how often a thread lost its CPU: to another, or because it waited.
type switches struct {
	preempted, waited int64
	known             bool
}

// sort tells pauses apart by what the kernel counted meanwhile.
func (p *pauser) sort(before, after switches, at span) {
	d := time.Duration(at.to - at.from)
	switch {
	case !after.known:
	case after.preempted > before.preempted:
		p.Preempted.add(d)
	case after.waited > before.waited:
		p.Scheduler.add(d)
	default:
		p.Stolen.add(d)
		if len(p.kept) < cap(p.kept) {
			p.kept = append(p.kept, at)
		}
	}
}

// commonSpans counts the pauses of the first CPU that all others had as well, at
// least in part.
func commonSpans(list []*pauser) int {
	n := 0
	for _, a := range list[0].kept {
		everywhere := true
		for _, p := range list[1:] {
			if !slices.ContainsFunc(p.kept, func(b span) bool { return a.from < b.to && b.from < a.to }) {
				everywhere = false
				break
			}
		}
		if everywhere {
			n++
		}
	}
	return n
}
