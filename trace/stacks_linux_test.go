//go:build amd64 || arm64

package trace

import (
	"slices"
	"testing"
	"testing/fstest"

	"github.com/cilium/ebpf"

	"github.com/detent-go/detent/trace/internal/proc"
	"github.com/detent-go/detent/trace/internal/symbol"
)

// bare is a tracer without a kernel, and a process with code at 0x1000 and data at
// 0x3000.
func bare() (*Tracer, *known) {
	root := fstest.MapFS{}
	t := &Tracer{root: root, symbols: symbol.NewCache(root), frames: make(map[frameKey]Frame), lost: make(map[string]uint64), known: make(map[int]*known)}
	k := &known{detailed: true, ended: true, Process: &proc.Process{PID: 7, Maps: []proc.Mapping{
		{Start: 0x1000, End: 0x2000, Exec: true, Path: "/bin/x"},
		{Start: 0x3000, End: 0x4000},
	}}}
	t.known[7] = k
	return t, k
}

func pcs(s Stack) (list []uint64) {
	for _, f := range s.Frames {
		list = append(list, f.PC)
	}
	return list
}

// TestStackEnds: what is no code ends a stack, so that stacks without frame
// pointers are one, and the call's return address completes it.
func TestStackEnds(t *testing.T) {
	tracer, k := bare()
	var list []Stack
	for _, garbage := range []uint64{5, 0x3008, 1 << 50} {
		list = tracer.addStackLocked(list, 7, []uint64{0x1010, garbage, 0x1020, 0}, 2)
	}
	list = tracer.addStackLocked(list, 7, []uint64{0x1010, 0x1020, 0x1030, 0}, 1)
	list = tracer.addStackLocked(list, 7, nil, 100)
	if len(list) != 2 || list[0].Count != 6 || !slices.Equal(pcs(list[0]), []uint64{0x1010}) || !slices.Equal(pcs(list[1]), []uint64{0x1010, 0x1020, 0x1030}) {
		t.Fatalf("%+v", list)
	}
	c := &ClockCalls{Stacks: reported(list)}
	tracer.addCallerLocked(k, c, 0x3010) // data
	if len(c.Stacks[0].Frames) != 1 {
		t.Errorf("completed by data: %+v", c.Stacks[0])
	}
	tracer.addCallerLocked(k, c, 0x1040)
	if !slices.Equal(pcs(c.Stacks[0]), []uint64{0x1010, 0x1040}) || len(c.Stacks[1].Frames) != 3 {
		t.Errorf("%+v", c.Stacks)
	}
	if len(list[0].Frames) != 1 {
		t.Error("what was gathered has been changed by the report")
	}
}

func TestStacksBounded(t *testing.T) {
	tracer, _ := bare()
	var list []Stack
	for i := range uint64(3 * keptStacks) {
		list = tracer.addStackLocked(list, 7, []uint64{0x1000 + i}, 1)
	}
	if len(list) != keptStacks || tracer.lost["stacks: too many different ones"] != 2*keptStacks {
		t.Errorf("%d stacks, lost %v", len(list), tracer.lost)
	}
	if got := reported(list); len(got) != maxStacks {
		t.Errorf("%d are reported", len(got))
	}
}

// TestDropped: what does not fit into the kernel's maps is counted.
func TestDropped(t *testing.T) {
	c := startChild(t, "forks")
	tracer := start(t, &Options{PIDs: []int{c.pid()}, Children: true, Features: WatchClockCalls, MaxProcesses: 1, Interval: 1 << 40})
	needHook(t, tracer, "tp_btf/sys_enter")
	needHook(t, tracer, "tp_btf/sched_process_fork")
	// Each child makes itself known by an event, also when there is no room for
	// its calls: by its exec. Without a snapshot nothing is taken out.
	// The kernel has spare elements for its CPUs, which it may use.
	room := 64 + ebpf.MustPossibleCPU()
	execs := 0
	for e := range tracer.Events() {
		if e.Kind == EventExec {
			if execs++; execs == room+20 {
				break
			}
		}
	}
	s, err := tracer.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	if s.Dropped["clock calls: too many processes"] == 0 {
		t.Errorf("dropped: %v", s.Dropped)
	}
	users := 0
	for _, p := range s.Processes {
		if len(p.ClockCalls) > 0 {
			users++
		}
	}
	if users == 0 || users > room {
		t.Errorf("%d processes in a map for 64, and one for each CPU: %d", users, room)
	}
}

// TestUnknownClocks: a program that asks for clocks that do not exist takes one
// entry of the map, not all.
func TestUnknownClocks(t *testing.T) {
	c := startChild(t, "nonsense")
	tracer := start(t, &Options{PIDs: []int{c.pid()}, Features: WatchClockCalls})
	needHook(t, tracer, "tp_btf/sys_enter")
	s := until(t, tracer, "calls", func(s *Snapshot) bool {
		c := calls(s.Process(c.pid()), "clock_gettime", "unknown")
		return c != nil && c.Count > 1000
	})
	if n := len(s.Process(c.pid()).ClockCalls); n != 1 {
		t.Errorf("%d clocks", n)
	}
}
