// Package engine is what the lab's timer engines have in common: the small
// interface behind which each of them stands, and package time's face over it.
//
// A timer engine proper is a [Core]: start, stop, reset, a call when a timer is
// due, Close. That is also what the Go runtime offers to package time, and where
// the engines of different Go versions differ. [Over] puts the rest around a
// Core, once for all: AfterFunc, channels, Sleep, tickers, contexts. So a figure
// that differs between two cores differs for what they do, not for what their
// users' functions do.
//
// The face keeps the channel rules of Go 1.23 over every core, although the
// engines of the runtime had older ones: once Stop or Reset has returned, nothing
// from before is received. With them every engine passes the same test suite. A
// channel still has a buffer of one, as before Go 1.23.
//
// Package time, detent's own timers and libraries of other people stand beside
// the cores as an [Engine] each. Package engines has them all by name.
//
// The engines are here to be measured and read. For a program's timers use
// package time, or detent's package timer.
package engine
