package prom_test

import (
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/detent-go/detent/clock"
	"github.com/detent-go/detent/prom"
	"github.com/detent-go/detent/timer"
)

// A program exports a service and a queue of its own beside the default service, and
// the health of the clock that it takes timestamps by.
func ExampleNewCollector() {
	leases, err := timer.New(nil)
	if err != nil {
		panic(err)
	}
	idle := timer.NewQueue(timer.Default(), func([]timer.Expired[uint64]) {})
	stamps := new(clock.TSC)
	prometheus.MustRegister(prom.NewCollector(prom.Options{
		Services: map[string]*timer.Service{"default": timer.Default(), "leases": leases},
		Queues:   map[string]prom.Queue{"idle connections": idle},
		TSC:      stamps,
	}))
	http.Handle("/metrics", promhttp.Handler())
}
