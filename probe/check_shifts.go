package probe

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/detent-go/detent/clock"
	"github.com/detent-go/detent/internal/hostfs"
)

// The check of what shifts this process's clocks against the machine's. It has ShiftsData.
var shiftsCheck = Check{
	Name:  "shifts",
	About: "what shifts clocks of this process: a time namespace, the machine's suspensions",
	Run: func(_ context.Context, e *Env) Result {
		if err := e.linux(); err != nil {
			return Result{Err: err}
		}
		d := &ShiftsData{Initial: Unclear}
		n, err := hostfs.Namespace(e.Root, "time")
		switch {
		case errors.Is(err, fs.ErrNotExist) && e.mounted() == nil:
			d.Initial, err = Yes, nil // a kernel without them has one for all
		case err != nil:
			err = unseen("the time namespace", err, "")
		default:
			d.Namespace, d.Initial = n, known(n == hostfs.InitialTimeNamespace)
			if children, childErr := hostfs.Namespace(e.Root, "time_for_children"); childErr == nil {
				d.ChildrenDiffer = children != n
			}
		}
		offsets, offsetErr := hostfs.ReadTimeOffsets(e.Root)
		if offsetErr == nil && !d.ChildrenDiffer {
			d.Monotonic, d.Boottime = offsets.Monotonic, offsets.Boottime
		}
		if e.Own && e.mounted() == nil {
			// Within a namespace its offsets are part of both clocks.
			boot, mono := clock.Boot.Nanos(), clock.Mono.Nanos()
			d.Suspended = max(0, time.Duration(boot-mono)-(d.Boottime-d.Monotonic))
		}
		return Result{Err: errors.Join(err, missing(offsetErr)), Data: d, Findings: judgeShifts(d)}
	},
}

// ShiftsData is the data of the check "shifts".
type ShiftsData struct {
	Namespace uint64 `json:"time_namespace,omitempty"`
	Initial   Known  `json:"initial"` // the machine's own time namespace
	// Monotonic and Boottime are what the namespace adds to the machine's clocks.
	Monotonic time.Duration `json:"monotonic_offset_ns"`
	Boottime  time.Duration `json:"boottime_offset_ns"`
	// ChildrenDiffer: processes started by this one get another namespace.
	ChildrenDiffer bool `json:"children_differ"`
	// Suspended is how long the machine has been suspended since its start: what
	// CLOCK_BOOTTIME has counted and CLOCK_MONOTONIC has not. 0 for a copied tree.
	Suspended time.Duration `json:"suspended_ns"`
}

func judgeShifts(d *ShiftsData) []Finding {
	var found []Finding
	if d.Initial == No && (d.Monotonic != 0 || d.Boottime != 0) {
		found = append(found, Finding{
			ID: "shifts.time-namespace", Severity: Info, Confidence: Certain,
			Title:  fmt.Sprintf("this process is in a time namespace: its monotonic clock is %s off the machine's", signed(d.Monotonic)),
			Detail: "Clocks cost and timers behave as usual. Monotonic times of processes outside, of the kernel's log and of tracing cannot be compared with this process's without the offset.",
			Evidence: []Evidence{
				{"time namespace", fmt.Sprintf("time:[%d]", d.Namespace), "/proc/self/ns/time"},
				{"offsets", fmt.Sprintf("monotonic %s, boottime %s", signed(d.Monotonic), signed(d.Boottime)), "/proc/self/timens_offsets"},
			},
		})
	}
	if d.ChildrenDiffer {
		found = append(found, Finding{
			ID: "shifts.children-elsewhere", Severity: Info, Confidence: Certain,
			Title:    "processes that this one starts get another time namespace than its own",
			Evidence: []Evidence{{"time_for_children", "differs from time", "/proc/self/ns"}},
		})
	}
	const suspended = time.Second // the two clocks are read one after the other
	if d.Suspended >= suspended {
		found = append(found, Finding{
			ID: "shifts.suspended", Severity: Info, Confidence: Certain,
			Title:    fmt.Sprintf("the machine has been suspended for %s since its start", short(d.Suspended)),
			Detail:   "Timers do not count that time: one of an hour that was armed before a night's suspension fires the next day. What has to count it, leases and tokens, compares CLOCK_BOOTTIME or the wall clock.",
			Evidence: []Evidence{{"CLOCK_BOOTTIME - CLOCK_MONOTONIC", d.Suspended.String(), "measured"}},
		})
	}
	return found
}

func signed(d time.Duration) string {
	if d > 0 {
		return "+" + d.String()
	}
	return d.String()
}
