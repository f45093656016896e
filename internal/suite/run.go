package suite

import (
	"runtime"
	"slices"
	"testing"
)

// cases are the tests of the suite, in the order in which they run.
var cases = []struct {
	name string
	test func(t *testing.T, e Engine)
}{
	{"NeverEarly", testNeverEarly},
	{"NeverEarlyUnderLoad", testNeverEarlyUnderLoad},
	{"ZeroAndNegative", testZeroAndNegative},
	{"Huge", testHuge},
	{"EarlierDeadlineWins", testEarlierDeadlineWins},
	{"ManyStarters", testManyStarters},
	{"SurvivesCollection", testSurvivesCollection},

	{"StopPending", testStopPending},
	{"StopAfterFire", testStopAfterFire},
	{"StopRacingExpiry", testStopRacingExpiry},
	{"StopRacingStops", testStopRacingStops},
	{"StopHalf", testStopHalf},

	{"ResetEarlier", testResetEarlier},
	{"ResetLater", testResetLater},
	{"ResetPushBack", testResetPushBack},
	{"ResetSameSlot", testResetSameSlot},
	{"ResetAfterFire", testResetAfterFire},
	{"ResetAfterStop", testResetAfterStop},
	{"ResetAcrossLevels", testResetAcrossLevels},

	{"NoStaleValueAfterStop", testNoStaleValueAfterStop},
	{"NoStaleValueAfterReset", testNoStaleValueAfterReset},
	{"StopMeansNotReceived", testStopMeansNotReceived},
	{"ValueIsTheTime", testValueIsTheTime},
	{"SyncChannels", testSyncChannels},

	{"Misuse", testMisuse},
	{"NilCallback", testNilCallback},

	{"TickerSchedule", testTickerSchedule},
	{"TickerDrops", testTickerDrops},
	{"TickerStop", testTickerStop},
	{"TickerReset", testTickerReset},
	{"TickerHuge", testTickerHuge},
	{"TickerConcurrent", testTickerConcurrent},
	{"TickerCollected", testTickerCollected},

	{"CallbackOwnTimer", testCallbackOwnTimer},
	{"CallbackOtherTimers", testCallbackOtherTimers},
	{"CallbackStopEachOther", testCallbackStopEachOther},
	{"CallbackSleeps", testCallbackSleeps},
	{"CallbackGoexit", testCallbackGoexit},
	{"CallbackBlocks", testCallbackBlocks},
	{"CallbackBlocks1500", testCallbackBlocks1500},
	{"CallbackSlow", testCallbackSlow},
	{"CallbackSpins", testCallbackSpins},

	{"ConserveFuncs", testConserveFuncs},
	{"ConserveChannels", testConserveChannels},
	{"ConserveHot", testConserveHot},

	{"Storm", testStorm},
	{"Sleepers", testSleepers},

	{"NothingLeft", testNothingLeft},
}

// Run runs the suite over e, as a subtest with the engine's name.
func Run(t *testing.T, e Engine) {
	t.Run(e.Name, func(t *testing.T) {
		for c, why := range e.Lacks {
			if !slices.Contains(capabilities, c) {
				t.Fatalf("no such capability: %q", c)
			}
			t.Logf("lacks %q: %s", c, why)
		}
		e.goroutines = runtime.NumGoroutine()
		long := startLong(e)
		for _, c := range cases {
			t.Run(c.name, func(t *testing.T) { c.test(t, e) })
		}
		t.Run("Long", long.check)
	})
}
