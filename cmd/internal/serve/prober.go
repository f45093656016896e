package serve

import (
	"context"
	"log/slog"
	"time"

	"github.com/detent-go/detent/probe"
)

// lookEvery is how often the host's files are looked at between two whole probes:
// the checks that measure nothing.
const lookEvery = 10 * time.Second

// prober runs the probe.
type prober struct {
	every time.Duration
	log   *slog.Logger
	// probe is probe.Run; tests have their own.
	probe func(context.Context, probe.Options) (*probe.Report, error)
}

// run probes until ctx ends.
func (p *prober) run(ctx context.Context, b *board) {
	whole := time.Now()
	for first := true; ; first = false {
		var checks []string // all
		if now := time.Now(); first || now.Sub(whole) >= p.every {
			whole = now
		} else {
			checks = readers()
		}
		if checks == nil || len(checks) > 0 {
			r, err := p.probe(ctx, probe.Options{Effort: probe.Quick, Checks: checks})
			switch {
			case ctx.Err() != nil:
				return
			case err != nil:
				p.log.Error("probe", "error", err)
			default:
				if checks != nil {
					r = merge(b.latest(), r)
				}
				b.setReport(r)
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(min(lookEvery, p.every)):
		}
	}
}

// readers are the checks that take next to no time.
func readers() []string {
	names := []string{}
	for _, c := range probe.Checks() {
		if c.Budget == nil {
			names = append(names, c.Name)
		}
	}
	return names
}

// merge returns old with the results of some checks renewed.
func merge(old, some *probe.Report) *probe.Report {
	if old == nil {
		return some
	}
	fresh := map[string]probe.Result{}
	for _, r := range some.Results {
		fresh[r.Check] = r
	}
	merged := *old
	merged.Machine = some.Machine
	merged.Results = nil
	for _, r := range old.Results {
		if f, ok := fresh[r.Check]; ok {
			r = f
		}
		merged.Results = append(merged.Results, r)
	}
	return &merged
}
