package watch

import (
	"context"
	"encoding/json"
	"io"
	"time"

	"github.com/detent-go/detent/trace"
)

// A Source is what is shown: a *trace.Tracer.
type Source interface {
	Snapshot() (*trace.Snapshot, error)
	Events() <-chan trace.Event
}

// A Line is one line of the stream. Exactly one of its fields is set.
type Line struct {
	// Interval is what happened since the line before.
	Interval *trace.Snapshot `json:"interval,omitempty"`
	Event    *trace.Event    `json:"event,omitempty"`
	// Total, the last line, is what happened from the start.
	Total *trace.Snapshot `json:"total,omitempty"`
}

// Stream writes a line for each event, at once, and one each interval, until the
// context ends or the source is closed, and the total then. An interval of 0 writes
// no lines of intervals.
func Stream(ctx context.Context, w io.Writer, s Source, interval time.Duration) error {
	enc := json.NewEncoder(w)
	last, err := s.Snapshot()
	if err != nil {
		return err
	}
	var ticks <-chan time.Time
	if interval > 0 {
		t := time.NewTicker(interval)
		defer t.Stop()
		ticks = t.C
	}
	for {
		select {
		case e, ok := <-s.Events():
			if !ok {
				return nil
			}
			if err := enc.Encode(Line{Event: &e}); err != nil {
				return err
			}
		case <-ticks:
			now, err := s.Snapshot()
			if err != nil {
				return err
			}
			if err := enc.Encode(Line{Interval: now.Since(last)}); err != nil {
				return err
			}
			last = now
		case <-ctx.Done():
			now, err := s.Snapshot()
			if err != nil {
				return err
			}
			return enc.Encode(Line{Total: now})
		}
	}
}

// maxEvents is how many events Collect keeps.
const maxEvents = 200

// Collect gathers events until the context ends, and returns the last of them, with
// what happened from the start.
func Collect(ctx context.Context, s Source) (*trace.Snapshot, []trace.Event, error) {
	var events []trace.Event
	for {
		select {
		case e, ok := <-s.Events():
			if !ok {
				return nil, nil, context.Canceled
			}
			events = append(events, e)
			if len(events) > maxEvents {
				events = events[1:]
			}
		case <-ctx.Done():
			now, err := s.Snapshot()
			if err != nil {
				return nil, nil, err
			}
			return now, events, nil
		}
	}
}
