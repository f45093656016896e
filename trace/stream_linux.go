//go:build amd64 || arm64

package trace

import (
	"bytes"
	"encoding/binary"
	"errors"
	"os"
	"time"

	"github.com/cilium/ebpf/ringbuf"

	"github.com/detent-go/detent/trace/internal/bpf"
)

// readEvents turns what the kernel's programs send into events, until the ring is
// closed.
func (t *Tracer) readEvents() {
	var wall wallClock
	for {
		record, err := t.ring.Read()
		if errors.Is(err, ringbuf.ErrClosed) || errors.Is(err, os.ErrClosed) {
			return
		}
		if err != nil {
			t.lose("events: " + err.Error())
			return
		}
		var e bpf.TraceEvent
		if err := binary.Read(bytes.NewReader(record.RawSample), binary.LittleEndian, &e); err != nil {
			t.lose("events: " + err.Error())
			continue
		}
		t.send(t.event(&e, wall.at(e.At)))
	}
}

func (t *Tracer) event(e *bpf.TraceEvent, at time.Time) Event {
	event := Event{Time: at, PID: int(e.Tgid), Comm: cString(e.Comm)}
	switch bpf.TraceEventType(e.Type) {
	case bpf.TraceEventTypeEVENT_LATE:
		event.Kind = EventLate
		part := func(i bpf.TracePart) time.Duration { return duration(e.Part[i]) }
		event.Late = &LateWake{
			TID: int(e.Tid), CPU: int(e.Cpu), Kind: kindOf(e.Kind),
			Slack: part(bpf.TracePartPART_SLACK), Interrupt: part(bpf.TracePartPART_INTERRUPT),
			Wake: part(bpf.TracePartPART_WAKE), Throttled: part(bpf.TracePartPART_THROTTLED),
			RunQueue: part(bpf.TracePartPART_RUNQUEUE), Total: part(bpf.TracePartPART_TOTAL),
			BeforePID: int(e.BeforeTgid), Before: cString(e.BeforeComm),
		}
		return event
	case bpf.TraceEventTypeEVENT_CLOCK_USER:
		event.Kind = EventBypass
		event.Clock = ClockName(int(int32(e.Fn)))
		if int(e.Kind) < len(callNames) {
			event.Call = callNames[e.Kind]
		}
	case bpf.TraceEventTypeEVENT_EXEC:
		event.Kind = EventExec
	case bpf.TraceEventTypeEVENT_EXIT:
		event.Kind = EventExit
	}
	// What is known of it now explains its calls also if it ends soon.
	t.mu.Lock()
	if k := t.meetLocked(event.PID, event.Kind); k != nil {
		event.Comm = k.Comm
		if event.Kind != EventExit {
			t.findLocked(k)
		}
	}
	t.mu.Unlock()
	return event
}

// A wallClock turns readings of CLOCK_MONOTONIC into times of the wall clock. It
// looks at how the two differ once a second at most. Its user is one goroutine.
type wallClock struct {
	looked time.Time
	offset time.Duration
}

func (w *wallClock) at(monotonic uint64) time.Time {
	if time.Since(w.looked) > time.Second {
		w.looked = time.Now()
		w.offset = wallOffset()
	}
	return time.Unix(0, int64(monotonic)+int64(w.offset))
}
