package probe

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// A clock that steps back every thousandth time, by 5.
func TestStepsAlone(t *testing.T) {
	n := int64(0)
	moves := 0
	got := stepsAlone(context.Background(), func() int64 {
		if n++; n%1000 == 0 {
			return n*10 - 15
		}
		return n * 10
	}, time.Millisecond, func(int) { moves++ })
	if got.threads != 1 || got.readings != uint64(n-1) || got.back != uint64(n/1000) || got.back > 0 && got.worst != 5 {
		t.Errorf("%+v of %d", got, n)
	}
	if moves != int(got.readings/stride)-1 {
		t.Errorf("%d moves in %d readings", moves, got.readings)
	}
}

// A counter that all threads share is in order, whatever they do; two that differ
// by ten are not.
func TestSharedMaximum(t *testing.T) {
	var n atomic.Int64
	ordered := func() int64 { return n.Add(1) }
	if got := countSteps(context.Background(), ordered, Shared, nil, 5*time.Millisecond); got.back != 0 || got.readings == 0 {
		t.Errorf("in order: %+v", got)
	}

	var m sharedMaximum
	got := together(2, func(i int) tally {
		return m.steps(context.Background(), func() int64 { return n.Add(1) - int64(i)*1e6 }, 20*time.Millisecond)
	})
	// One of the threads may not have run before the other ended.
	if got.threads != 2 || got.back > 0 && (got.worst <= 0 || got.worst > 1e6) {
		t.Errorf("apart: %+v", got)
	}

	// By one thread it is certain.
	m.v.Store(0)
	values := []int64{5, 7, 6, 8, 3, 9}
	i := 0
	got = m.steps(context.Background(), func() int64 {
		if i == len(values) {
			m.v.Store(over)
			return over
		}
		i++
		return values[i-1]
	}, time.Hour)
	if got.back != 2 || got.worst != 5 || got.readings != uint64(len(values)+1) {
		t.Errorf("one thread: %+v", got)
	}
}

func TestJudgeSteps(t *testing.T) {
	clean := func() *StepsData {
		d := &StepsData{Clocksource: "tsc", Trusted: true}
		for _, c := range []struct{ name, promise string }{
			{"time.Now", PromiseWall}, {"clock.Mono", PromiseOrdered}, {"counter, ordered", PromiseCounter}, {"counter, unordered", PromiseUnordered},
		} {
			for _, m := range methods {
				d.Counts = append(d.Counts, StepCount{Clock: c.name, Promise: c.promise, Method: m, Threads: 2, Readings: 1e6})
			}
		}
		return d
	}
	for _, test := range []struct {
		name string
		sick func(d *StepsData)
		want []string
	}{
		{"clean", func(*StepsData) {}, nil},
		{"without a fence", func(d *StepsData) { d.Counts[15].Back, d.Counts[15].Worst = 9000, 2100 }, []string{"info certain steps.unordered-counter"}},
		{"set forward", func(d *StepsData) { d.WallMoved = time.Hour }, nil},
		{"set back", func(d *StepsData) { d.WallMoved, d.Counts[2].Back, d.Counts[2].Worst = -time.Second, 1, 1e9 }, []string{"warning certain steps.wall-set"}},
		{"wall clock back unset", func(d *StepsData) { d.Counts[2].Back, d.Counts[2].Worst = 10, 1e9 }, []string{"critical likely steps.back"}},
		{"monotonic clock back once", func(d *StepsData) { d.Counts[7].Back, d.Counts[7].Worst = 1, 70 }, []string{"critical likely steps.back"}},
		{"not in step", func(d *StepsData) {
			for _, i := range []int{3, 7, 11} {
				d.Counts[i].Back, d.Counts[i].Worst = 4000, 700
			}
		}, []string{"critical likely steps.back", "critical certain steps.back", "warning certain steps.counter"}},
		{"not in step on hpet", func(d *StepsData) {
			d.Counts[11].Back, d.Counts[11].Worst, d.Clocksource, d.Trusted = 4000, 700, "hpet", false
		}, []string{"notice certain steps.counter"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			d := clean()
			test.sick(d)
			var got []string
			for _, f := range judgeSteps(d) {
				got = append(got, f.Severity.String()+" "+f.Confidence.String()+" "+f.ID)
				if len(f.Evidence) < len(methods) || strings.Contains(f.Title+f.Detail, "%!") {
					t.Errorf("%+v", f)
				}
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("found %q, want %q", got, test.want)
			}
		})
	}
}

func TestMeasureSteps(t *testing.T) {
	d, err := measureStepsBack(context.Background(), &Env{Root: os.DirFS("/"), Own: true, Effort: Quick})
	if err != nil {
		t.Log(err) // a busy machine: some ways were left out
	}
	seen := map[string]bool{}
	for _, c := range d.Counts {
		seen[c.Clock] = true
		if c.Readings == 0 || c.Threads == 0 || c.Back > c.Readings || (c.Back > 0) != (c.Worst > 0) {
			t.Errorf("%+v", c)
		}
		if c.Promise == PromiseOrdered && c.Back > 0 {
			t.Logf("this machine's time steps back: %+v", c)
		}
	}
	for _, want := range []string{"time.Now", "time.Now, monotonic", "clock.Mono", "clock.Raw"} {
		if !seen[want] && (err == nil || len(seen) == 0) {
			t.Errorf("%s was not looked at", want)
		}
	}
	if _, err := json.Marshal(d); err != nil {
		t.Error(err)
	}
}

func TestMeasureStepsEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := measureStepsBack(ctx, &Env{Root: os.DirFS("/"), Own: true, Effort: Thorough}); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}
