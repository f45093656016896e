package serve

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/detent-go/detent/clock"
	"github.com/detent-go/detent/cmd/internal/doctor"
	"github.com/detent-go/detent/probe"
	"github.com/detent-go/detent/prom"
)

// Options say how to serve.
type Options struct {
	// Every is how often the whole probe runs: 3 seconds of a CPU each time.
	Every time.Duration
	// Watch watches processes until ctx ends, and shows each second or so what it
	// has seen, and what is wrong with them; latest is the machine's latest report,
	// nil before there is one. It returns early, with the reason, if processes
	// cannot be watched. nil: nobody does.
	Watch func(ctx context.Context, latest func() *probe.Report, show func([]Process, []probe.Finding)) error
	// Metrics are exported beside those of the server.
	Metrics []prometheus.Collector
	Log     *slog.Logger
}

// A Server watches this host and answers requests about it.
type Server struct {
	o       Options
	board   *board
	prober  *prober
	sampler *sampler
	handler http.Handler
	done    chan struct{}
}

// New returns a server that has not begun to watch.
func New(o Options) *Server {
	s := &Server{
		o: o, board: newBoard(time.Now()), sampler: newSampler(), done: make(chan struct{}),
		prober: &prober{every: o.Every, log: o.Log, probe: probe.Run},
	}
	s.sampler.tsc = new(clock.TSC)
	registry := prometheus.NewRegistry()
	registry.MustRegister(
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		prom.NewCollector(prom.Options{TSC: s.sampler.tsc}), prom.NewProbeCollector(s.board.latest), s.sampler.hist,
	)
	registry.MustRegister(o.Metrics...)

	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{
		EnableOpenMetrics: true, MaxRequestsInFlight: 4, Timeout: writeTimeout,
	}))
	mux.HandleFunc("GET /healthz", s.health)
	mux.HandleFunc("GET /api/state", s.state)
	mux.HandleFunc("GET /api/report", s.report)
	mux.Handle("GET /api/events", &stream{b: s.board, done: s.done})
	mux.HandleFunc("GET /api", s.index)
	mux.HandleFunc("GET /assets/", s.script)
	mux.HandleFunc("GET /{$}", s.page)
	s.handler = mux
	return s
}

// Serve watches and answers until ctx ends, and returns when all has ended: nil
// then, or why the listener failed.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var watchers sync.WaitGroup
	defer watchers.Wait()
	defer cancel()
	watchers.Go(func() { s.prober.run(ctx, s.board) })
	watchers.Go(func() { s.sampler.run(ctx, s.board) })
	watchers.Go(func() { s.watch(ctx) })

	server := &http.Server{
		ConnState:         newCrowd().changed,
		Handler:           guarded(s.handler, l.Addr()),
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       10 * time.Second,
		WriteTimeout:      30 * time.Second, // The event stream sets its own.
		IdleTimeout:       time.Minute,
		MaxHeaderBytes:    16 << 10,
		ErrorLog:          slog.NewLogLogger(s.o.Log.Handler(), slog.LevelDebug),
	}
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(l) }()
	select {
	case err := <-failed:
		close(s.done)
		return err
	case <-ctx.Done():
	}
	close(s.done)
	grace, stop := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer stop()
	if err := server.Shutdown(grace); err != nil {
		_ = server.Close() // Somebody does not want to go.
	}
	if err := <-failed; !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// watch watches processes, where that is possible.
func (s *Server) watch(ctx context.Context) {
	err := errors.New("it was not asked for")
	if s.o.Watch != nil {
		err = s.o.Watch(ctx, s.board.latest, s.board.setProcesses)
	}
	if ctx.Err() != nil {
		return
	}
	why := "processes are not watched"
	if err != nil {
		why += ": " + err.Error()
		s.o.Log.Info("processes are not watched", "reason", err)
	}
	s.board.update(func(st *State) { st.Watching, st.Processes = why, []Process{} })
}

// health says whether the server does its work: the sampler every second, so that a
// state that is a minute old shows that it does not.
func (s *Server) health(w http.ResponseWriter, _ *http.Request) {
	state, _ := s.board.read()
	if age := time.Since(state.Time); age > time.Minute {
		http.Error(w, fmt.Sprintf("nothing has been measured for %v", age.Round(time.Second)), http.StatusServiceUnavailable)
		return
	}
	fmt.Fprintln(w, "ok")
}

// index names what is below /api.
func (s *Server) index(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]string{
		"/api/state":  "what is known of this host now",
		"/api/events": "the same as server-sent events, whenever it changes",
		"/api/report": "the latest report of the probe, as detent doctor --json",
	})
}

func (s *Server) state(w http.ResponseWriter, _ *http.Request) {
	state, _ := s.board.read()
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(state) // fails only when the client has gone
}

func (s *Server) report(w http.ResponseWriter, _ *http.Request) {
	r := s.board.latest()
	if r == nil {
		w.Header().Set("Retry-After", "3")
		http.Error(w, "the first probe is running", http.StatusServiceUnavailable)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = doctor.WriteJSON(w, r)
}
