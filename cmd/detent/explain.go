package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/detent-go/detent/cmd/internal/explain"
	"github.com/detent-go/detent/probe"
)

// explainFlags are what the user chose.
type explainFlags struct {
	duration time.Duration
	json     bool
}

func newExplain() *cobra.Command {
	var f explainFlags
	cmd := &cobra.Command{
		Use:   "explain PID",
		Short: "Say why a process's clock is slow or its timers are late, and what to do",
		Long: fmt.Sprintf(`Say why a process's clock is slow or its timers are late, and what to do.

It watches the process with eBPF, measures this machine's clocks, and joins the two:
the symptom, the root cause with its evidence, the remedy. It needs root and
Linux. The process is not stopped, and what it is slowed by is told: a
microsecond or less for each of its timers and system calls for the time.

Exit status: %d nothing worse than a notice, %d a warning, %d a critical fault,
%d explain failed, %d wrong usage, %d interrupted.`,
			exitOK, exitWarning, exitCritical, exitFailed, exitUsage, exitInterrupted),
		Example: `  detent explain 4711
  detent explain $(pidof server) --json | jq .verdict`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			pid, err := strconv.Atoi(args[0])
			if err != nil || pid <= 0 {
				return fmt.Errorf("invalid process id %q", args[0])
			}
			if f.duration < 100*time.Millisecond {
				return fmt.Errorf("invalid argument %v for --duration: it has to be 100ms or more", f.duration)
			}
			return f.run(cmd.Context(), pid, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	fs := cmd.Flags()
	fs.DurationVar(&f.duration, "duration", 5*time.Second, "how long the process is watched")
	fs.BoolVar(&f.json, "json", false, "write JSON instead of text")
	return cmd
}

func (f *explainFlags) run(ctx context.Context, pid int, stdout, stderr io.Writer) error {
	ctx, stop := interruptible(ctx)
	defer stop()
	o := explain.Options{PID: pid, Watch: f.duration}
	if isTerminal(stderr) {
		o.Progress = func(what string) { fmt.Fprintf(stderr, "%s ...\n", what) }
	}
	report, err := explain.Run(ctx, o)
	switch {
	case errors.Is(context.Cause(ctx), errInterrupted):
		return &exitError{exitInterrupted, errInterrupted}
	case err != nil:
		return &exitError{exitFailed, err}
	}
	if f.json {
		err = explain.WriteJSON(stdout, report)
	} else {
		width, color := screen(stdout)
		err = explain.WriteText(stdout, report, width, color)
	}
	switch {
	case err != nil:
		return &exitError{exitFailed, fmt.Errorf("writing the report: %w", err)}
	case report.Worst == probe.Critical:
		return &exitError{code: exitCritical}
	case report.Worst == probe.Warning:
		return &exitError{code: exitWarning}
	}
	return nil
}
