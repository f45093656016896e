// Package explain says what is wrong with one process's clocks and timers: the
// symptom, what it was concluded from, the root cause, and the remedy. It joins what
// package trace sees of the process with what package probe measures of the machine.
//
// The judgement, [Judge], is a function of [Facts] alone. Its findings have IDs
// that begin with "explain.", and docs/explain.md tells of each. A process is at fault
// for what it does, and a victim of what the machine does to it: both are findings,
// and they say which it is.
//
// A healthy process has no finding above probe.Info, also on a machine that is not.
package explain
