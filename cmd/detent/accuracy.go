package main

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/detent-go/detent/cmd/internal/accuracy"
)

// accuracyFlags are what the user chose.
type accuracyFlags struct {
	quick    bool
	json     bool
	markdown bool
}

func newAccuracy() *cobra.Command {
	var f accuracyFlags
	cmd := &cobra.Command{
		Use:   "accuracy",
		Short: "Measure how late each way to wait is, by slack and load",
		Long: fmt.Sprintf(`Measure how late each way to wait is, by slack and load.

Sleeps of package time, of package timer with several slacks, and of lanes are
measured in turn, while nothing else runs and while the Go scheduler is busy in
three ways; then rate limiters wait by them. It takes about %v, or %v with
--quick. Ctrl-C ends it and shows what has been measured so far.`,
			accuracy.Full().Takes().Round(time.Second), accuracy.Quick().Takes().Round(time.Second)),
		Example: `  detent accuracy --quick
  detent accuracy --markdown > docs/accuracy.md`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.measure(cmd) },
	}
	fs := cmd.Flags()
	fs.BoolVar(&f.quick, "quick", false, "one short round of each")
	fs.BoolVar(&f.json, "json", false, "write JSON instead of the tables")
	fs.BoolVar(&f.markdown, "markdown", false, "write the page docs/accuracy.md instead")
	cmd.MarkFlagsMutuallyExclusive("json", "markdown")
	return cmd
}

func (f *accuracyFlags) measure(cmd *cobra.Command) error {
	ctx, stop := interruptible(cmd.Context())
	defer stop()
	plan := accuracy.Full()
	if f.quick {
		plan = accuracy.Quick()
	}
	stderr := cmd.ErrOrStderr()
	report, err := accuracy.Run(ctx, plan, func(what string) { fmt.Fprintln(stderr, "measuring:", what) })
	if err == nil {
		err = f.write(report, cmd.OutOrStdout())
	}
	switch {
	case err != nil:
		return &exitError{exitFailed, err}
	case report.Stopped == errInterrupted.Error():
		return &exitError{exitInterrupted, errInterrupted}
	case report.Stopped != "":
		return &exitError{exitFailed, errors.New("stopped: " + report.Stopped)}
	case report.Early() > 0:
		return &exitError{exitFailed, fmt.Errorf("%d sleeps ended early", report.Early())}
	}
	return nil
}

func (f *accuracyFlags) write(r *accuracy.Report, w io.Writer) error {
	switch {
	case f.json:
		return r.WriteJSON(w)
	case f.markdown:
		return r.WriteMarkdown(w)
	}
	return r.WriteText(w)
}
