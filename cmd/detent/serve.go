package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/cobra"

	"github.com/detent-go/detent/cmd/internal/serve"
	"github.com/detent-go/detent/probe"
)

// serveFlags are what the user chose.
type serveFlags struct {
	listen string
	every  time.Duration
	debug  bool
	trace  bool
}

// leastEvery keeps the probe from running all the time.
const leastEvery = 10 * time.Second

func newServe() *cobra.Command {
	f := serveFlags{}
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Watch how this host keeps time: metrics, JSON and a live page",
		Long: `Watch how this host keeps time, and serve what is seen:

  /             a live page
  /metrics      metrics for Prometheus
  /healthz      200 while it does its work
  /api/state    what the page shows, as JSON; /api/events as server-sent events
  /api/report   the latest report of the probe, as detent doctor --json

Run as root it watches all processes with eBPF, and gives up the privileges that it
does not need any more; unprivileged it shows less, and says what it cannot see.
It answers on the loopback interface unless --listen says otherwise: what it shows
includes the names of processes. SIGTERM or Ctrl-C ends it.`,
		Example: `  detent serve
  detent serve --listen :9775 --every 10m`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if f.every < leastEvery {
				return fmt.Errorf("invalid argument %v for --every: it has to be %v or more", f.every, leastEvery)
			}
			if _, _, err := net.SplitHostPort(f.listen); err != nil {
				return fmt.Errorf("invalid argument %q for --listen: %w", f.listen, err)
			}
			return f.serve(cmd.Context(), cmd.ErrOrStderr())
		},
	}
	fs := cmd.Flags()
	fs.StringVar(&f.listen, "listen", "127.0.0.1:9775", "the `address` to answer on, host:port; port 0 takes a free one")
	fs.DurationVar(&f.every, "every", 5*time.Minute, "how often the whole probe runs; it takes 3 seconds of CPU time")
	fs.BoolVar(&f.trace, "trace", true, "watch processes with eBPF, where that is permitted")
	fs.BoolVar(&f.debug, "debug", false, "log more")
	return cmd
}

func (f *serveFlags) serve(ctx context.Context, stderr io.Writer) error {
	level := slog.LevelInfo
	if f.debug {
		level = slog.LevelDebug
	}
	log := slog.New(slog.NewTextHandler(stderr, &slog.HandlerOptions{Level: level}))
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	var config net.ListenConfig
	l, err := config.Listen(ctx, "tcp", f.listen)
	if err != nil {
		return &exitError{exitFailed, err}
	}
	o := serve.Options{Every: f.every, Log: log}
	drop := func() {
		if err := serve.Drop(); err != nil {
			log.Warn("privileges are kept", "error", err)
		}
	}
	if f.trace {
		w := serve.NewWatcher(log)
		w.Started = drop
		o.Watch, o.Metrics = func(ctx context.Context, latest func() *probe.Report, show func([]serve.Process, []probe.Finding)) error {
			err := w.Watch(ctx, latest, show)
			if err != nil {
				drop() // There is nothing to keep them for.
			}
			return err
		}, []prometheus.Collector{w}
	} else {
		drop()
	}
	server := serve.New(o)
	log.Info("serving", "url", "http://"+l.Addr().String()+"/")
	if err := server.Serve(ctx, l); err != nil {
		return &exitError{exitFailed, err}
	}
	log.Info("ended")
	return nil
}
