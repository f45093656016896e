//go:build amd64 || arm64

package trace

import (
	"strings"

	"github.com/detent-go/detent/trace/internal/proc"
)

// maxQuotas bounds the cgroups whose counters are remembered; beyond it they begin
// anew.
const maxQuotas = 4096

// quotaBaseLocked returns what the counters of a process's quota stood at when its
// cgroup was met first, and reads them if that is now; nil if it has no quota. A
// cgroup counts from the moment that it was made: what was there before is nothing
// that the tracer has seen.
func (t *Tracer) quotaBaseLocked(k *known) *proc.Quota {
	var key strings.Builder
	for _, g := range k.Cgroups {
		key.WriteString(strings.Join(g.Controllers, ","))
		key.WriteString(":" + g.Path + "\n")
	}
	base, met := t.quotas[key.String()]
	if !met {
		if len(t.quotas) >= maxQuotas {
			clear(t.quotas)
		}
		base = k.Quota(t.root)
		t.quotas[key.String()] = base
	}
	return base
}

// quotaLocked returns the quota of a process, with what has happened since its
// cgroup was met; nil if it has none.
func (t *Tracer) quotaLocked(k *known) *Quota {
	base := t.quotaBaseLocked(k)
	q := k.Quota(t.root)
	if q == nil {
		return nil
	}
	d := &Quota{"/" + q.Dir, "/" + q.Dir + "/" + q.File, q.Quota, q.Period, q.Periods, q.Throttles, q.Throttled}
	if base != nil && base.Dir == q.Dir {
		less(&d.Periods, base.Periods)
		less(&d.Throttles, base.Throttles)
		d.Throttled -= min(base.Throttled, d.Throttled)
	}
	return d
}
