package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/detent-go/detent/cmd/internal/atexec"
	"github.com/detent-go/detent/cmd/internal/watch"
	"github.com/detent-go/detent/trace"
)

// traceFlags are what the user chose.
type traceFlags struct {
	all      bool
	cgroup   string
	children bool
	features string
	late     time.Duration
	interval time.Duration
	duration time.Duration
	json     bool
	output   string

	options trace.Options
	command []string
}

func newTrace() *cobra.Command {
	var f traceFlags
	cmd := &cobra.Command{
		Use:   "trace {PID... | --all | --cgroup DIR | -- COMMAND [ARG...]}",
		Short: "Watch who reads clocks by system calls, how late timers are and why, and who wakes the machine",
		Long: `Watch who reads clocks by system calls, how late timers are and why, and who wakes
the machine, with eBPF. It needs root and Linux; it says what is missing.

On a terminal it is a live view. With --json, and where the output is no terminal, it
writes until Ctrl-C or --duration ends it: JSON has a line for each interval and
event as they happen, and a total; text has a summary at the end.

With a command it watches that from its first instruction, with all it starts,
writes what it saw to stderr, or to --output, when it ends, and ends with its
status.

What is watched can be chosen by --features, with commas, or "+" for more than
the default: ` + strings.Join(trace.FeatureNames(), ", ") + `.
The last three cost more than the others.`,
		Example: `  detent trace 4711
  detent trace --all --json --duration 10s | jq .interval.processes
  detent trace --late 5ms -- ./server -v`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.check(args, cmd.ArgsLenAtDash()); err != nil {
				return err
			}
			if len(f.command) > 0 {
				return f.runCommand(cmd.InOrStdin(), cmd.OutOrStdout(), cmd.ErrOrStderr())
			}
			return f.run(cmd.Context(), cmd.InOrStdin(), cmd.OutOrStdout())
		},
	}
	fs := cmd.Flags()
	fs.BoolVar(&f.all, "all", false, "watch all processes")
	fs.StringVar(&f.cgroup, "cgroup", "", "watch the processes of this cgroup `directory` and of those below it")
	fs.BoolVar(&f.children, "children", false, "watch what the processes start as well")
	fs.StringVar(&f.features, "features", trace.DefaultFeatures.String(), "what to watch, by `name`")
	fs.DurationVar(&f.late, "late", 0, "an event for each timer that wakes its thread later than this (default none)")
	fs.DurationVar(&f.interval, "interval", time.Second, "how often the view changes, and JSON has a line")
	fs.DurationVar(&f.duration, "duration", 0, "end after this time (default none)")
	fs.BoolVar(&f.json, "json", false, "write JSON, an object a line")
	fs.StringVar(&f.output, "output", "", "with a command: write to this `file` instead of stderr")
	return cmd
}

// check finds what is wrong with the command line.
func (f *traceFlags) check(args []string, dash int) error {
	if dash >= 0 {
		args, f.command = args[:dash], args[dash:]
		if len(f.command) == 0 {
			return errors.New("no command after --")
		}
	}
	targets := 0
	for _, given := range []bool{len(args) > 0, f.all, f.cgroup != "", len(f.command) > 0} {
		if given {
			targets++
		}
	}
	if targets != 1 {
		return errors.New("what to watch has to be one of: process ids, --all, --cgroup, or -- and a command")
	}
	for _, a := range args {
		pid, err := strconv.Atoi(a)
		if err != nil || pid <= 0 {
			return fmt.Errorf("invalid process id %q", a)
		}
		f.options.PIDs = append(f.options.PIDs, pid)
	}
	features, err := trace.ParseFeatures(f.features)
	if err != nil {
		return fmt.Errorf("invalid argument %q for --features: %w", f.features, err)
	}
	switch {
	case f.interval < 100*time.Millisecond:
		return fmt.Errorf("invalid argument %v for --interval: it has to be 100ms or more", f.interval)
	case f.duration < 0:
		return fmt.Errorf("invalid argument %v for --duration: it has to be positive", f.duration)
	case f.late < 0:
		return fmt.Errorf("invalid argument %v for --late: it has to be positive", f.late)
	case f.output != "" && len(f.command) == 0:
		return errors.New("--output is for a command: a watch writes to stdout")
	}
	f.options.Features = features
	f.options.Late = f.late
	f.options.Cgroup = f.cgroup
	f.options.Children = f.children
	return nil
}

