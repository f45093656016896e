package serve

import (
	"encoding/json"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"
)

const (
	// maxClients is how many may follow the event stream at a time.
	maxClients = 64

	// writeTimeout is how long a client may take to accept what it is sent.
	writeTimeout = 10 * time.Second

	// streamEvery bounds how often a client is sent the state.
	streamEvery = 500 * time.Millisecond
)

// stream sends the state as server-sent events, whenever it changes.
type stream struct {
	b       *board
	clients atomic.Int64
	done    <-chan struct{} // closed when the server ends
}

func (s *stream) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if s.clients.Add(1) > maxClients {
		s.clients.Add(-1)
		w.Header().Set("Retry-After", "10")
		http.Error(w, "too many clients follow the events", http.StatusServiceUnavailable)
		return
	}
	defer s.clients.Add(-1)
	control := http.NewResponseController(w)
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	for {
		state, changed := s.b.read()
		if err := send(w, control, state); err != nil {
			return // The client has gone, or takes nothing.
		}
		pause := time.NewTimer(streamEvery)
		select {
		case <-pause.C:
		case <-r.Context().Done():
			pause.Stop()
			return
		case <-s.done:
			pause.Stop()
			return
		}
		select {
		case <-changed:
		case <-r.Context().Done():
			return
		case <-s.done:
			return
		}
	}
}

func send(w http.ResponseWriter, control *http.ResponseController, state State) error {
	data, err := json.Marshal(state)
	if err != nil {
		return err
	}
	if err := control.SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil {
		return err
	}
	if _, err := fmt.Fprintf(w, "id: %d\nevent: state\ndata: %s\n\n", state.Serial, data); err != nil {
		return err
	}
	return control.Flush()
}
