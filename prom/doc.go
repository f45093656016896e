// Package prom exports the counts of package timer's services, the health of
// clocks and the cost of time.Now to Prometheus.
//
//	prometheus.MustRegister(prom.NewCollector(prom.Options{}))
//
// A [Collector] reads everything at the scrape: between scrapes it costs nothing,
// beyond the counters that a service keeps anyway. It starts no goroutine.
//
// # Metrics
//
// All names begin with detent_. Label service is the name from Options.Services,
// be it a service that timer.New made, a lane or a manual one, and label queue that
// from Options.Queues. Nothing that a program does at run time adds a series: their
// number is known when the collector is made, but for one per CPU and clock source.
//
//	timer_started_total, timer_stopped_total,      timers, sleeps and contexts by what became of them
//	timer_reset_total, timer_fired_total
//	timer_pending                                  timers that wait
//	timer_wakeups_total                            times that the service was woken
//	timer_lateness_seconds                         histogram, deadline to fire
//	timer_lateness_cause_seconds{cause}            histogram, the same split by whose fault it is
//	timer_spun_seconds_total                       CPU time spent spinning
//	timer_kept_seconds_total                       time that a lane has kept its P for itself
//	timer_waker_info{waker}                        1: what wakes the service
//	timer_waker_fallback                           1 where no better waker could be made
//	queue_started_total, queue_stopped_total,      values of a queue by what became of them
//	queue_reset_total, queue_delivered_total
//	queue_pending, queue_wakeups_total             values that wait; times that it was woken
//	queue_lateness_seconds                         histogram, deadline to delivery
//	time_now_duration_seconds{cpu,vdso}            histogram, what time.Now costs
//	clock_info{clock,source}                       1: how each clock is read
//	clock_trusted                                  1 while the cycle counter is used
//	clock_error_bound_seconds                      how far its clock may be off
//	clock_cpu_offset_bound_seconds                 how far apart CPUs may be
//	clock_fallbacks_total, clock_jumps_total       faults since the program started
//
// A [ProbeCollector] exports the latest report of package probe: its findings, the
// kernel's clocksource, what reading each clock costs, how far CPUs are apart.
//
// Histograms have both forms, native ones with 8 buckets for each doubling and
// classic ones; which of them is stored is the server's choice.
//
// # Cost
//
// The counts are always on: some plain increments under a lock that is held anyway, and
// 2 to 4 ns for each of the values that a timer adds to a histogram:
//
//	go test ./internal/hist -run '^$' -bench Record
//
// A scrape of a service takes a tenth of a millisecond, and half a millisecond more on
// two CPUs where it looks at time.Now, as it does every 10 seconds at most (both on a
// busy machine):
//
//	go test . -run '^$' -bench Scrape    # in prom
package prom
