package timer

import "github.com/detent-go/detent/internal/shard"

// SetProfileFraction controls the profile of pending timers, which tells who made
// them: on average one of n timers is in it from when it is started until it has
// fired or been stopped, with the stack that started it. An n of 1 samples all
// timers; 0, the default, none; less than 0 changes nothing. It holds for all
// services of the program. SetProfileFraction returns the previous n.
//
// The profile is one of package runtime/pprof, named "detent.timer", which is there
// once SetProfileFraction has been called with an n above 0. So it is served by
// net/http/pprof, too:
//
//	timer.SetProfileFraction(100)
//	...
//	go tool pprof http://localhost:6060/debug/pprof/detent.timer
//
// It counts samples: each stands for n timers. Functions of this package are left
// out, so that it begins with the caller. A timer that is reset while it is pending
// stays what it was, mostly; one that is reset afterwards, or to be due within a
// microsecond, is started anew, by the caller of Reset.
//
// Included are timers, tickers, sleeps and the timers of contexts, of all services.
// Not included are the values of a [Queue], which are told apart by what they are,
// timers made in a synctest bubble, and those that were due when they were started.
// Timers that have been started before count from when they are started again.
//
// While the profile is off it costs nothing that could be measured. To start and
// end a timer that is sampled takes some 4 microseconds more, and 640 bytes while it
// is pending (go test -bench Profile in this package); both wait while the profile
// is copied to be written. So choose n for some thousands of timers to be in it.
func SetProfileFraction(n int) (previous int) { return shard.ProfileFraction(n) }
