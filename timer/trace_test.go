package timer_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"runtime/trace"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/detent-go/detent/internal/suite"
	"github.com/detent-go/detent/timer"
)

// TestTrace records a trace while callbacks run, also one that ends its goroutine,
// and reads it with Go's own tool: each callback has a region that ends, with its
// deadline and lateness.
func TestTrace(t *testing.T) {
	if testing.Short() {
		t.Skip("go tool trace may have to be built")
	}
	if trace.IsEnabled() {
		t.Skip("a trace is being recorded already")
	}
	file := filepath.Join(t.TempDir(), "trace")
	f, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := trace.Start(f); err != nil {
		t.Skip(err)
	}
	const n = 20
	// One callback after another: when one is called, those before have returned.
	s := mustNew(t, &timer.Options{Shards: 1, Callbacks: timer.Inline})
	var wg sync.WaitGroup
	for k := range n {
		wg.Add(2)
		s.AfterFunc(time.Duration(k)*100*time.Microsecond, func() { wg.Done() })
		s.AfterFunc(time.Duration(k)*100*time.Microsecond, func() {
			defer wg.Done()
			runtime.Goexit()
		})
	}
	ctx, cancel := s.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	suite.Await(t, "the context ended", ctx.Done())
	wg.Wait()
	wg.Add(1)
	s.AfterFunc(0, wg.Done)
	wg.Wait()
	trace.Stop()

	out, err := exec.Command("go", "tool", "trace", "-d=parsed", file).Output()
	if err != nil {
		t.Skipf("go tool trace: %v", err)
	}
	text := string(out)
	count := func(pattern string) int { return len(regexp.MustCompile(pattern).FindAllString(text, -1)) }
	const own = `"timer github.com/detent-go/detent/timer_test.TestTrace.func\S*"`
	if begun, ended := count(`RegionBegin .*`+own), count(`RegionEnd .*`+own); begun != 2*n || ended != 2*n {
		t.Errorf("%d regions begin and %d end for %d callbacks", begun, ended, 2*n)
	}
	if n := count(`RegionBegin .*"timer \*timer.ctxExpiry"`); n != 1 {
		t.Errorf("%d regions for one context", n)
	}
	late, due := count(`Log .*Category="lateness" Message="\S+s"`), count(`Log .*Category="deadline" Message="\d\d:\d\d:\d\d\.\d{6}"`)
	if late < 2*n+1 || due != late {
		t.Errorf("%d latenesses and %d deadlines for %d callbacks", late, due, 2*n+1)
	}
	if t.Failed() {
		for line := range strings.Lines(text) {
			if strings.Contains(line, "Region") || strings.Contains(line, "Log") {
				t.Log(line)
			}
		}
	}
}
