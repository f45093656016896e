package atexec

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// A Held command is stopped at its exec until Resume. It dies with this process.
//
// # Ground rules
//
// Only the thread that started a traced child may speak to the kernel about it:
// one goroutine, locked to its thread, does so, and ends when the command runs.
type Held struct {
	cmd  *exec.Cmd
	ask  chan func() error
	said chan error

	once sync.Once
	err  error
}

// Start starts cmd and returns when it is held. Its caller calls Resume, and
// cmd.Wait after that.
func Start(cmd *exec.Cmd) (*Held, error) {
	attr := &syscall.SysProcAttr{}
	if cmd.SysProcAttr != nil {
		*attr = *cmd.SysProcAttr
	}
	attr.Ptrace = true
	cmd.SysProcAttr = attr
	h := &Held{cmd: cmd, ask: make(chan func() error), said: make(chan error)}
	go h.serve()
	if err := <-h.said; err != nil {
		return nil, err
	}
	return h, nil
}

// PID is the process id of the held command.
func (h *Held) PID() int { return h.cmd.Process.Pid }

// Resume lets the command run, no longer traced. Further calls do nothing.
func (h *Held) Resume() error {
	h.once.Do(func() {
		h.ask <- func() error { return unix.PtraceDetach(h.PID()) }
		h.err = <-h.said
	})
	return h.err
}

// serve is the thread that the kernel takes for the tracer.
func (h *Held) serve() {
	// Never unlocked: the thread ends with the goroutine.
	runtime.LockOSThread()
	err := h.start()
	h.said <- err
	if err != nil {
		return
	}
	resume := <-h.ask
	h.said <- resume()
}

func (h *Held) start() error {
	if err := h.cmd.Start(); err != nil {
		return err
	}
	err := h.await()
	if err != nil {
		h.cmd.Process.Kill()
		h.cmd.Wait()
		return fmt.Errorf("holding %s at its exec: %w", h.cmd.Path, err)
	}
	return nil
}

// await returns when the child has stopped at its exec.
func (h *Held) await() error {
	var status unix.WaitStatus
	for {
		_, err := unix.Wait4(h.PID(), &status, unix.WALL, nil)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			return err
		case status.Exited() || status.Signaled():
			return fmt.Errorf("it ended at once, status %#x", uint32(status))
		case status.Stopped() && status.StopSignal() == unix.SIGTRAP:
			// Should this process die now, so does the child; Resume's
			// detaching ends that as well.
			return unix.PtraceSetOptions(h.PID(), unix.PTRACE_O_EXITKILL)
		case status.Stopped():
			// A signal that arrived before the exec: it gets it.
			if err := unix.PtraceCont(h.PID(), int(status.StopSignal())); err != nil {
				return err
			}
		}
	}
}

// HideAux overwrites the entries with this tag in the auxiliary vector that the
// held command will find. An entry that is not there is an error that matches
// errors.ErrUnsupported.
func (h *Held) HideAux(tag uint64) error {
	top, err := startOfStack(h.PID())
	if err != nil {
		return err
	}
	mem, err := os.OpenFile(fmt.Sprintf("/proc/%d/mem", h.PID()), os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer mem.Close()
	// A long environment makes the lists of pointers long, not longer than this:
	// two megabytes of them is what the kernel allows.
	buf := make([]byte, 4<<20)
	n, err := mem.ReadAt(buf, top)
	if n < 8 {
		return fmt.Errorf("reading the stack of %d: %w", h.PID(), errors.Join(err, io.ErrUnexpectedEOF))
	}
	words := make([]uint64, n/8)
	for i := range words {
		words[i] = binary.NativeEndian.Uint64(buf[8*i:])
	}
	aux, at, err := auxv(words)
	if err != nil {
		return err
	}
	if !ignore(aux, tag) {
		return fmt.Errorf("no entry %d in the auxiliary vector: %w", tag, errors.ErrUnsupported)
	}
	out := make([]byte, 0, 16*len(aux))
	for _, e := range aux {
		out = binary.NativeEndian.AppendUint64(out, e.tag)
		out = binary.NativeEndian.AppendUint64(out, e.value)
	}
	if _, err := mem.WriteAt(out, top+int64(8*at)); err != nil {
		return fmt.Errorf("writing the auxiliary vector of %d: %w", h.PID(), err)
	}
	return nil
}

// startOfStack returns where the count of arguments of a new process is.
func startOfStack(pid int) (int64, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	// The name, the second field, is in parentheses and may hold anything.
	s := string(b)
	fields := strings.Fields(s[strings.LastIndexByte(s, ')')+1:])
	const startstack = 28 - 3 // of those after the name
	if len(fields) <= startstack {
		return 0, fmt.Errorf("/proc/%d/stat has %d fields", pid, len(fields)+2)
	}
	at, err := strconv.ParseInt(fields[startstack], 10, 64)
	if err != nil || at == 0 {
		return 0, fmt.Errorf("/proc/%d/stat does not show the stack: %w", pid, os.ErrPermission)
	}
	return at, nil
}

// AwaitEnd returns when the command has ended. What /proc tells of it stays until
// cmd.Wait.
func (h *Held) AwaitEnd() error {
	for {
		err := unix.Waitid(unix.P_PID, h.PID(), nil, unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}
