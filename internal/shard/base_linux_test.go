//go:build linux && !detent_portable

package shard

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// timerfds counts this process's timerfds by their clock and flags.
func timerfds(t *testing.T) map[string]int {
	names, err := filepath.Glob("/proc/self/fdinfo/*")
	if err != nil || len(names) == 0 {
		t.Skip("no /proc/self/fdinfo: ", err)
	}
	count := map[string]int{}
	for _, name := range names {
		info, err := os.ReadFile(name)
		if err != nil {
			continue // It has been closed.
		}
		id, flags := "", ""
		for line := range strings.Lines(string(info)) {
			switch key, value, _ := strings.Cut(strings.TrimSpace(line), ":"); key {
			case "clockid":
				id = strings.TrimSpace(value)
			case "settime flags":
				flags = strings.TrimLeft(strings.TrimSpace(value), "0")
			}
		}
		if id != "" {
			count["clock "+id+" flags "+flags]++
		}
	}
	return count
}

// TestClockFiles: what wakes a group counts on its clock, and there is a file that the
// kernel cancels when the wall clock is set, as soon as there is a timer, however
// coarse.
func TestClockFiles(t *testing.T) {
	// The kernel's numbers: CLOCK_REALTIME is 0, CLOCK_BOOTTIME 7; the flags are
	// TFD_TIMER_ABSTIME, 1, and TFD_TIMER_CANCEL_ON_SET, 2.
	for c, armed := range map[Clock]string{Realtime: "clock 0 flags 1", Boottime: "clock 7 flags 1"} {
		for _, grid := range []uint8{Exact, Grid(1 << 34)} {
			before := timerfds(t)
			g, err := NewGroupOn(c, OnMove{}, Config{Shards: 1})
			if err != nil {
				t.Fatal(err)
			}
			now := g.clock()
			g.Start(&Timer{Deadline: now + hour, Grid: grid, Func: func() {}}, now)
			g.Start(&Timer{Deadline: now + hour/2, Grid: Exact, Func: func() {}}, now)
			during := timerfds(t)
			g.Close()
			after := timerfds(t)
			for _, what := range []string{armed, "clock 0 flags 3"} {
				if got := during[what] - before[what]; got != 1 {
					t.Errorf("clock %d, grid %d: %d timerfds of %s, want 1", c, grid, got, what)
				}
				if after[what] != before[what] {
					t.Errorf("clock %d, grid %d: %d timerfds of %s are left", c, grid, after[what]-before[what], what)
				}
			}
		}
	}
}

// TestClockWatched: a coarse timer alone is enough for the clock to be watched.
func TestClockWatched(t *testing.T) {
	for _, c := range []Clock{Realtime, Boottime} {
		g, err := NewGroupOn(c, OnMove{}, Config{Shards: 1})
		if err != nil {
			t.Fatal(err)
		}
		if g.base.watched.Load() {
			t.Errorf("clock %d is watched before there is a timer", c)
		}
		now := g.clock()
		g.Start(&Timer{Deadline: now + hour, Grid: Grid(1 << 34), Func: func() {}}, now)
		if !g.base.watched.Load() {
			t.Errorf("clock %d is not watched", c)
		}
		s := g.shards[0]
		s.Lock()
		if s.armedBackstop < now+hour-1 {
			t.Errorf("clock %d: the backstop is armed for %d ns from now, with a watch", c, s.armedBackstop-now)
		}
		s.Unlock()
		g.Close()
	}
}
