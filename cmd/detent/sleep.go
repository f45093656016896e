package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/detent-go/detent/probe"
)

// sleepFlags are what the user chose.
type sleepFlags struct {
	count    int
	time     time.Duration
	ways     []string
	busy     bool
	json     bool
	progress string
}

func newSleep() *cobra.Command {
	var f sleepFlags
	cmd := &cobra.Command{
		Use:   "sleep [DURATION]",
		Short: "Show how late sleeps of a duration end on this machine, for each way to sleep",
		Long: fmt.Sprintf(`Show how late sleeps of a duration end on this machine, for each way to sleep.

The default duration is 50us. The ways of this system are: %s.
They take turns, so that what disturbs one for a while disturbs all of them. Figures
are by how much longer than requested a sleep took. Ctrl-C ends it and shows what has
been measured so far.`, strings.Join(probe.SleepNames(), "; ")),
		Example: `  detent sleep
  detent sleep 1ms --busy
  detent sleep 200us --way time.Sleep --way timer.Sleep --json`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			o, err := f.options(args)
			if err != nil {
				return err
			}
			return f.run(cmd, o)
		},
	}
	fs := cmd.Flags()
	fs.IntVarP(&f.count, "count", "n", 1000, "how many sleeps are made in each way")
	fs.DurationVar(&f.time, "time", 2*time.Second, "how long each way is given at most: slow ones make fewer sleeps")
	fs.StringArrayVar(&f.ways, "way", nil, "only this `way` to sleep; can be given several times")
	fs.BoolVar(&f.busy, "busy", false, "also while one goroutine a P spins")
	fs.BoolVar(&f.json, "json", false, "write JSON instead of the table and the histograms")
	fs.StringVar(&f.progress, "progress", "auto", "what is written to stderr meanwhile: auto (a line on a terminal, nothing elsewhere), plain or none")
	return cmd
}

// options finds what is wrong with the arguments.
func (f *sleepFlags) options(args []string) (probe.SleepOptions, error) {
	o := probe.SleepOptions{Requested: 50 * time.Microsecond, Count: f.count, Time: f.time, Ways: f.ways}
	if len(args) > 0 {
		d, err := time.ParseDuration(args[0])
		if err != nil {
			return o, fmt.Errorf("invalid argument %q: it has to be a duration like 50us", args[0])
		}
		o.Requested = d
	}
	if f.busy {
		o.Loads = []probe.Load{probe.Idle, probe.Busy}
	}
	switch {
	case o.Requested <= 0:
		return o, fmt.Errorf("invalid argument %v: the duration has to be positive", o.Requested)
	case f.count < 1:
		return o, fmt.Errorf("invalid argument %d for --count: it has to be 1 or more", f.count)
	case f.time <= 0:
		return o, fmt.Errorf("invalid argument %v for --time: it has to be positive", f.time)
	}
	names := probe.SleepNames()
	for _, way := range f.ways {
		if !slices.Contains(names, way) {
			return o, fmt.Errorf("invalid argument %q for --way: there are %s", way, strings.Join(names, "; "))
		}
	}
	switch f.progress {
	case "auto", "plain", "none":
		return o, nil
	}
	return o, fmt.Errorf("invalid argument %q for --progress: it has to be auto, plain or none", f.progress)
}

func (f *sleepFlags) run(cmd *cobra.Command, o probe.SleepOptions) error {
	ctx, stop := interruptible(cmd.Context())
	defer stop()
	// No check: for the machine alone.
	report, err := probe.Run(context.WithoutCancel(ctx), probe.Options{Checks: []string{}})
	if err != nil {
		return &exitError{exitFailed, err}
	}
	clearLine := f.follow(&o, cmd.ErrOrStderr())
	began := time.Now()
	data, err := probe.MeasureSleeps(ctx, o)
	clearLine()
	if data == nil {
		return &exitError{exitFailed, err}
	}
	report.Results = []probe.Result{{Check: "sleep", Err: err, Data: data, Took: time.Since(began)}}
	if e := writeMeasured(cmd.OutOrStdout(), "detent.sleep/1", report, f.json); e != nil {
		return &exitError{exitFailed, e}
	}
	return ended(ctx, err)
}

// follow has the progress written to stderr. The function that it returns takes
// the last line away again.
func (f *sleepFlags) follow(o *probe.SleepOptions, stderr io.Writer) (clearLine func()) {
	clearLine = func() {}
	switch {
	case f.progress == "plain":
		o.Progress = func(way string, load probe.Load, done float64) {
			fmt.Fprintf(stderr, "%3.0f %% %s, %s\n", 100*done, way, load)
		}
	case f.progress == "auto" && isTerminal(stderr):
		width := 0
		show := func(line string) {
			fmt.Fprintf(stderr, "\r%-*s", width, line)
			width = len(line)
		}
		o.Progress = func(way string, load probe.Load, done float64) {
			show(fmt.Sprintf("%3.0f %% %s, %s", 100*done, way, load))
		}
		clearLine = func() { show(""); fmt.Fprint(stderr, "\r") }
	}
	return clearLine
}
