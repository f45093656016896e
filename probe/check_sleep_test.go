package probe

import (
	"context"
	"encoding/json"
	"errors"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestMeasureSleeps(t *testing.T) {
	var steps []float64
	d, err := MeasureSleeps(context.Background(), SleepOptions{
		Requested: 20 * time.Microsecond, Count: 8, Loads: []Load{Idle, Busy},
		Progress: func(_ string, _ Load, done float64) { steps = append(steps, done) },
	})
	if err != nil {
		t.Fatal(err)
	}
	names, worked := SleepNames(), 0
	if len(d.Ways) != 2*len(names) || d.Requested != 20*time.Microsecond {
		t.Fatalf("%d ways for %v, of %v", len(d.Ways), d.Requested, names)
	}
	for i, w := range d.Ways {
		if w.Name != names[i%len(names)] {
			t.Errorf("%s where %s was expected", w.Name, names[i%len(names)])
		}
		if w.Error != "" {
			t.Logf("%s: %s", w.Name, w.Error)
			continue
		}
		worked++
		if w.Lateness.Count != 8 || w.Lateness.Max < w.Lateness.Min || w.Lateness.Min < 0 {
			t.Errorf("%s, %s: %+v", w.Name, w.Load, w.Lateness)
		}
		if w.Early > 0 {
			t.Errorf("%s, %s: %d early, by %v", w.Name, w.Load, w.Early, w.EarlyBy)
		}
		if w.Name == SleepPrecise && w.Slack != time.Nanosecond {
			t.Errorf("%s: slack %v", w.Name, w.Slack)
		}
	}
	if worked == 0 || len(steps) != sleepRounds*worked || steps[0] != 0 || !slices.IsSorted(steps) || steps[len(steps)-1] >= 1 {
		t.Errorf("progress %v", steps)
	}
	if _, err := json.Marshal(d); err != nil {
		t.Error(err)
	}
}

// The slack of one thread is no other goroutine's.
func TestSlackStays(t *testing.T) {
	if !slices.Contains(SleepNames(), SleepPrecise) {
		t.Skip("no timer slack on " + runtime.GOOS)
	}
	slack := func(ways ...string) time.Duration {
		d, err := MeasureSleeps(context.Background(), SleepOptions{Count: 40, Ways: ways})
		if err != nil || d.way(SleepNanosleep, Idle) == nil {
			t.Fatalf("%+v, %v", d, err)
		}
		return d.way(SleepNanosleep, Idle).Slack
	}
	before := slack(SleepNanosleep)
	if after := slack(SleepPrecise, SleepNanosleep); after != before {
		t.Errorf("slack %v, then %v", before, after)
	}
}

func TestMeasureSleepsOptions(t *testing.T) {
	if _, err := MeasureSleeps(context.Background(), SleepOptions{Ways: []string{"snoring"}}); !errors.Is(err, errors.ErrUnsupported) || !strings.Contains(err.Error(), "snoring") {
		t.Errorf("a way that does not exist: %v", err)
	}
	if _, err := MeasureSleeps(context.Background(), SleepOptions{Requested: -1}); err == nil {
		t.Error("a negative sleep")
	}
	began := time.Now()
	d, err := MeasureSleeps(context.Background(), SleepOptions{Count: 1 << 30, Time: 10 * time.Millisecond, Ways: []string{SleepTime}})
	if err != nil || len(d.Ways) != 1 || d.Ways[0].Lateness.Count == 0 {
		t.Errorf("%+v, %v after %v", d, err, time.Since(began))
	}
}

func TestMeasureSleepsEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	n := 0
	d, err := MeasureSleeps(ctx, SleepOptions{
		Requested: time.Microsecond, Count: 1 << 30, Time: 20 * time.Millisecond,
		Progress: func(string, Load, float64) {
			if n++; n == 2 {
				cancel()
			}
		},
	})
	if !errors.Is(err, context.Canceled) || d == nil || d.Ways[0].Lateness.Count == 0 || d.Ways[0].Error == "" {
		t.Errorf("%+v, %v", d, err)
	}
}

func TestJudgeSleep(t *testing.T) {
	us := time.Microsecond
	row := func(name string, load Load, n int64, least, median time.Duration) SleepWay {
		return SleepWay{Name: name, Load: load, Lateness: Distribution{Count: n, Min: least, P50: median, P99: 3 * median, Max: 20 * median}}
	}
	healthy := func() *SleepData {
		return &SleepData{Requested: 50 * us, Ways: []SleepWay{
			row(SleepNanosleep, Idle, 900, 19*us, 67*us), row(SleepPrecise, Idle, 1400, 8*us, 18*us), row(SleepTimerfd, Idle, 1300, 11*us, 25*us),
			row(SleepTime, Idle, 90, 20*us, 40*us), row(SleepDetent, Idle, 1300, 12*us, 29*us),
			row(SleepPrecise, Busy, 1400, 8*us, 18*us), row(SleepTime, Busy, 10, 20*us, 500*us),
		}}
	}
	late := func(d *SleepData, least, median time.Duration) {
		for i := range d.Ways {
			d.Ways[i].Lateness.Min, d.Ways[i].Lateness.P50 = least, median
		}
	}
	for _, test := range []struct {
		name string
		sick func(d *SleepData)
		want []string
	}{
		{"healthy", func(*SleepData) {}, nil},
		{"as Linux is", func(d *SleepData) { d.Ways[3] = row(SleepTime, Idle, 90, 300*us, 1027*us) }, []string{"info certain sleep.package-time"}},
		{"busy scheduler", func(d *SleepData) { d.Ways[6] = row(SleepTime, Busy, 16, 20_000*us, 20_087*us) }, []string{"info certain sleep.busy-scheduler"}},
		{"busy machine", func(d *SleepData) { late(d, 20*us, 4000*us) }, nil},
		{"other systems", func(d *SleepData) { d.Ways = d.Ways[3:5]; d.Ways[0] = row(SleepTime, Idle, 40, 300*us, 15_000*us) }, nil},
		{"nothing works", func(d *SleepData) { d.Ways = []SleepWay{{Name: SleepTime, Load: Idle, Error: "refused"}} }, nil},
		{"too few", func(d *SleepData) {
			late(d, 5000*us, 6000*us)
			for i := range d.Ways {
				d.Ways[i].Lateness.Count = 4
			}
			d.Ways = d.Ways[:5]
		}, nil},
		{"deep idle states", func(d *SleepData) { late(d, 400*us, 480*us); d.Ways = d.Ways[:5] }, []string{"notice likely sleep.floor"}},
		{"timers on the tick", func(d *SleepData) { late(d, 3900*us, 4100*us); d.Ways = d.Ways[:5] }, []string{"warning likely sleep.floor"}},
		{"early", func(d *SleepData) { d.Ways[2].Early, d.Ways[2].EarlyBy = 3, 700 }, []string{"critical certain sleep.early"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			d := healthy()
			test.sick(d)
			var got []string
			for _, f := range judgeSleep(d) {
				got = append(got, f.Severity.String()+" "+f.Confidence.String()+" "+f.ID)
				if len(f.Evidence) == 0 || strings.Contains(f.Title+f.Detail, "%!") {
					t.Errorf("%+v", f)
				}
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("found %q, want %q", got, test.want)
			}
		})
	}
}
