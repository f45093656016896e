//go:build linux && !detent_portable

package tsc

func frequency() uint64

// Check returns nil: the architecture promises a counter of constant rate that
// is one for all CPUs. Where a CPU breaks the promise (the errata of some), the
// kernel traps the instruction and corrects the value.
func Check() error { return nil }

// Stated returns the counter's frequency as the machine states it, and where.
func Stated() (hz float64, source string) { return float64(frequency()), "CNTFRQ_EL0" }
