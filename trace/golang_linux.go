//go:build amd64 || arm64

package trace

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"runtime"
	"time"

	"github.com/cilium/ebpf/link"

	"github.com/detent-go/detent/trace/internal/goprog"
)

// goProgram is a followed process as a Go program.
type goProgram struct {
	*goprog.Program        // nil: it is not one
	why             string // it is not read
	bias            uint64
}

// goLocked reads the scheduler of a Go program; nil if it is none.
func (t *Tracer) goLocked(k *known) *GoScheduler {
	p := t.goProgramLocked(k)
	if p.Program == nil {
		return nil
	}
	s := &GoScheduler{Version: p.Version, Absent: p.why}
	if p.why != "" {
		return s
	}
	f, err := t.root.Open(fmt.Sprintf("proc/%d/mem", k.PID))
	if err != nil {
		s.Absent = err.Error()
		return s
	}
	defer f.Close()
	mem, ok := f.(io.ReaderAt)
	if !ok {
		s.Absent = errors.ErrUnsupported.Error()
		return s
	}
	state, err := p.Layout.Read(mem, p.bias)
	if err != nil {
		s.Absent = err.Error()
		return s
	}
	s.GOMAXPROCS, s.IdlePs, s.Queued = state.GOMAXPROCS, state.IdlePs, max(state.Queued, 0)
	for bits, n := range state.Latency {
		// The runtime keeps no sum: each counts as the middle of its bucket.
		i := min(bits, histogramBuckets-1)
		s.Latency.Buckets[i] += n
		s.Latency.Count += n
		s.Latency.Sum += time.Duration(n) * (BucketMax(i) * 3 / 4)
		if n > 0 {
			s.Latency.Max = BucketMax(i)
		}
	}
	return s
}

// goProgramLocked looks at the process's file, once.
func (t *Tracer) goProgramLocked(k *known) *goProgram {
	if k.program == nil {
		k.program = &goProgram{}
		if p, err := t.readGoProgram(k); err == nil {
			*k.program = *p
		}
	}
	return k.program
}

func (t *Tracer) readGoProgram(k *known) (*goProgram, error) {
	f, err := t.root.Open(fmt.Sprintf("proc/%d/exe", k.PID))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	r, ok := f.(io.ReaderAt)
	if !ok {
		return nil, errors.ErrUnsupported
	}
	key := k.Exe
	if info, err := f.Stat(); err == nil {
		key += fmt.Sprint(info.Size(), info.ModTime().UnixNano())
	}
	program, ok := t.programs[key]
	if !ok {
		if program, err = goprog.Read(r); err != nil {
			program = nil
		}
		if len(t.programs) >= maxPrograms {
			clear(t.programs)
		}
		t.programs[key] = program
	}
	if program == nil {
		return nil, goprog.ErrNotGo
	}
	p := &goProgram{Program: program, why: program.Absent}
	if p.why != "" {
		return p, nil
	}
	t.detailLocked(k)
	for _, m := range k.Maps {
		if m.Path != k.Exe {
			continue
		}
		if bias, ok := p.Bias(m.Start, m.End, m.Offset); ok {
			p.bias = bias
			return p, nil
		}
	}
	p.why = "its file is not in its memory"
	return p, nil
}

// maxPrograms bounds the programs that are remembered.
const maxPrograms = 64

// The functions that the runtime calls for its timers. In their order: of a sleep,
// of a channel, of AfterFunc.
var goTimerFunctions = []string{"runtime.goroutineReady", "time.sendTime", "time.goFunc"}

// attachGoTimers probes the runtime's timers in the PIDs. Only entries of functions
// are ever probed: a probe on a return overwrites a word of the stack, which
// crashes a Go program when its stack moves.
func (t *Tracer) attachGoTimers(h *hook) {
	if len(t.opts.PIDs) == 0 {
		h.err = errors.New("needs PIDs")
		return
	}
	var errs []error
	for _, pid := range t.opts.PIDs {
		if err := t.probeGoTimers(h, pid); err != nil {
			errs = append(errs, fmt.Errorf("process %d: %w", pid, err))
		}
	}
	h.err = errors.Join(errs...)
}

func (t *Tracer) probeGoTimers(h *hook, pid int) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	k := t.meetLocked(pid, "")
	if k == nil {
		return fs.ErrNotExist
	}
	p := t.goProgramLocked(k)
	if p.Program == nil {
		return goprog.ErrNotGo
	}
	if !goprog.AtLeast(p.Version, 1, 23) {
		return fmt.Errorf("%s: its timers do not tell how late they are before go1.23: %w", p.Version, errors.ErrUnsupported)
	}
	path := fmt.Sprintf("/proc/%d/exe", pid)
	exe, err := link.OpenExecutable(path)
	if err != nil {
		return err
	}
	t.detailLocked(k)
	m := k.Named(k.Exe)
	if m == nil {
		return fmt.Errorf("%s is not in its memory: %w", k.Exe, fs.ErrNotExist)
	}
	object := t.symbols.Object(k.Process, m)
	if object == nil {
		return fmt.Errorf("%s has no symbols", k.Exe)
	}
	for _, name := range goTimerFunctions {
		addr, ok := object.Func(name)
		if !ok {
			continue // the program has no such timers
		}
		offset, ok := object.Offset(addr)
		if !ok {
			return fmt.Errorf("%s is not in the file", name)
		}
		if err := beginsFunction(path, offset); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		l, err := exe.Uprobe(name, h.prog, &link.UprobeOptions{Address: offset, PID: pid})
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		h.links = append(h.links, l)
	}
	return nil
}

// The first instruction of a Go function that looks whether its stack is large enough,
// as all of goTimerFunctions do.
var stackChecks = map[string][]byte{
	"amd64": {0x49, 0x3b, 0x66, 0x10}, // cmp 16(r14), rsp
	"arm64": {0x90, 0x0b, 0x40, 0xf9}, // ldr x16, [x28, 16]
}

// beginsFunction says that a Go function begins at this offset of a file. A probe
// anywhere else would make the program do something else than it should: symbols that
// were misread must not lead to that.
func beginsFunction(path string, offset uint64) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	want := stackChecks[runtime.GOARCH]
	got := make([]byte, len(want))
	if _, err := f.ReadAt(got, int64(offset)); err != nil {
		return err
	}
	if !bytes.Equal(got, want) {
		return fmt.Errorf("no function of Go begins at offset %#x of %s, it is not probed", offset, path)
	}
	return nil
}
