package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/detent-go/detent/cmd/internal/labreport"
	"github.com/detent-go/detent/cmd/internal/machine"
	"github.com/detent-go/detent/lab"
)

// labFlags are what the user chose.
type labFlags struct {
	short    bool
	json     bool
	markdown bool
	html     string
	progress string
	change   bool // of the clocksource

	plan lab.Plan
}

func newLab() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "lab",
		Short: "Make the articles' experiments on this machine, and judge their claims",
		Long: `Make the articles' experiments on this machine, and judge their claims.

What public articles about Go's timers and clocks have printed stands beside what
is measured here, over engines that work as the Go runtime's did at the time, over
others that the articles set against them, and over package time and detent of
today. Each claim of the articles is confirmed, refuted, or not testable on this
machine, by the figures of the same run. What cannot be measured says why, and the
rest goes on. Ctrl-C ends a run and shows what has been measured so far.`,
		Example: `  detent lab list
  detent lab run lateness sleep
  detent lab all --short --html lab.html`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newLabList(), newLabRun(), newLabAll())
	return cmd
}

func newLabList() *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List the experiments, with about how long each takes",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return writeExperiments(cmd.OutOrStdout())
		},
	}
}

func newLabRun() *cobra.Command {
	var f labFlags
	cmd := &cobra.Command{
		Use:   "run NAME...",
		Short: "Make the experiments of these names",
		Example: `  detent lab run lateness
  detent lab run time context --short --json`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd, args) },
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
			return experimentNames(), cobra.ShellCompDirectiveNoFileComp
		},
	}
	f.add(cmd)
	return cmd
}

func newLabAll() *cobra.Command {
	var f labFlags
	cmd := &cobra.Command{
		Use:   "all",
		Short: "Make all experiments",
		Long: fmt.Sprintf(`Make all experiments. It takes about %v, or %v with --short, on an idle machine,
and gigabytes of memory without --short: what does not fit into what the machine and
its control groups leave is skipped, and says so. Nothing is changed on the machine,
unless --switch-clocksource lets one experiment try the other clocksources of the kernel.`, labTakes(lab.Full()), labTakes(lab.Short())),
		Example: `  detent lab all --short
  detent lab all --markdown > docs/lab.md`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd, nil) },
	}
	f.add(cmd)
	return cmd
}

// add adds the flags of what measures.
func (f *labFlags) add(cmd *cobra.Command) {
	fs := cmd.Flags()
	fs.BoolVar(&f.short, "short", false, "fewer rounds, and at most a million pending timers: a first look")
	fs.BoolVar(&f.json, "json", false, "write JSON instead of text")
	fs.BoolVar(&f.markdown, "markdown", false, "write Markdown instead of text: the page docs/lab.md")
	fs.StringVar(&f.html, "html", "", "write a page with plots to this `file` too")
	fs.StringVar(&f.progress, "progress", "auto", "what is written to stderr meanwhile: auto (a line on a terminal, plain elsewhere), plain or none")
	fs.BoolVar(&f.change, "switch-clocksource", false, "let the experiment clocksources change the kernel's clocksource, for everybody on the machine, and put it back; as root")
	cmd.MarkFlagsMutuallyExclusive("json", "markdown")
}

func (f *labFlags) run(cmd *cobra.Command, names []string) error {
	if _, err := lab.Select(names); err != nil {
		return fmt.Errorf("%w; there are %s", err, strings.Join(experimentNames(), ", "))
	}
	stderr := cmd.ErrOrStderr()
	show, clearLine, err := f.follow(stderr)
	if err != nil {
		return err
	}
	ctx, stop := interruptible(cmd.Context())
	defer stop()
	host := machine.Read() // before the experiments set GOMAXPROCS
	stdout := cmd.OutOrStdout()
	if stdout == os.Stdout {
		// One of the libraries that are measured prints what it wonders about: that is
		// no part of the report.
		os.Stdout = os.Stderr
	}
	report, err := lab.Run(ctx, lab.Options{Plan: f.choose(), Names: names, Progress: show})
	clearLine()
	if err == nil {
		err = f.write(labreport.Report{Machine: host, Report: report}, stdout)
	}
	switch {
	case err != nil:
		return &exitError{exitFailed, err}
	case report.Stopped == errInterrupted.Error():
		return &exitError{exitInterrupted, errInterrupted}
	case report.Stopped != "":
		return &exitError{exitFailed, errors.New("stopped: " + report.Stopped)}
	}
	return nil
}

// choose returns the plan; a test has its own.
func (f *labFlags) choose() lab.Plan {
	p := lab.Full()
	switch {
	case f.plan.Rounds > 0:
		p = f.plan
	case f.short:
		p = lab.Short()
	}
	p.Switch = f.change
	return p
}

// follow returns what shows the progress on stderr, and what takes its last line away
// again.
func (f *labFlags) follow(stderr io.Writer) (show func(lab.Progress), clearLine func(), err error) {
	clearLine = func() {}
	step := func(p lab.Progress) string {
		return fmt.Sprintf("experiment %d of %d: %s, about %v left", p.Done+1, p.Total, p.Experiment, p.Left.Round(time.Second))
	}
	switch f.progress {
	case "auto":
		if isTerminal(stderr) {
			width := 0
			line := func(s string) {
				fmt.Fprintf(stderr, "\r%s%s", s, strings.Repeat(" ", max(width-len(s), 0)))
				width = len(s)
			}
			show = func(p lab.Progress) {
				if p.Experiment != "" {
					line(step(p))
				}
			}
			return show, func() { line(""); fmt.Fprint(stderr, "\r") }, nil
		}
		fallthrough
	case "plain":
		show = func(p lab.Progress) {
			if p.Experiment != "" {
				fmt.Fprintln(stderr, step(p))
			}
		}
	case "none":
	default:
		return nil, nil, fmt.Errorf("invalid argument %q for --progress: it has to be auto, plain or none", f.progress)
	}
	return show, clearLine, nil
}

func (f *labFlags) write(r labreport.Report, stdout io.Writer) error {
	if f.html != "" {
		var b bytes.Buffer
		if err := r.WriteHTML(&b); err != nil {
			return err
		}
		if err := os.WriteFile(f.html, b.Bytes(), 0o644); err != nil {
			return fmt.Errorf("writing the page: %w", err)
		}
	}
	switch {
	case f.json:
		return r.WriteJSON(stdout)
	case f.markdown:
		return r.WriteMarkdown(stdout)
	}
	width, color := screen(stdout)
	return r.WriteText(stdout, width, color)
}

func writeExperiments(w io.Writer) error {
	for _, e := range lab.Experiments() {
		if _, err := fmt.Fprintf(w, "%-12s %s (about %v, %v with --short)\n", e.Name, e.Title,
			about(e.Takes(lab.Full())), about(e.Takes(lab.Short()))); err != nil {
			return err
		}
	}
	return nil
}

func experimentNames() (names []string) {
	for _, e := range lab.Experiments() {
		names = append(names, e.Name)
	}
	return names
}

// labTakes is about how long a plan takes.
func labTakes(p lab.Plan) time.Duration {
	var sum time.Duration
	for _, e := range lab.Experiments() {
		sum += e.Takes(p)
	}
	return about(sum)
}

// about rounds a duration to what an estimate is good for.
func about(d time.Duration) time.Duration {
	if d < time.Minute {
		return max(d.Round(time.Second), time.Second)
	}
	return d.Round(10 * time.Second)
}
