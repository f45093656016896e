package accuracy

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/detent-go/detent/cmd/internal/load"
)

// tiny measures everything once.
var tiny = Plan{Rounds: 1, Window: time.Millisecond, Rates: []int{20_000}}

// TestRun: every way is measured under every load or said to be missing, and none is
// early.
func TestRun(t *testing.T) {
	steps := 0
	r, err := Run(context.Background(), tiny, func(string) { steps++ })
	if err != nil || r.Stopped != "" {
		t.Fatal(err, r.Stopped)
	}
	if want := (len(Ways()) - len(r.Missing)) * len(load.Kinds()); len(r.Cells) != want {
		t.Errorf("%d cells, want %d", len(r.Cells), want)
	}
	for _, c := range r.Cells {
		if c.Count == 0 || c.P50 > c.P90 || c.P90 > c.P99 || c.P99 > c.Max {
			t.Errorf("%+v", c)
		}
		if strings.HasPrefix(c.Way, "time.") {
			continue
		}
		if c.Early != 0 {
			t.Errorf("%s, %s: %d early", c.Way, c.Load, c.Early)
		}
	}
	if want := len(paced) * len(limiters); len(r.Paces) != want {
		t.Errorf("%d paces, want %d", len(r.Paces), want)
	}
	for _, p := range r.Paces {
		if p.Achieved <= 0 || p.GapP50 < 0 || p.GapP1 > p.GapP99 {
			t.Errorf("%+v", p)
		}
	}
	if want := len(load.Kinds()) + len(limiters); steps != want {
		t.Errorf("%d steps, want %d", steps, want)
	}
	for _, m := range r.Missing {
		if m.Reason == "" {
			t.Errorf("%s is missing for no reason", m.Way)
		}
	}
	var page bytes.Buffer
	if err := r.WriteMarkdown(&page); err != nil {
		t.Fatal(err)
	}
	if want := len(load.Kinds()) + 4; strings.Count(page.String(), "---:") != want {
		t.Errorf("not %d columns of figures on the right:\n%s", want, &page)
	}
	for _, write := range []func(*Report, *bytes.Buffer) error{
		func(r *Report, b *bytes.Buffer) error { return r.WriteText(b) },
		func(r *Report, b *bytes.Buffer) error { return r.WriteMarkdown(b) },
		func(r *Report, b *bytes.Buffer) error { return r.WriteJSON(b) },
	} {
		var b bytes.Buffer
		if err := write(r, &b); err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{wayTime, wayAuto, "20000", "channel ping-pong"} {
			if !strings.Contains(b.String(), want) {
				t.Errorf("%q is not in\n%s", want, b.String())
			}
		}
	}
}

// TestStopped: what has been measured when the user stops it is kept.
func TestStopped(t *testing.T) {
	stop := errors.New("enough")
	ctx, cancel := context.WithCancelCause(context.Background())
	steps := 0
	r, err := Run(ctx, tiny, func(string) {
		if steps++; steps == 2 {
			cancel(stop)
		}
	})
	if err != nil || r.Stopped != "enough" || len(r.Cells) == 0 || len(r.Paces) != 0 {
		t.Errorf("%v, %q, %d cells, %d paces", err, r.Stopped, len(r.Cells), len(r.Paces))
	}
	var b bytes.Buffer
	if err := r.WriteMarkdown(&b); err != nil || !strings.Contains(b.String(), "stopped (enough)") {
		t.Errorf("%v\n%s", err, b.String())
	}
	b.Reset()
	if err := r.WriteJSON(&b); err != nil || !json.Valid(b.Bytes()) {
		t.Errorf("%v\n%s", err, b.String())
	}
}

func TestFill(t *testing.T) {
	var c Cell
	c.fill([]int64{5, -1, 100, 7, -3})
	if c.Count != 5 || c.Early != 2 || c.P50 != 5 || c.Max != 100 {
		t.Errorf("%+v", c)
	}
	var none Cell
	none.fill(nil)
	if none != (Cell{}) {
		t.Errorf("of nothing: %+v", none)
	}
}
