// Package suite is the behaviour that every engine of package timer must have,
// written once and run over each of them and over package time.
//
// It imports nothing of detent. An engine is handed in as an [Engine], a table
// of functions in package time's own names, so that the same test reads the
// same whichever engine stands behind it. That package time passes is what
// shows the tests to be right; what an engine does otherwise than package time
// stands in its [Engine.Lacks] with the reason, and is logged at each run.
//
// # What is asserted
//
// Only what is true on a machine however busy: no timer is early by the
// monotonic clock, each fires once unless it was stopped, Stop says true exactly
// when the function will not run, nothing is left in a channel by Stop or Reset.
// "It fires" is asserted with a patience of a minute ([patience]). How late
// something was is logged, never asserted.
//
// # What other timer wheels for Go get wrong
//
// Each of these was seen in a published wheel, and each is a test here: timers
// that fire early, more so under load; no usable result of Stop; a deadlock when
// a timer is reset into its own slot, when two stops meet, at the second Stop; a
// panic at a Stop after firing, at a second Stop, at a zero duration; 1<<63-1
// that fires at once; a callback that blocks and stalls the wheel, or 1,500 of
// them that do; timers lost in a storm; goroutines without bound in a storm.
package suite
