// Package tsc reads the CPU's cycle counter, the source clock: the TSC of amd64
// and the virtual counter CNTVCT_EL0 of arm64. It has what is needed to make a
// clock of it, and decides nothing: package clock does.
//
//   - Reading: [Ordered], [Unordered], [Fence]. Assembly.
//   - What the machine says of the counter: [Check], [Stated].
//   - Arithmetic on readings, without any reading of its own: [Fit] finds the
//     frequency; a [Tracker] turns samples of counter and reference clock into
//     the [Line] by which readings are scaled, and bounds its error.
//   - [CompareCPUs] looks for counters that are not in step; [Converse] gives
//     what it goes by, for any two CPUs.
//   - [Parts] takes a time.Time apart and puts one together.
//
// Where [Supported] is false (other architectures and systems, the build tag
// detent_portable) the counter reads 0 and Check returns an error.
package tsc
