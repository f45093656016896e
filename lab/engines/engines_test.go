package engines_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/detent-go/detent/lab/engines"
)

// TestAll: every engine is described, can be found, works or says that this system
// does not support it, and counts what it says that it counts.
func TestAll(t *testing.T) {
	seen := map[string]bool{}
	for _, info := range engines.All() {
		t.Run(info.Name, func(t *testing.T) {
			if seen[info.Name] {
				t.Error("two engines of this name")
			}
			seen[info.Name] = true
			if found, ok := engines.Find(info.Name); !ok || found.Summary != info.Summary {
				t.Error("Find does not find it")
			}
			if info.Summary == "" || strings.Contains(info.Summary, "\n") || (info.Years == "") != (info.Go == "") {
				t.Errorf("described as %+v", info)
			}
			for c, why := range info.Lacks {
				if why == "" {
					t.Errorf("no reason why it lacks %q", c)
				}
			}
			for _, procs := range []int{0, 1, 3} {
				e, err := info.New(procs)
				if errors.Is(err, errors.ErrUnsupported) {
					t.Skip(err)
				}
				if err != nil {
					t.Fatal(err)
				}
				<-e.After(time.Millisecond)
				if err := e.Close(); err != nil {
					t.Error(err)
				}
			}
			if e, err := info.New(-1); err == nil { // It has no use for the number.
				<-e.After(time.Millisecond)
				if err := e.Close(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	if _, ok := engines.Find("no such engine"); ok {
		t.Error("Find finds anything")
	}
}
