package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/detent-go/detent/cmd/internal/doctor"
	"github.com/detent-go/detent/probe"
)

// clockFlags are what the user chose.
type clockFlags struct {
	quick, thorough bool
	json            bool
}

func newClock() *cobra.Command {
	var f clockFlags
	cmd := &cobra.Command{
		Use:   "clock",
		Short: "Show what each clock costs to read on this machine, how fine it is, and its error bound",
		Long: `Show what each clock costs to read on this machine, how fine it is, and its error bound.

The clocks are package time's, package clock's, and the kernel's that only a system
call reads. Each is read in turn with the system call for the same clock: one that
costs as much makes it. The least of all rounds is what a reading takes when
nothing disturbs it, so that it is right on a busy machine too.`,
		Example: `  detent clock
  detent clock --json | jq '.clocks[] | {name, cost}'`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd) },
	}
	fs := cmd.Flags()
	fs.BoolVar(&f.quick, "quick", false, "fewer rounds: a fifth of a second")
	fs.BoolVar(&f.thorough, "thorough", false, "more rounds: some seconds")
	fs.BoolVar(&f.json, "json", false, "write JSON instead of the table")
	cmd.MarkFlagsMutuallyExclusive("quick", "thorough")
	return cmd
}

func (f *clockFlags) run(cmd *cobra.Command) error {
	surviveWithoutClock()
	ctx, stop := interruptible(cmd.Context())
	defer stop()
	report, err := probe.Run(ctx, probe.Options{Effort: effort(f.quick, f.thorough), Checks: []string{"clocks"}})
	if e := writeMeasured(cmd.OutOrStdout(), "detent.clock/1", report, f.json); e != nil {
		return &exitError{exitFailed, e}
	}
	return ended(ctx, err)
}

// effort is what the flags --quick and --thorough stand for.
func effort(quick, thorough bool) probe.Effort {
	switch {
	case quick:
		return probe.Quick
	case thorough:
		return probe.Thorough
	}
	return probe.Normal
}

// ended is the error of a command that has shown its report, whose measuring has
// ended with err.
func ended(ctx context.Context, err error) error {
	switch {
	case errors.Is(context.Cause(ctx), errInterrupted):
		return &exitError{exitInterrupted, errInterrupted}
	case err != nil:
		return &exitError{exitFailed, err}
	}
	return nil
}

// writeMeasured shows a report of a single check. As JSON it is the check's data,
// with the machine and the findings.
func writeMeasured(stdout io.Writer, schema string, r *probe.Report, asJSON bool) error {
	if !asJSON {
		width, color := screen(stdout)
		return doctor.WriteMeasured(stdout, r, width, color)
	}
	form := map[string]any{}
	for _, result := range r.Results {
		if result.Data != nil {
			b, err := json.Marshal(result.Data)
			if err != nil {
				return err
			}
			fields := map[string]json.RawMessage{}
			if err := json.Unmarshal(b, &fields); err != nil {
				return fmt.Errorf("%T is no JSON object: %w", result.Data, err)
			}
			for name, field := range fields {
				form[name] = field
			}
		}
		if result.Err != nil {
			form["error"] = result.Err.Error()
		}
	}
	form["schema"], form["machine"] = schema, r.Machine
	if findings := r.Findings(); len(findings) > 0 {
		form["findings"] = findings
	}
	enc := json.NewEncoder(stdout)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	return enc.Encode(form)
}

// screen is how wide lines may be, and whether they may have colours.
func screen(stdout io.Writer) (width int, color bool) {
	width = 100
	file, ok := stdout.(*os.File)
	if !ok || !isTerminal(stdout) {
		return width, false
	}
	if w, _, err := term.GetSize(int(file.Fd())); err == nil {
		width = min(w, 120)
	}
	return width, os.Getenv("NO_COLOR") == ""
}
