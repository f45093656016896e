package peers

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/detent-go/detent/internal/suite"
	"github.com/detent-go/detent/lab/engine"
)

// probeEnv names, in a process that TestProbes starts, the engine and the
// capability to try.
const probeEnv = "DETENT_LAB_PROBE"

// The child's last line begins with one of these.
const (
	fine   = "probe: fine"
	faulty = "probe: "
)

// TestProbes tries what each library can do, in a process of its own for each. What
// it is not said to lack must work. What it is said to lack is tried as well, and
// recorded: most of the faults come by chance.
func TestProbes(t *testing.T) {
	if job := os.Getenv(probeEnv); job != "" {
		child(t, job)
		return
	}
	if testing.Short() || suite.Race {
		t.Skip("starts a process for each probe; the libraries' own data races are not at issue")
	}
	exe, err := os.Executable()
	if err != nil {
		t.Skipf("cannot start another process here: %v", err)
	}
	few := make(chan struct{}, 4) // they wait more than they work
	for _, info := range Infos() {
		if e, err := info.New(0); errors.Is(err, errors.ErrUnsupported) {
			t.Logf("%s: %v", info.Name, err)
			continue
		} else if err == nil {
			e.Close()
		}
		for c := range probes {
			t.Run(info.Name+"/"+string(c), func(t *testing.T) {
				t.Parallel()
				few <- struct{}{}
				defer func() { <-few }()
				why, lacks := info.Lacks[c]
				limit := 5 * time.Minute
				if lacks {
					limit = 5 * time.Second // it may hang
				}
				seen, err := try(exe, info.Name+"/"+string(c), limit)
				switch {
				case err != nil:
					t.Skipf("cannot start another process here: %v", err)
				case lacks:
					t.Logf("listed: %s\nseen: %s", why, seen)
				case seen != fine:
					t.Errorf("not listed, and seen: %s", seen)
				}
			})
		}
	}
}

// try runs one probe in a process of its own, and returns what the process said last.
func try(exe, job string, limit time.Duration) (seen string, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, exe, "-test.run=^TestProbes$", "-test.v")
	cmd.Env = append(os.Environ(), probeEnv+"="+job)
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return fmt.Sprintf("no end within %v", limit), nil
	case err != nil && !errors.As(err, &exit):
		return "", err
	}
	for line := range strings.Lines(string(out)) {
		switch line = strings.TrimSpace(line); {
		case strings.HasPrefix(line, "panic:"), strings.HasPrefix(line, "fatal error:"), strings.HasPrefix(line, faulty):
			return line, nil
		}
	}
	return string(out), nil
}

// child is the process that runs one probe.
func child(t *testing.T, job string) {
	name, c, _ := strings.Cut(job, "/")
	for _, info := range Infos() {
		if info.Name != name {
			continue
		}
		e, err := info.New(0)
		if err != nil {
			t.Fatal(err)
		}
		if fault := probes[engine.Capability(c)](e); fault != "" {
			fmt.Println(faulty + fault)
		} else {
			fmt.Println(fine)
		}
		os.Exit(0) // whatever the library still does
	}
	t.Fatalf("no such engine: %s", name)
}

// TestFace: what the face makes of a library works for the experiments: channels,
// sleeps, tickers and contexts; and Close.
func TestFace(t *testing.T) {
	if suite.Race {
		t.Skip("the libraries have data races")
	}
	for _, info := range Infos() {
		t.Run(info.Name, func(t *testing.T) {
			e, err := info.New(0)
			if errors.Is(err, errors.ErrUnsupported) {
				t.Skip(err)
			}
			if err != nil {
				t.Fatal(err)
			}
			suite.Await(t, "After", e.After(time.Millisecond))
			tm := e.NewTimer(time.Hour)
			tm.Reset(20 * time.Millisecond)
			suite.Await(t, "a timer that was reset", tm.C())
			if tm.Stop() {
				t.Error("Stop of a timer whose value was received = true")
			}
			e.Sleep(time.Millisecond)
			tk := e.NewTicker(20 * time.Millisecond)
			for range 3 {
				suite.Await(t, "a tick", tk.C())
			}
			tk.Reset(30 * time.Millisecond)
			suite.Await(t, "a tick after Reset", tk.C())
			tk.Stop()
			time.Sleep(60 * time.Millisecond)
			select {
			case <-tk.C():
				t.Error("a tick after Stop")
			default:
			}
			ctx, cancel := e.WithTimeout(context.Background(), time.Millisecond)
			suite.Await(t, "a context's end", ctx.Done())
			cancel()
			fired := make(chan struct{})
			f := e.AfterFunc(time.Hour, func() { close(fired) })
			f.Reset(0)
			suite.Await(t, "a function whose timer was reset", fired)
			if _, counts := e.Counters(); counts {
				t.Error("it counts")
			}
			if err := e.Close(); err != nil || e.Close() == nil {
				t.Errorf("Close: %v", err)
			}
		})
	}
}
