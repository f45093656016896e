package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/detent-go/detent/clock"
	"github.com/detent-go/detent/cmd/internal/doctor"
	"github.com/detent-go/detent/probe"
)

// The exit codes of doctor for what it found.
const (
	exitWarning  = 3
	exitCritical = 4
)

// doctorFlags are what the user chose.
type doctorFlags struct {
	quick, thorough bool
	json            bool
	html            string
	checks          []string
	list            bool
	root            string
	progress        string
}

func newDoctor() *cobra.Command {
	var f doctorFlags
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Say what is wrong with this machine's timekeeping, and what to do",
		Long: fmt.Sprintf(`Say what is wrong with this machine's timekeeping, and what to do.

The verdict comes first, then what was found, worst first, with the evidence and
the remedy, then what was measured, and what could not be seen. Nothing is
changed. It takes less than 15 seconds, 3 with --quick, minutes with --thorough; on a
machine too busy for that it says what it had no time for. Run it as root to see
more; it says what it could not see.

Exit status: %d nothing worse than a notice, %d a warning, %d a critical fault,
%d doctor failed, %d wrong usage, %d interrupted.`,
			exitOK, exitWarning, exitCritical, exitFailed, exitUsage, exitInterrupted),
		Example: `  detent doctor
  detent doctor --html report.html
  detent doctor --quick --json | jq .verdict`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd) },
	}
	fs := cmd.Flags()
	fs.BoolVar(&f.quick, "quick", false, "less than 3 seconds")
	fs.BoolVar(&f.thorough, "thorough", false, "minutes: rarer faults, finer figures")
	fs.BoolVar(&f.json, "json", false, "write JSON instead of text")
	fs.StringVar(&f.html, "html", "", "write a page with plots to this `file` too")
	fs.StringSliceVar(&f.checks, "checks", nil, "only these checks, by `name`, with commas between")
	fs.BoolVar(&f.list, "list", false, "list the checks and end")
	fs.StringVar(&f.root, "root", "", "look at the files of another machine, copied to this `directory` (proc, sys, boot, dev), instead of this one")
	fs.StringVar(&f.progress, "progress", "auto", "what is written to stderr meanwhile: auto (a line on a terminal, nothing elsewhere), plain or none")
	cmd.MarkFlagsMutuallyExclusive("quick", "thorough")
	return cmd
}

func (f *doctorFlags) run(cmd *cobra.Command) error {
	o := probe.Options{Checks: f.checks, Effort: effort(f.quick, f.thorough)}
	if f.list {
		return writeChecks(cmd.OutOrStdout())
	}
	if f.checks != nil && len(f.checks) == 0 {
		return errors.New("invalid argument for --checks: it has to name one at least; --list has them all")
	}
	if f.root != "" {
		if info, err := os.Stat(f.root); err != nil {
			return fmt.Errorf("invalid argument for --root: %w", err)
		} else if !info.IsDir() {
			return fmt.Errorf("invalid argument for --root: %s is not a directory", f.root)
		}
		o.Root = os.DirFS(f.root)
	}
	surviveWithoutClock()
	stderr := cmd.ErrOrStderr()
	clearLine, err := f.follow(&o, stderr)
	if err != nil {
		return err
	}
	ctx, stop := interruptible(cmd.Context())
	defer stop()
	report, err := probe.Run(ctx, o)
	clearLine()
	if report == nil {
		return err // The checks are not those that there are.
	}
	if e := f.write(report, cmd.OutOrStdout()); e != nil {
		return &exitError{exitFailed, e}
	}
	switch {
	case errors.Is(context.Cause(ctx), errInterrupted):
		return &exitError{exitInterrupted, errInterrupted}
	case err != nil:
		return &exitError{exitFailed, err}
	case report.Worst() == probe.Critical:
		return &exitError{code: exitCritical}
	case report.Worst() == probe.Warning:
		return &exitError{code: exitWarning}
	}
	return nil
}

// surviveWithoutClock lets this process go on where its clock does not: with neither a
// vDSO nor the system call the Go runtime takes for the time what happens to be in
// memory, and ends the process when the garbage collector has stopped it for less than
// no time. The report is to come first; its garbage is some megabytes.
func surviveWithoutClock() {
	if err := clock.Fallback(); err != nil && !errors.Is(err, errors.ErrUnsupported) && clock.Mono.Source() == clock.PackageTime {
		debug.SetGCPercent(-1)
	}
}

// follow has the progress written to stderr. The function that it returns takes
// the last line away again.
func (f *doctorFlags) follow(o *probe.Options, stderr io.Writer) (clearLine func(), err error) {
	clearLine = func() {}
	switch {
	case f.progress == "plain":
		o.Progress = func(p probe.Progress) {
			if p.Check != "" {
				fmt.Fprintf(stderr, "check %d of %d: %s\n", p.Done+1, p.Total, p.Check)
			}
		}
	case f.progress == "auto":
		if !isTerminal(stderr) {
			return clearLine, nil
		}
		width := 0
		show := func(line string) {
			fmt.Fprintf(stderr, "\r%s%s", line, strings.Repeat(" ", max(width-len(line), 0)))
			width = len(line)
		}
		o.Progress = func(p probe.Progress) {
			if p.Check != "" {
				show(fmt.Sprintf("%d of %d: %s, about %v left", p.Done+1, p.Total, p.Check, p.Left.Round(time.Second)))
			}
		}
		clearLine = func() { show(""); fmt.Fprint(stderr, "\r") }
	case f.progress != "none":
		return nil, fmt.Errorf("invalid argument %q for --progress: it has to be auto, plain or none", f.progress)
	}
	return clearLine, nil
}

func (f *doctorFlags) write(r *probe.Report, stdout io.Writer) error {
	if f.html != "" {
		var b bytes.Buffer
		if err := doctor.WriteHTML(&b, r); err != nil {
			return err
		}
		if err := os.WriteFile(f.html, b.Bytes(), 0o644); err != nil {
			return fmt.Errorf("writing the page: %w", err)
		}
	}
	if f.json {
		return doctor.WriteJSON(stdout, r)
	}
	width, color := screen(stdout)
	return doctor.WriteText(stdout, r, width, color)
}

func writeChecks(w io.Writer) error {
	for _, c := range probe.Checks() {
		if _, err := fmt.Fprintf(w, "%-14s %s\n", c.Name, c.About); err != nil {
			return err
		}
	}
	return nil
}
