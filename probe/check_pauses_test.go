package probe

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestPauserSort(t *testing.T) {
	const ms = int64(time.Millisecond)
	p := &pauser{kept: make([]span, 0, 2)}
	none := switches{0, 0, true}
	p.sort(none, switches{1, 0, true}, span{0, 3 * ms})
	p.sort(none, switches{2, 1, true}, span{10 * ms, 11 * ms})
	p.sort(none, switches{0, 1, true}, span{20 * ms, 22 * ms})
	for i := range int64(3) {
		p.sort(none, none, span{30 * ms * i, 30*ms*i + ms*i})
	}
	p.sort(switches{}, switches{}, span{0, 1000 * ms})
	want := CPUPauses{
		Preempted: PauseSum{2, 4 * time.Millisecond, 3 * time.Millisecond},
		Scheduler: PauseSum{1, 2 * time.Millisecond, 2 * time.Millisecond},
		Stolen:    PauseSum{3, 3 * time.Millisecond, 2 * time.Millisecond},
	}
	if p.Preempted != want.Preempted || p.Scheduler != want.Scheduler || p.Stolen != want.Stolen || len(p.kept) != 2 {
		t.Errorf("%+v, kept %v", p.CPUPauses, p.kept)
	}
}

func TestCommonSpans(t *testing.T) {
	list := []*pauser{
		{kept: []span{{0, 10}, {100, 110}, {200, 210}}},
		{kept: []span{{5, 20}, {90, 100}, {195, 300}}},
		{kept: []span{{9, 11}, {205, 206}}},
	}
	if got := commonSpans(list); got != 2 {
		t.Errorf("%d, want 2", got)
	}
	if got := commonSpans(list[:2]); got != 2 {
		t.Errorf("of two: %d, want 2", got)
	}
}

func TestJudgePauses(t *testing.T) {
	ms := time.Millisecond
	for _, test := range []struct {
		name   string
		pinned bool
		steal  float64
		stolen PauseSum // of one of two CPUs, in a second
		others PauseSum
		want   []string
	}{
		{"quiet", true, 0, PauseSum{27, ms, 80 * time.Microsecond}, PauseSum{}, nil},
		{"a noisy neighbour", true, 0.005, PauseSum{40, 20 * ms, 8 * ms}, PauseSum{}, nil},
		{"a busy machine", true, 0, PauseSum{27, ms, 80 * time.Microsecond}, PauseSum{800, 900 * ms, 300 * ms}, []string{"info certain pauses.busy"}},
		{"a shared CPU", true, 0.04, PauseSum{60, 90 * ms, 15 * ms}, PauseSum{}, []string{"notice certain pauses.stolen"}},
		{"a shared CPU that does not say so", true, -1, PauseSum{60, 90 * ms, 15 * ms}, PauseSum{}, []string{"notice likely pauses.stolen"}},
		{"one long pause", true, 0, PauseSum{1, 25 * ms, 25 * ms}, PauseSum{}, []string{"notice likely pauses.stolen"}},
		{"starved", true, 0.4, PauseSum{400, 500 * ms, 40 * ms}, PauseSum{}, []string{"warning certain pauses.stolen"}},
		{"stopped", true, 0, PauseSum{1, 150 * ms, 150 * ms}, PauseSum{}, []string{"warning likely pauses.stolen"}},
		{"not told apart", false, -1, PauseSum{400, 500 * ms, 40 * ms}, PauseSum{}, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			d := &PausesData{Pinned: test.pinned, Steal: test.steal, Groups: 1, Common: 1, CPUs: []CPUPauses{
				{CPU: 0, For: time.Second}, {CPU: 1, For: time.Second, Stolen: test.stolen, Preempted: test.others},
			}}
			var got []string
			for _, f := range judgePauses(d) {
				got = append(got, f.Severity.String()+" "+f.Confidence.String()+" "+f.ID)
				if len(f.Evidence) == 0 || strings.Contains(f.Title+f.Detail, "%!") {
					t.Errorf("%+v", f)
				}
				if f.ID == "pauses.stolen" && !strings.Contains(f.Evidence[1].Value, "CPU 1") {
					t.Errorf("the longest: %+v", f.Evidence[1])
				}
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("found %q, want %q", got, test.want)
			}
		})
	}
	// It was not others who had the CPUs.
	d := &PausesData{Pinned: true, Throttled: 800 * ms, Throttles: 9, Group: "/sys/fs/cgroup/x", CPUs: []CPUPauses{
		{CPU: 0, For: time.Second, Preempted: PauseSum{9, 900 * ms, 95 * ms}},
	}}
	if f := judgePauses(d); len(f) != 1 || f[0].ID != "pauses.throttled" || f[0].Severity != Info {
		t.Errorf("throttled: %+v", f)
	}
	if f := judgePauses(&PausesData{Pinned: true}); f != nil {
		t.Errorf("of nothing: %v", f)
	}
}

func TestMeasurePauses(t *testing.T) {
	d, err := measurePauses(context.Background(), &Env{Root: os.DirFS("/"), Own: true, Effort: Quick})
	if err != nil {
		t.Fatal(err)
	}
	if len(d.CPUs) == 0 || runtime.GOOS != "linux" && d.Pinned {
		t.Fatalf("%+v", d)
	}
	for _, c := range d.CPUs {
		if c.Readings == 0 || c.For <= 0 || uint64(c.Gaps.Count) > c.Readings || c.Gaps.Count > 0 && c.Gaps.Max < gap {
			t.Errorf("%+v", c)
		}
		for _, s := range []PauseSum{c.Preempted, c.Scheduler, c.Stolen} {
			if s.Total > c.For || s.Longest > s.Total || s.Count > 0 && s.Longest < pause {
				t.Errorf("CPU %d: %+v of %v", c.CPU, s, c.For)
			}
		}
	}
	if _, err := json.Marshal(d); err != nil {
		t.Error(err)
	}
}

func TestMeasurePausesEnds(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	if _, err := measurePauses(ctx, &Env{Root: os.DirFS("/"), Own: true, Effort: Thorough}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v", err)
	}
}
