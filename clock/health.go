package clock

import (
	"errors"
	"time"
)

// ErrCalibrating is [Health.Err] for the first 20 ms of use, and again after trust
// has come back.
var ErrCalibrating = errors.New("the counter is being measured")

// Health is the state of a [TSC].
type Health struct {
	// Trusted says that readings are of the counter. Otherwise they are of the
	// kernel's clock, and Err says why.
	Trusted bool
	Err     error

	// Frequency is the counter's, in Hz, and FrequencyBy says how it was found:
	// stated by the machine and confirmed, or measured by CLOCK_MONOTONIC_RAW,
	// first over 20 ms, then over longer times of use until it is certain. 0
	// until it is known. Readings do not depend on it: they follow Mono.
	Frequency   float64
	FrequencyBy string

	// Compared is the number of CPUs whose counters have been compared with
	// that of the first CPU, of Others that could have been. Offset is how far
	// apart any of them may be from it: messages take so long that no smaller
	// one could be told from none.
	Compared, Others int
	Offset           time.Duration

	// Lines counts how often the scale has been set anew, and Fallbacks how
	// often trust was lost after it had been gained.
	Lines, Fallbacks uint64

	// Jumps counts the times that counter and kernel's clock were found further
	// apart than any steering of the clock explains: after a suspend, a live
	// migration, a pause of the virtual machine. Excess counts the smaller ones
	// that were still beyond the stated bound, and Worst is the largest
	// distance from the kernel's clock that was found at the end of a line,
	// jumps aside.
	Jumps, Excess uint64
	Worst         time.Duration
}