// title names what is watched.
func (f *traceFlags) title() string {
	switch {
	case f.all:
		return "all processes"
	case f.cgroup != "":
		return "cgroup " + f.cgroup
	}
	var names []string
	for _, pid := range f.options.PIDs {
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
		name := strings.TrimSpace(string(b))
		if err != nil {
			name = "process"
		}
		names = append(names, fmt.Sprintf("%s[%d]", name, pid))
	}
	return strings.Join(names, " ")
}

// run watches until the user or the time ends it.
func (f *traceFlags) run(ctx context.Context, stdin io.Reader, stdout io.Writer) error {
	ctx, stop := interruptible(ctx)
	defer stop()
	tracer, err := trace.Start(context.WithoutCancel(ctx), &f.options)
	if err != nil {
		return &exitError{exitFailed, err}
	}
	defer tracer.Close()
	if f.duration > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, f.duration, errTimeout)
		defer cancel()
	}
	if err := f.show(ctx, tracer, stdin, stdout); err != nil {
		return &exitError{exitFailed, err}
	}
	return nil
}

// show writes what the tracer sees until the context ends, which is no fault: a
// watch has no other end.
func (f *traceFlags) show(ctx context.Context, tracer *trace.Tracer, stdin io.Reader, stdout io.Writer) error {
	width, color := screen(stdout)
	switch {
	case f.json:
		return watch.Stream(ctx, stdout, tracer, f.interval)
	case isTerminal(stdout):
		err := watch.Live(ctx, tracer, f.title(), f.interval, stdin, stdout, color)
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
	s, events, err := watch.Collect(ctx, tracer)
	if err != nil {
		return err
	}
	return watch.WriteText(stdout, s, events, f.options.Features, width, color)
}

// runCommand watches a command and ends with its status.
func (f *traceFlags) runCommand(stdin io.Reader, stdout, stderr io.Writer) error {
	out := stderr
	if f.output != "" {
		file, err := os.Create(f.output)
		if err != nil {
			return &exitError{exitFailed, err}
		}
		defer file.Close()
		out = file
	}
	command := exec.Command(f.command[0], f.command[1:]...)
	command.Stdin, command.Stdout, command.Stderr = stdin, stdout, stderr
	// The terminal sends its signals to the command as well, and what that makes
	// of them is its business. Those that are sent to this process alone are
	// handed on.
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(signals)
	held, err := atexec.Start(command)
	if err != nil {
		return &exitError{exitFailed, err}
	}
	f.options.PIDs = []int{held.PID()}
	f.options.Children = true
	tracer, err := trace.Start(context.Background(), &f.options)
	if err != nil {
		command.Process.Kill()
		held.Resume()
		command.Wait()
		return &exitError{exitFailed, err}
	}
	defer tracer.Close()
	ctx, ended := context.WithCancel(context.Background())
	defer ended()
	shown := make(chan error, 1)
	go func() { shown <- f.showCommand(ctx, tracer, out) }()
	if err := held.Resume(); err != nil {
		command.Process.Kill()
	}
	go func() {
		for s := range signals {
			if s == syscall.SIGTERM {
				command.Process.Signal(s)
			}
		}
	}()
	// Its last state is still there while nobody has waited for it.
	waited := held.AwaitEnd()
	ended()
	err = <-shown
	if e := command.Wait(); command.ProcessState == nil {
		return &exitError{exitFailed, errors.Join(waited, e)}
	}
	if err != nil {
		return &exitError{exitFailed, err}
	}
	if code := exitCode(command.ProcessState); code != 0 {
		return &exitError{code: code}
	}
	return nil
}

func (f *traceFlags) showCommand(ctx context.Context, tracer *trace.Tracer, out io.Writer) error {
	if f.json {
		return watch.Stream(ctx, out, tracer, f.interval)
	}
	s, events, err := watch.Collect(ctx, tracer)
	if err != nil {
		return err
	}
	width, color := screen(out)
	return watch.WriteText(out, s, events, f.options.Features, cmp.Or(width, 100), color)
}

// exitCode is as the shell has it.
func exitCode(s *os.ProcessState) int {
	if w, ok := s.Sys().(syscall.WaitStatus); ok && w.Signaled() {
		return 128 + int(w.Signal())
	}
	return s.ExitCode()
}
