// Package watch shows what package trace sees to people and to other programs: live
// at a terminal, as text, and as a stream of JSON.
//
// Text and live view have the same tables, made by [Tables] of the difference
// between two snapshots: who makes system calls to read a clock, how late timers
// are and where that comes from, and who wakes the machine. The rows of a table
// are in order of what they cost.
package watch
