package probe

import (
	"errors"
	"fmt"

	"github.com/detent-go/detent/clock"
	"github.com/detent-go/detent/internal/vdso"
)

// measurable returns why nothing can be measured on this process: nil if it can.
func (e *Env) measurable() error {
	if err := e.own(); err != nil {
		return err
	}
	return clockStopped()
}

// clockStopped returns why the clock of this process stands still: nil if it does
// not. A measurement would not come to an end then, nor would the Go scheduler
// preempt or wake what it should.
func clockStopped() error {
	if _, err := vdso.Image(); !errors.Is(err, vdso.ErrNoImage) {
		return nil
	}
	// The system call is all that there is.
	if _, err := vdso.Syscall(int32(clock.Mono)); err != nil {
		return fmt.Errorf("the clock stands still: %w, and the process has no vDSO", err)
	}
	return nil
}
