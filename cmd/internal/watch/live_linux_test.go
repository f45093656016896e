package watch

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/detent-go/detent/trace"
)

// view is what the terminal shows, without colours.
func view(m *live) string { return ansi.Strip(m.View().Content) }

func press(m *live, keys ...string) (quit bool) {
	for _, k := range keys {
		var msg tea.KeyPressMsg
		switch k {
		case "down":
			msg = tea.KeyPressMsg{Code: tea.KeyDown}
		case "up":
			msg = tea.KeyPressMsg{Code: tea.KeyUp}
		case "tab":
			msg = tea.KeyPressMsg{Code: tea.KeyTab}
		default:
			msg = tea.KeyPressMsg{Code: rune(k[0]), Text: k}
		}
		if _, cmd := m.Update(msg); cmd != nil {
			_, quit = cmd().(tea.QuitMsg)
		}
	}
	return quit
}

func shown(t *testing.T, f *fake) *live {
	t.Helper()
	m := newLive(f, "all", time.Second, false)
	m.Update(tea.WindowSizeMsg{Width: 110, Height: 30})
	if !strings.Contains(view(m), "looking") {
		t.Errorf("before the first difference:\n%s", view(m))
	}
	m.Update(m.look())
	m.Update(m.look())
	return m
}

func TestLiveTabs(t *testing.T) {
	m := shown(t, &fake{})
	for _, c := range []struct{ key, want string }{
		{"1", "main.hot"}, {"2", "THROTTLED"}, {"3", "go1.26"}, {"4", "IDLE CPU/S"}, {"5", "main.spin"}, {"6", "Nothing yet"}, {"tab", "main.hot"},
	} {
		press(m, c.key)
		if v := view(m); !strings.Contains(v, c.want) || !strings.Contains(v, "hpet") || !strings.Contains(v, "q quit") {
			t.Errorf("after %s there is no %q:\n%s", c.key, c.want, v)
		}
	}
	if !press(m, "q") {
		t.Error("q does not quit")
	}
}

// TestLiveChoice: the chosen row stays chosen when the order changes, and its
// detail is shown.
func TestLiveChoice(t *testing.T) {
	m := shown(t, &fake{})
	if v := view(m); !strings.Contains(v, Why(trace.ReasonDirect)) {
		t.Errorf("no detail of the first row:\n%s", v)
	}
	press(m, "down", "down", "down")
	if v := view(m); !strings.Contains(v, Why(trace.ReasonUnknown)) {
		t.Errorf("no detail of the second row:\n%s", v)
	}
	m.now.Processes[0].ClockCalls[0].Count = 1 << 40
	m.arrange()
	if v := view(m); m.cursor() != 0 || !strings.Contains(v, Why(trace.ReasonUnknown)) {
		t.Errorf("the choice has not moved with its row, to %d:\n%s", m.cursor(), v)
	}
	press(m, "down", "up", "up")
	if m.cursor() != 0 {
		t.Errorf("the choice is row %d", m.cursor())
	}
}

func TestLivePauseAndEvents(t *testing.T) {
	m := shown(t, &fake{})
	press(m, "p")
	before := m.now
	m.Update(m.look())
	if m.now != before || !strings.Contains(view(m), "PAUSED") {
		t.Errorf("it is not paused:\n%s", view(m))
	}
	press(m, "p", "6")
	m.Update(eventMsg{trace.Event{Kind: trace.EventStep, Step: time.Hour}, true})
	if !strings.Contains(view(m), "set by 1h0m0s") {
		t.Errorf("the event is not there:\n%s", view(m))
	}
	for range 2 * keptEvents {
		m.Update(eventMsg{trace.Event{Kind: trace.EventMessage, Text: "again"}, true})
	}
	if len(m.events) != keptEvents {
		t.Errorf("%d events are kept", len(m.events))
	}
	m.Update(eventMsg{ok: false})
	if !strings.Contains(view(m), "ENDED") {
		t.Errorf("the end is not shown:\n%s", view(m))
	}
}

// TestLiveSizes: no line is wider than the terminal, and there are no more than it
// has, whatever its size.
func TestLiveSizes(t *testing.T) {
	m := shown(t, &fake{})
	for _, size := range [][2]int{{200, 60}, {80, 24}, {40, 10}, {20, 5}, {3, 2}, {1, 1}} {
		m.Update(tea.WindowSizeMsg{Width: size[0], Height: size[1]})
		for tab := range tabs {
			m.tab = tab
			lines := strings.Split(view(m), "\n")
			if len(lines) > size[1] {
				t.Errorf("%v, tab %d: %d lines", size, tab, len(lines))
			}
			for _, l := range lines {
				if w := ansi.StringWidth(l); w > size[0] {
					t.Errorf("%v, tab %d: a line of %d columns: %q", size, tab, w, l)
				}
			}
		}
	}
}

// TestLiveFails: a source that fails ends the view with its error.
func TestLiveFails(t *testing.T) {
	failed := errors.New("failed")
	f := &fake{err: failed, events: make(chan trace.Event)}
	in, _ := io.Pipe()
	err := Live(t.Context(), f, "x", time.Second, in, io.Discard, false)
	if !errors.Is(err, failed) {
		t.Errorf("%v", err)
	}
}

// TestLiveContext: the end of the context ends the view.
func TestLiveContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	in, _ := io.Pipe()
	var out bytes.Buffer
	done := make(chan error, 1)
	go func() {
		done <- Live(ctx, &fake{events: make(chan trace.Event)}, "x", time.Second, in, &out, false)
	}()
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}
