//go:build linux && (amd64 || arm64) && !detent_portable

package tsc

// Supported says that this build reads a counter.
const Supported = true

// Ordered returns the counter at a moment after every earlier instruction of
// the thread has been carried out: after another CPU's reading has been seen,
// Ordered is not below it, if the CPUs' counters are in step.
//
// It is safe on every machine, but orders only after [Check] has been called.
func Ordered() uint64

// Unordered returns the counter at about this moment: the CPU may read it early
// or late, and out of step with reads and writes of memory.
func Unordered() uint64

// Fence lets no later instruction begin before all earlier ones, readings of a
// clock among them, have been carried out.
func Fence()
