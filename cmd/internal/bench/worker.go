package bench

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"
)

// A request is one line on a worker's standard input. Which fields an
// operation reads stands beside the operation.
type request struct {
	Op     string        `json:"op"`
	Mode   string        `json:"mode,omitempty"`
	Lane   string        `json:"lane,omitempty"`
	N      int           `json:"n,omitempty"`
	K      int           `json:"k,omitempty"`
	D      time.Duration `json:"d_ns,omitempty"`
	Window time.Duration `json:"window_ns,omitempty"`
	Lead   time.Duration `json:"lead_ns,omitempty"`
	Period time.Duration `json:"period_ns,omitempty"`
}

// values are figures by metric; a metric that this machine cannot measure is
// missing.
type values map[string]float64

// A response is one line on a worker's standard output.
type response struct {
	Values values `json:"values,omitempty"`
	Error  string `json:"error,omitempty"`
}

// A host holds one engine's state between the requests to a worker.
//
// Ground rules: requests are served one at a time, and whatever an operation
// started has ended when it returns, except for the timers in kept and the
// armed burst. So everything here belongs to the serving goroutine.
type host[T handle] struct {
	engine engine[T]
	kept   []T           // the pending timers, see fill
	later  time.Duration // where the last pass of Resets stopped
	empty  float64       // ms of runtime.GC before fill
	burst  *burst[T]     // see burst.go
}

// Serve is the worker's side: it measures what it is asked to until in ends.
func Serve(side string, in io.Reader, out io.Writer) error {
	switch side {
	case Time:
		return serve(&host[timeHandle]{engine: timeEngine{}}, in, out)
	case Detent:
		return serve(&host[detentHandle]{engine: detentEngine{}}, in, out)
	}
	return fmt.Errorf("unknown engine %q (there are %q)", side, engines)
}

func serve[T handle](h *host[T], in io.Reader, out io.Writer) error {
	dec, enc := json.NewDecoder(in), json.NewEncoder(out)
	for {
		var req request
		if err := dec.Decode(&req); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("reading a request: %w", err)
		}
		var resp response
		v, err := h.do(req)
		if resp.Values = v; err != nil {
			resp.Error = err.Error()
		}
		if err := enc.Encode(resp); err != nil {
			return fmt.Errorf("writing a response: %w", err)
		}
	}
}

func (h *host[T]) do(req request) (values, error) {
	switch req.Op {
	case opFill:
		return h.fill(req)
	case opStartStop:
		return h.startStop(req)
	case opReset:
		return h.reset(req)
	case opChurn:
		return h.churn(req)
	case opArm:
		return h.arm(req)
	case opWait:
		return h.wait()
	case opCollect:
		return h.collect(req)
	case opMemory:
		return h.memory(req)
	case opGC:
		return h.gc(req)
	case opUsage:
		return h.usage()
	case opSleep:
		return h.sleep(req)
	case opPace:
		return h.pace(req)
	case opLoad:
		return h.load(req)
	case opLane:
		return h.lane(req)
	case opParallel:
		return h.parallel(req)
	}
	return nil, fmt.Errorf("unknown operation %q", req.Op)
}
