package enginetest

import (
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/detent-go/detent/internal/suite"
	"github.com/detent-go/detent/lab/engine"
)

// Threads tests that the threads that an engine owns end at Close: not only do
// their goroutines end, the system no longer knows them either. An engine owns a
// thread if it changes it, or locks a goroutine to it for good.
//
// Owned threads have names that begin with "lab-", by which the test knows them
// from the runtime's.
func Threads(t *testing.T, info engine.Info, procs int) {
	const rounds = 5
	for range rounds {
		e, err := info.New(procs)
		if err != nil {
			SkipUnsupported(t, err)
			t.Fatal(err)
		}
		suite.Await(t, "a timer fired", e.After(time.Millisecond))
		c, _ := e.Counters()
		if c.Threads == 0 {
			t.Fatal("the engine has no threads")
		}
		own := named()
		if len(own) == 0 {
			t.Skip("threads have no names here")
		}
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
		threadsEnd(t, e)
		suite.Eventually(t, fmt.Sprintf("the threads %v have ended", own), func() bool {
			left := named()
			return !slices.ContainsFunc(own, func(tid string) bool { return slices.Contains(left, tid) })
		})
	}
}

// named returns the ids of this process's threads whose names begin with "lab-".
func named() (tids []string) {
	tasks, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return nil
	}
	for _, task := range tasks {
		name, err := os.ReadFile("/proc/self/task/" + task.Name() + "/comm")
		if err == nil && len(name) > 4 && string(name[:4]) == "lab-" {
			tids = append(tids, task.Name())
		}
	}
	return tids
}
