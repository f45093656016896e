//go:build amd64 || arm64

package trace

import (
	"errors"
	"fmt"
	"io/fs"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/detent-go/detent/trace/internal/bpf"
)

// A sampler is one perf event with the program on it. It counts only while the
// thread runs, so it wakes nobody.
type sampler int

func (s sampler) Close() error { return unix.Close(int(s)) }

// attachProfile samples every thread of the PIDs, and those that they start.
func (t *Tracer) attachProfile(h *hook) {
	if len(t.opts.PIDs) == 0 {
		h.err = errors.New("needs PIDs")
		return
	}
	var errs []error
	for _, pid := range t.opts.PIDs {
		if err := t.profileProcess(h, pid); err != nil {
			errs = append(errs, fmt.Errorf("process %d: %w", pid, err))
		}
	}
	h.err = errors.Join(errs...)
}

func (t *Tracer) profileProcess(h *hook, pid int) error {
	t.mu.Lock()
	k := t.meetLocked(pid, "")
	if k != nil {
		t.detailLocked(k)
	}
	t.mu.Unlock()
	if k == nil {
		return fs.ErrNotExist
	}
	if m := k.Named("[vdso]"); m != nil {
		r := bpf.TraceRange{From: m.Start, To: m.End}
		if err := t.maps[bpf.TraceMapVdsos].Put(uint32(pid), r); err != nil {
			return err
		}
	}
	// A thread that is started by one that has its event already inherits it; one
	// that is not in the list yet, by one that has none yet, is found by looking
	// again.
	have := make(map[int]bool)
	for range 3 {
		threads, err := fs.ReadDir(t.root, fmt.Sprintf("proc/%d/task", pid))
		if err != nil {
			return err
		}
		more := false
		for _, d := range threads {
			tid, err := strconv.Atoi(d.Name())
			if err != nil || have[tid] {
				continue
			}
			have[tid], more = true, true
			s, err := sample(tid, t.opts.ProfileHz, h.prog.FD())
			if errors.Is(err, unix.ESRCH) {
				continue // the thread has ended
			}
			if err != nil {
				return err
			}
			h.links = append(h.links, s)
		}
		if !more {
			break
		}
	}
	return nil
}

func sample(tid, hz, prog int) (sampler, error) {
	attr := &unix.PerfEventAttr{
		Type:   unix.PERF_TYPE_SOFTWARE,
		Size:   unix.PERF_ATTR_SIZE_VER5,
		Config: unix.PERF_COUNT_SW_CPU_CLOCK,
		Sample: uint64(hz),
		Bits:   unix.PerfBitDisabled | unix.PerfBitFreq | unix.PerfBitInherit,
	}
	fd, err := unix.PerfEventOpen(attr, tid, -1, -1, unix.PERF_FLAG_FD_CLOEXEC)
	if err != nil {
		return 0, fmt.Errorf("perf_event_open: %w", err)
	}
	if err := unix.IoctlSetInt(fd, unix.PERF_EVENT_IOC_SET_BPF, prog); err != nil {
		unix.Close(fd)
		return 0, fmt.Errorf("attaching to a perf event: %w", err)
	}
	if err := unix.IoctlSetInt(fd, unix.PERF_EVENT_IOC_ENABLE, 0); err != nil {
		unix.Close(fd)
		return 0, fmt.Errorf("enabling a perf event: %w", err)
	}
	return sampler(fd), nil
}
