package suite

import (
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"
)

// flawEnv names, in the process that TestFlaws starts, the case to run over an
// engine with a flaw.
const flawEnv = "DETENT_TEST_FLAW"

// shownBy says for each case of the suite with which flaw it fails. So each
// case is known to be able to.
var shownBy = map[string]func(e *Engine){
	"NeverEarly":          early,
	"NeverEarlyUnderLoad": early,
	"ZeroAndNegative":     zeroWaits,
	"Huge":                overflows,
	"EarlierDeadlineWins": oversleeps,
	"ManyStarters":        loses,
	"SurvivesCollection":  forgetsChannels,

	"StopPending":      stopSays(false),
	"StopAfterFire":    stopSays(true),
	"StopRacingExpiry": stopSays(true),
	"StopRacingStops":  stopSays(true),
	"StopHalf":         stopsNothing,

	"ResetEarlier":      resetsNothing,
	"ResetLater":        resetsNothing,
	"ResetPushBack":     resetsNothing,
	"ResetSameSlot":     deadlocksInSlot,
	"ResetAfterFire":    resetSays(true),
	"ResetAfterStop":    resetSays(true),
	"ResetAcrossLevels": loses,

	"NoStaleValueAfterStop":  leavesValues,
	"NoStaleValueAfterReset": leavesValues,
	"StopMeansNotReceived":   stopSays(true),
	"ValueIsTheTime":         sendsStart,
	"SyncChannels":           leavesValues,

	"Misuse":      func(e *Engine) { e.Prefix = "clock: " },
	"NilCallback": func(e *Engine) { delete(e.Lacks, NilPanics) },

	"TickerSchedule":   drifts,
	"TickerDrops":      queuesTicks,
	"TickerStop":       leavesTicks,
	"TickerReset":      leavesTicks,
	"TickerHuge":       overflows,
	"TickerConcurrent": leavesTicks,
	"TickerCollected":  keepsTickers,

	"CallbackOwnTimer":      stopSays(true),
	"CallbackOtherTimers":   stopSays(false),
	"CallbackStopEachOther": stopSays(true),
	"CallbackSleeps":        callsInTurn,
	"CallbackGoexit":        callsInTurn,
	"CallbackBlocks":        callsInTurn,
	"CallbackBlocks1500":    callsInTurn,
	"CallbackSlow":          callsInTurn,
	"CallbackSpins":         callsInTurn,

	"ConserveFuncs":    stopSays(true),
	"ConserveChannels": func(e *Engine) { delete(e.Lacks, ExactResults); leavesValues(e) },
	"ConserveHot":      resetSays(false),

	"Storm":    func(e *Engine) { delete(e.Lacks, BoundedStorm) },
	"Sleepers": early,

	"NothingLeft": leavesGoroutines,

	"Long": early,
}

// TestFlaws runs each case over an engine with a flaw, in a process of its own,
// and checks that the case fails.
func TestFlaws(t *testing.T) {
	if name := os.Getenv(flawEnv); name != "" {
		flawed(t, name)
		return
	}
	if testing.Short() || Race {
		t.Skip("starts a process for each case")
	}
	exe, err := os.Executable()
	if err != nil {
		t.Skipf("cannot start another process here: %v", err)
	}
	names := []string{"Long"}
	for _, c := range cases {
		names = append(names, c.name)
	}
	type result struct {
		out []byte
		err error
	}
	results := make([]chan result, len(names))
	few := make(chan struct{}, 4) // They wait more than they work.
	for i, name := range names {
		results[i] = make(chan result, 1)
		go func() {
			few <- struct{}{}
			defer func() { <-few }()
			args := []string{"-test.run=^TestFlaws$", "-test.v", "-test.timeout=2m"}
			if name != "Long" && name != "Storm" {
				args = append(args, "-test.short")
			}
			// Some flaws show by chance: they have a few chances.
			var r result
			for range 8 {
				cmd := exec.Command(exe, args...)
				cmd.Env = append(os.Environ(), flawEnv+"="+name)
				if r.out, r.err = cmd.CombinedOutput(); r.err != nil {
					break
				}
			}
			results[i] <- r
		}()
	}
	for i, name := range names {
		t.Run(name, func(t *testing.T) {
			r := <-results[i]
			out := string(r.out)
			switch {
			case out == "" && r.err != nil:
				t.Skipf("cannot start another process here: %v", r.err)
			case r.err == nil:
				t.Errorf("the case passes over an engine with a flaw:\n%s", out)
			case !strings.Contains(out, "=== RUN   TestFlaws/"+name):
				t.Errorf("the case did not run: %v\n%s", r.err, out)
			}
		})
	}
}

// flawed runs the named case over package time with a flaw.
func flawed(t *testing.T, name string) {
	patience = time.Second
	e := Time()
	e.Heavy = false
	spoil := shownBy[name]
	if spoil == nil {
		t.Fatalf("no flaw is known that shows that %s can fail", name)
	}
	e.goroutines = runtime.NumGoroutine()
	spoil(&e)
	if name == "Long" {
		t.Run(name, startLong(e).check)
		return
	}
	for _, c := range cases {
		if c.name == name {
			t.Run(name, func(t *testing.T) { c.test(t, e) })
		}
	}
}
