//go:build !linux

package atexec

import (
	"errors"
	"fmt"
	"os/exec"
	"runtime"
)

// A Held command is stopped at its exec until Resume.
type Held struct{}

// Start returns an error: only Linux holds a command at its exec.
func Start(*exec.Cmd) (*Held, error) {
	return nil, fmt.Errorf("holding a command at its exec on %s: %w", runtime.GOOS, errors.ErrUnsupported)
}

// PID is the process id of the held command.
func (*Held) PID() int { return 0 }

// Resume lets the command run.
func (*Held) Resume() error { return errors.ErrUnsupported }

// AwaitEnd returns when the command has ended.
func (*Held) AwaitEnd() error { return errors.ErrUnsupported }

// HideAux overwrites entries of the auxiliary vector.
func (*Held) HideAux(uint64) error { return errors.ErrUnsupported }
