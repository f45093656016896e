package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"regexp"
	"runtime"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/detent-go/detent/cmd/internal/bench"
)

// benchFlags are what the user chose.
type benchFlags struct {
	full     bool
	json     bool
	list     bool
	run      string
	rounds   int
	procs    int
	progress string
	timeout  time.Duration

	scenarios []bench.Scenario // those that run selects
}

func newBench() *cobra.Command {
	var f benchFlags
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Measure package time and detent side by side on this machine",
		Long: `Measure package time and detent side by side on this machine.

Each comparison is made several times, package time and detent in turn, each in
a process of its own. The table shows where detent is better, where it is not,
and how sure that is. Ctrl-C ends it and shows what has been measured so far.`,
		Example: `  detent bench
  detent bench --run 'sleep|load'
  detent bench --full --json > bench.json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cmd.Flags().Changed("rounds") && f.rounds < 1 {
				return fmt.Errorf("invalid argument %d for --rounds: it has to be 1 or more", f.rounds)
			}
			if err := f.check(); err != nil {
				return err
			}
			if f.list {
				return writeList(cmd.OutOrStdout(), f.scenarios)
			}
			return f.measure(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	fs := cmd.Flags()
	fs.BoolVar(&f.full, "full", false, "the long form: ten million pending timers, longer windows, more rounds; minutes, and gigabytes")
	fs.BoolVar(&f.json, "json", false, "write JSON instead of the table")
	fs.BoolVar(&f.list, "list", false, "list the scenarios and end")
	fs.StringVar(&f.run, "run", "", "only the scenarios whose names match this `regexp`")
	fs.IntVar(&f.rounds, "rounds", 0,
		fmt.Sprintf("how often each comparison is made (default %d, with --full %d)", bench.Short().Rounds, bench.Long().Rounds))
	fs.IntVar(&f.procs, "procs", runtime.GOMAXPROCS(0), "GOMAXPROCS of what is measured")
	fs.StringVar(&f.progress, "progress", "auto", "what is written to stderr meanwhile: auto (live on a terminal, plain elsewhere), plain or none")
	fs.DurationVar(&f.timeout, "timeout", 0, "end after this `duration` and show what has been measured (default none)")
	cmd.AddCommand(newBenchWorker())
	return cmd
}

// newBenchWorker is what bench starts for each process that measures.
func newBenchWorker() *cobra.Command {
	return &cobra.Command{
		Use:    "worker ENGINE",
		Short:  "Serve measurements on stdin and stdout",
		Args:   cobra.ExactArgs(1),
		Hidden: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			// Ctrl-C reaches all processes of the terminal; when to end is the
			// parent's business.
			signal.Ignore(os.Interrupt)
			if err := bench.Serve(args[0], cmd.InOrStdin(), cmd.OutOrStdout()); err != nil {
				return &exitError{exitFailed, err}
			}
			return nil
		},
	}
}

// check finds what is wrong with the flags, and the scenarios they select.
func (f *benchFlags) check() error {
	var re *regexp.Regexp
	if f.run != "" {
		var err error
		if re, err = regexp.Compile(f.run); err != nil {
			return fmt.Errorf("invalid argument %q for --run: %w", f.run, err)
		}
	}
	var err error
	if f.scenarios, err = bench.Select(re); err != nil {
		return err
	}
	switch {
	case f.procs < 1:
		return fmt.Errorf("invalid argument %d for --procs: it has to be 1 or more", f.procs)
	case f.timeout < 0:
		return fmt.Errorf("invalid argument %v for --timeout: it has to be positive", f.timeout)
	}
	switch f.progress {
	case "auto", "plain", "none":
		return nil
	}
	return fmt.Errorf("invalid argument %q for --progress: it has to be auto, plain or none", f.progress)
}

func writeList(w io.Writer, scenarios []bench.Scenario) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, sc := range scenarios {
		fmt.Fprintf(t, "%s\t%s\n", sc.Name, sc.Title)
	}
	return t.Flush()
}

var (
	errInterrupted = errors.New("interrupted")
	errTimeout     = errors.New("--timeout is over")
)

// measure runs what the flags select and writes the report.
func (f *benchFlags) measure(ctx context.Context, stdout, stderr io.Writer) error {
	exe, err := os.Executable()
	if err != nil {
		return &exitError{exitFailed, fmt.Errorf("finding the program to start the workers: %w", err)}
	}
	ctx, stop := interruptible(ctx)
	defer stop()
	if f.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, f.timeout, errTimeout)
		defer cancel()
	}
	plan := bench.Short()
	if f.full {
		plan = bench.Long()
	}
	cfg := bench.Config{
		Plan:      plan.WithRounds(f.rounds),
		Procs:     f.procs,
		Scenarios: f.scenarios,
		Spawn:     bench.Processes(exe, "bench", "worker"),
	}
	if f.progress == "none" {
		return f.write(bench.Run(ctx, cfg), stdout)
	}
	p := bench.NewProgress(stderr, f.progress == "auto" && isTerminal(stderr))
	cfg.Progress = p.Show
	report := bench.Run(ctx, cfg)
	p.Close() // before the table: both may go to the same terminal
	return f.write(report, stdout)
}

// write shows the report and says how the run went.
func (f *benchFlags) write(report *bench.Report, stdout io.Writer) error {
	var err error
	if f.json {
		err = report.WriteJSON(stdout)
	} else {
		err = report.WriteTable(stdout, isTerminal(stdout) && os.Getenv("NO_COLOR") == "")
	}
	switch {
	case err != nil:
		return &exitError{exitFailed, fmt.Errorf("writing the report: %w", err)}
	case report.Stopped == errInterrupted.Error():
		return &exitError{exitInterrupted, errInterrupted}
	case report.Stopped != "":
		return &exitError{exitFailed, errors.New("stopped: " + report.Stopped)}
	case report.Failed() > 0:
		return &exitError{exitFailed, fmt.Errorf("%d of the measurements failed", report.Failed())}
	}
	return nil
}

// interruptible is ctx until the user ends the program. A second signal ends
// it at once.
func interruptible(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		select {
		case <-signals:
			signal.Stop(signals)
			cancel(errInterrupted)
		case <-ctx.Done():
		}
	}()
	return ctx, func() {
		signal.Stop(signals)
		cancel(nil)
	}
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}
