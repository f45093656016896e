package main

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"
)

// The exit codes. Whatever is wrong with the command line is exitUsage.
const (
	exitOK          = 0
	exitFailed      = 1
	exitUsage       = 2
	exitInterrupted = 130 // as the shell has it for a process ended by SIGINT
)

// An exitError ends the program with its code, after the message of err if there
// is one.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit status %d", e.code)
	}
	return e.err.Error()
}
func (e *exitError) Unwrap() error { return e.err }

// execute runs the command line and returns the exit code.
func execute(args []string, stdout, stderr io.Writer) int {
	root := newRoot()
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	cmd, err := root.ExecuteC()
	if err == nil {
		return exitOK
	}
	var e *exitError
	if errors.As(err, &e) {
		if e.err != nil {
			fmt.Fprintf(stderr, "detent: %v\n", e.err)
		}
		return e.code
	}
	fmt.Fprintf(stderr, "detent: %v\n", err)
	fmt.Fprintf(stderr, "Run '%s --help' for what there is.\n", cmd.CommandPath())
	return exitUsage
}

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:           "detent",
		Short:         "Timers and timekeeping on this machine",
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.CompletionOptions.HiddenDefaultCmd = true
	root.AddCommand(
		newAccuracy(),
		newBench(),
		newClock(),
		newDoctor(),
		newExplain(),
		newLab(),
		newServe(),
		newSleep(),
		newTrace(),
	)
	return root
}
