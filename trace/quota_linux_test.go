//go:build amd64 || arm64

package trace

import (
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/detent-go/detent/trace/internal/proc"
)

// TestQuotaSince: a cgroup's counters are as old as the cgroup; those of a quota are
// of what the tracer has seen.
func TestQuotaSince(t *testing.T) {
	const dir = "sys/fs/cgroup/g"
	stat := func(periods, throttles, us string) *fstest.MapFile {
		return &fstest.MapFile{Data: []byte("nr_periods " + periods + "\nnr_throttled " + throttles + "\nthrottled_usec " + us + "\n")}
	}
	root := fstest.MapFS{
		"proc/mounts":     {Data: []byte("cgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n")},
		dir + "/cpu.max":  {Data: []byte("20000 100000\n")},
		dir + "/cpu.stat": stat("1000", "400", "9000"),
	}
	tracer := &Tracer{root: root, quotas: map[string]*proc.Quota{}}
	k := &known{Process: &proc.Process{PID: 7, Cgroups: []proc.Cgroup{{Path: "/g"}}}}
	other := &known{Process: &proc.Process{PID: 8, Cgroups: []proc.Cgroup{{Path: "/"}}}}
	tracer.quotaBaseLocked(k)
	root[dir+"/cpu.stat"] = stat("1010", "409", "9500")
	q := tracer.quotaLocked(k)
	if q == nil || q.Periods != 10 || q.Throttles != 9 || q.Throttled != 500*time.Microsecond || q.CPUs() != 0.2 || !strings.HasSuffix(q.File, "/g/cpu.max") {
		t.Errorf("%+v", q)
	}
	if q := tracer.quotaLocked(other); q != nil {
		t.Errorf("a quota of nobody: %+v", q)
	}
	for i := range maxQuotas {
		tracer.quotaBaseLocked(&known{Process: &proc.Process{Cgroups: []proc.Cgroup{{Path: strings.Repeat("x", 1+i%100) + "/" + strings.Repeat("y", 1+i/100)}}}})
	}
	if len(tracer.quotas) > maxQuotas {
		t.Errorf("%d cgroups are remembered", len(tracer.quotas))
	}
	if q := tracer.quotaLocked(k); q == nil || q.Throttles > 9 {
		t.Errorf("%+v", q)
	}
}
