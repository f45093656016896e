package trace

import (
	"testing"
	"time"
)

func TestSince(t *testing.T) {
	hist := func(ds ...time.Duration) (h Histogram) {
		for _, d := range ds {
			h.Observe(d)
		}
		return h
	}
	stack := func(n, pc uint64) Stack { return Stack{Count: n, Frames: []Frame{{PC: pc}, {PC: pc + 1}}} }
	first := &Snapshot{
		Elapsed: time.Second,
		Hooks:   []Hook{{Name: "a", Runs: 10, Time: 100}},
		Processes: []Process{
			{
				PID: 1, CPU: 10,
				ClockCalls: []ClockCalls{{Call: "time", Clock: "realtime", Count: 5, Stacks: []Stack{stack(2, 7), stack(1, 9)}}},
				Timers:     []TimerUse{{Kind: KindEpoll, Armed: 3, Expired: 2}},
				Lateness:   []Lateness{{Kind: KindEpoll, Total: hist(5)}},
				Wait:       &Wait{RunQueue: hist(1)},
			},
			{PID: 2, CPU: 7, Timers: []TimerUse{{Kind: KindFutex, Armed: 3}}},
		},
		Kernel:  []TimerUse{{Kind: KindKernel, Func: "tick", Expired: 4}},
		Dropped: map[string]uint64{"x": 3},
	}
	second := &Snapshot{
		Elapsed: 3 * time.Second,
		Hooks:   []Hook{{Name: "a", Runs: 15, Time: 150}, {Name: "b", Runs: 1}},
		Processes: []Process{
			{
				PID: 1, CPU: 30,
				ClockCalls: []ClockCalls{{Call: "time", Clock: "realtime", Count: 9, Reason: ReasonDirect, Stacks: []Stack{stack(5, 7), stack(1, 9)}}},
				Timers:     []TimerUse{{Kind: KindEpoll, Armed: 3, Expired: 2}, {Kind: KindTimerfd, Armed: 1}},
				Lateness:   []Lateness{{Kind: KindEpoll, Total: hist(5, 6)}},
				Wait:       &Wait{RunQueue: hist(1, 2, 3)},
			},
			{PID: 2, CPU: 7, Timers: []TimerUse{{Kind: KindFutex, Armed: 3}}},
			{PID: 3, CPU: 1},
		},
		Kernel:  []TimerUse{{Kind: KindKernel, Func: "tick", Expired: 4}, {Kind: KindKernel, Func: "tock", Expired: 1}},
		Dropped: map[string]uint64{"x": 3, "y": 2},
	}
	d := second.Since(first)
	if d.Elapsed != 2*time.Second || d.Hooks[0].Runs != 5 || d.Hooks[0].Time != 50 || d.Hooks[1].Runs != 1 {
		t.Errorf("%v, %+v", d.Elapsed, d.Hooks)
	}
	if len(d.Kernel) != 1 || d.Kernel[0].Func != "tock" || len(d.Dropped) != 1 || d.Dropped["y"] != 2 {
		t.Errorf("%+v, %v", d.Kernel, d.Dropped)
	}
	if len(d.Processes) != 2 || d.Process(2) != nil {
		t.Fatalf("the idle process is there: %+v", d.Processes)
	}
	p := d.Process(1)
	if p.CPU != 20 || len(p.Timers) != 1 || p.Timers[0].Kind != KindTimerfd || p.Wait.RunQueue.Count != 2 || p.Lateness[0].Total.Count != 1 {
		t.Errorf("%+v", p)
	}
	c := p.ClockCalls[0]
	if c.Count != 4 || c.Reason != ReasonDirect || len(c.Stacks) != 1 || c.Stacks[0].Count != 3 {
		t.Errorf("%+v", c)
	}
	// The snapshots themselves are as they were.
	if second.Processes[0].ClockCalls[0].Count != 9 || len(second.Processes) != 3 || first.Processes[0].CPU != 10 || second.Dropped["x"] != 3 {
		t.Error("Since has changed its arguments")
	}
	if second.Since(nil) != second {
		t.Error("since nothing is another snapshot")
	}
}
