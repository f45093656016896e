package timer_test

import (
	"bytes"
	"context"
	"runtime/pprof"
	"strings"
	"testing"
	"time"

	"github.com/detent-go/detent/internal/suite"
	"github.com/detent-go/detent/timer"
)

// TestNoForeignLabels starts timers from a goroutine with profiler labels: what
// runs for them, the callbacks above all, has none of these.
func TestNoForeignLabels(t *testing.T) {
	for name, o := range map[string]*timer.Options{
		"concurrent": {Shards: 1},
		"inline":     {Shards: 1, Callbacks: timer.Inline},
	} {
		t.Run(name, func(t *testing.T) {
			const label = "TestNoForeignLabels-" // and what follows, in no other place
			s := mustNew(t, o)
			seen := make(chan string, 16)
			out := make(chan struct{})
			look := func() {
				<-out
				seen <- labelled(label + name)
			}
			// The first timer of the service, and some that are due at once.
			pprof.Do(t.Context(), pprof.Labels("test", label+name), func(context.Context) {
				s.AfterFunc(50*time.Microsecond, look)
				s.AfterFunc(0, look)
				s.AfterFunc(5*time.Millisecond, look)
				s.NewTimer(time.Minute).Reset(100 * time.Microsecond)
			})
			close(out)
			for range 3 {
				if got := suite.Await(t, "a callback", seen); got != "" {
					t.Errorf("labels of whoever started the timers:\n%s", got)
				}
			}
		})
	}
}

// TestLabelsEnd has callbacks set labels and leave them: the next one, on the
// same goroutine, has none.
func TestLabelsEnd(t *testing.T) {
	const label, n = "TestLabelsEnd-label", 50
	// Inline, so that no other callback is at work when one looks.
	s := mustNew(t, &timer.Options{Shards: 1, Callbacks: timer.Inline})
	seen := make(chan string, n)
	for k := range n {
		s.AfterFunc(time.Duration(k)*20*time.Microsecond, func() {
			seen <- labelled(label)
			pprof.SetGoroutineLabels(pprof.WithLabels(context.Background(), pprof.Labels("test", label)))
			if k == 0 && labelled(label) == "" {
				t.Error("the goroutine profile does not show labels in the form looked for")
			}
		})
	}
	for range n {
		if got := suite.Await(t, "a callback", seen); got != "" {
			t.Errorf("labels of the callback before:\n%s", got)
		}
	}
}

// labelled returns the entries of the goroutine profile with the given label, but
// for goroutines that have not come to run.
func labelled(label string) string {
	var b bytes.Buffer
	if err := pprof.Lookup("goroutine").WriteTo(&b, 1); err != nil {
		return err.Error()
	}
	var found []string
	for entry := range strings.SplitSeq(b.String(), "\n\n") {
		// One that has yet to begin has no frame, or stands at its first instruction.
		if strings.Contains(entry, `"`+label+`"`) && strings.Contains(entry, "#\t") && !strings.Contains(entry, "+0x0\t") {
			found = append(found, entry)
		}
	}
	return strings.Join(found, "\n\n")
}
