package bench

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

// A Spawner starts a worker that serves one side (see Serve) with procs as
// its GOMAXPROCS. Closing the connection ends the worker; so does the end of
// ctx.
type Spawner func(ctx context.Context, side string, procs int) (io.ReadWriteCloser, error)

// Processes starts each worker as a process: name with args and the side.
func Processes(name string, args ...string) Spawner {
	return func(ctx context.Context, side string, procs int) (io.ReadWriteCloser, error) {
		cmd := exec.CommandContext(ctx, name, append(args[:len(args):len(args)], side)...)
		cmd.Env = append(os.Environ(), "GOMAXPROCS="+strconv.Itoa(procs))
		cmd.WaitDelay = time.Second
		p := &process{cmd: cmd}
		cmd.Stderr = &p.stderr
		var err error
		if p.WriteCloser, err = cmd.StdinPipe(); err != nil {
			return nil, err
		}
		if p.Reader, err = cmd.StdoutPipe(); err != nil {
			return nil, err
		}
		return p, cmd.Start()
	}
}

// process is a connection to a worker process.
type process struct {
	io.WriteCloser
	io.Reader
	cmd    *exec.Cmd
	stderr tail
}

// Close ends the worker, which leaves when its input does, and returns what
// it said if it failed.
func (p *process) Close() error {
	_ = p.WriteCloser.Close() // fails only when the worker is gone already
	if err := p.cmd.Wait(); err != nil {
		return fmt.Errorf("%w%s", err, p.stderr.quoted())
	}
	return nil
}

// tail keeps the beginning of what a failing worker says: the message, not
// the million goroutines that follow it.
type tail struct{ b []byte }

func (t *tail) Write(p []byte) (int, error) {
	const most = 1 << 10
	t.b = append(t.b, p[:min(len(p), most-len(t.b))]...)
	return len(p), nil
}

func (t *tail) quoted() string {
	if s := strings.TrimSpace(string(t.b)); s != "" {
		return ": " + s
	}
	return ""
}

// A worker is the parent's end of one measuring process.
type worker struct {
	ctx    context.Context
	cancel context.CancelCauseFunc // kills the process
	side   string
	conn   io.ReadWriteCloser
	enc    *json.Encoder
	dec    *json.Decoder
}

func newWorker(ctx context.Context, spawn Spawner, side string, procs int) (*worker, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	conn, err := spawn(ctx, side, procs)
	if err != nil {
		cancel(nil)
		return nil, fmt.Errorf("starting the %s worker: %w", side, err)
	}
	return &worker{
		ctx: ctx, cancel: cancel, side: side,
		conn: conn, enc: json.NewEncoder(conn), dec: json.NewDecoder(conn),
	}, nil
}

// callLimit is how much longer than what it was asked to do a worker may
// take: enough for filling in ten million timers on a slow machine, and a
// timer that never fires does not hang the whole run.
const callLimit = 3 * time.Minute

// call has the worker do one operation. After an error other than the
// worker's own account of a failed measurement the worker is closed.
func (w *worker) call(req request) (values, error) {
	limit := callLimit + req.Window + req.Lead
	watchdog := time.AfterFunc(limit, func() { w.cancel(fmt.Errorf("no answer within %v", limit)) })
	defer watchdog.Stop()
	var resp response
	err := w.ctx.Err()
	if err == nil {
		err = w.enc.Encode(req)
	}
	if err == nil {
		err = w.dec.Decode(&resp)
	}
	if err == nil && resp.Error == "" {
		return resp.Values, nil
	}
	if err == nil {
		err = errors.New(resp.Error)
	} else {
		cause := context.Cause(w.ctx) // before close makes one
		// The end of the process says more than the broken pipe, and why it was
		// ended more than that.
		err = cmp.Or(cause, w.close(), err)
	}
	return nil, fmt.Errorf("%s worker, %s: %w", w.side, req.Op, err)
}

// close ends the worker and waits for its end. A second close does nothing.
func (w *worker) close() error {
	if w.conn == nil {
		return nil
	}
	err := w.conn.Close()
	w.cancel(nil)
	w.conn = nil
	w.enc, w.dec = json.NewEncoder(closed{}), json.NewDecoder(closed{})
	return err
}

// closed is the connection of a worker that has ended.
type closed struct{}

func (closed) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }
func (closed) Read([]byte) (int, error)  { return 0, io.ErrClosedPipe }
