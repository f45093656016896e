package lab

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// countCalls counts system calls of this process by the kernel's tracepoints, or by
// strace where they cannot be had.
func countCalls(names []string) (*callCounter, error) {
	c, err := countByTracepoints(names)
	if err == nil {
		return c, nil
	}
	c, e := countByStrace(names)
	if e != nil {
		return nil, fmt.Errorf("%w; and by strace: %w", err, e)
	}
	c.slow = fmt.Sprintf("counted by strace, which delays each, for want of the kernel's tracepoints: %v", err)
	return c, nil
}

// countByTracepoints has a counter for each thread that there is, which those that it
// starts inherit.
func countByTracepoints(names []string) (*callCounter, error) {
	ids, err := tracepoints(names)
	if err != nil {
		return nil, err
	}
	tasks, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return nil, err
	}
	files := map[string][]int{}
	c := &callCounter{end: func() {
		for _, list := range files {
			for _, fd := range list {
				_ = unix.Close(fd)
			}
		}
	}}
	for name, id := range ids {
		attr := unix.PerfEventAttr{Type: unix.PERF_TYPE_TRACEPOINT, Size: attrSize, Config: id, Bits: unix.PerfBitInherit}
		for _, task := range tasks {
			tid, err := strconv.Atoi(task.Name())
			if err != nil {
				continue
			}
			fd, err := unix.PerfEventOpen(&attr, tid, -1, -1, unix.PERF_FLAG_FD_CLOEXEC)
			switch {
			case errors.Is(err, unix.ESRCH):
				continue // The thread has ended.
			case err != nil:
				c.end()
				return nil, fmt.Errorf("perf_event_open: %w", err)
			}
			files[name] = append(files[name], fd)
		}
	}
	c.read = func() (map[string]uint64, error) {
		counts := map[string]uint64{}
		for name, list := range files {
			for _, fd := range list {
				var b [8]byte
				if _, err := unix.Read(fd, b[:]); err != nil {
					return nil, err
				}
				counts[name] += binary.NativeEndian.Uint64(b[:])
			}
		}
		return counts, nil
	}
	return c, nil
}

// attrSize is how much of a PerfEventAttr the kernel is to read: what all kernels
// since 4.1 know (PERF_ATTR_SIZE_VER5).
const attrSize = 112

// tracefs is where the kernel describes its tracepoints, mounted in one of two
// places.
var tracefs = []string{"/sys/kernel/tracing", "/sys/kernel/debug/tracing"}

// tracepoints returns the numbers of those at the beginnings of system calls. Not
// every machine has every call.
func tracepoints(names []string) (map[string]uint64, error) {
	ids := map[string]uint64{}
	why := error(fs.ErrNotExist)
	for _, root := range tracefs {
		for _, name := range names {
			b, err := os.ReadFile(root + "/events/syscalls/sys_enter_" + name + "/id")
			if errors.Is(err, fs.ErrNotExist) {
				continue
			}
			if err != nil {
				why = err
				break
			}
			if id, e := strconv.ParseUint(strings.TrimSpace(string(b)), 10, 64); e == nil {
				ids[name] = id
			}
		}
		if len(ids) > 0 {
			return ids, nil
		}
	}
	return nil, fmt.Errorf("the kernel's tracepoints (as root: mount -t tracefs tracefs %s): %w", tracefs[0], why)
}
