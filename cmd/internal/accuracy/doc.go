// Package accuracy measures how late each way to wait is, by slack and by what
// else the Go scheduler has to do, and what rate limiters make of it.
//
// The ways are measured in turn, in rounds, under each load, so that they can be
// compared however busy the machine is. What comes out is the table of promises
// in docs/accuracy.md.
package accuracy
