package lab

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// attachTime is how long strace may take to attach to all threads, or to let them go.
const attachTime = 10 * time.Second

// countByStrace counts system calls of this process by strace(1), which stops it at each
// of them: for where the kernel's tracepoints cannot be had. The counts are right, and
// what is late meanwhile is late for that.
func countByStrace(names []string) (*callCounter, error) {
	exe, err := exec.LookPath("strace")
	if err != nil {
		return nil, err
	}
	out, err := os.CreateTemp("", "detent-strace-*")
	if err != nil {
		return nil, err
	}
	_ = out.Close()
	// A system call that this machine does not have is passed over.
	cmd := exec.Command(exe, "-f", "-c", "-o", out.Name(), "-e", "trace=?"+strings.Join(names, ",?"), "-p", strconv.Itoa(os.Getpid()))
	// Where a process may be traced by its parents alone, this one allows it to its child.
	_ = unix.Prctl(unix.PR_SET_PTRACER, ^uintptr(0), 0, 0, 0)
	says, err := cmd.StderrPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return nil, errors.Join(err, os.Remove(out.Name()))
	}
	s := &straced{cmd: cmd, file: out.Name(), attached: make(chan error, 1), ended: make(chan struct{})}
	go s.listen(bufio.NewScanner(says))
	select {
	case err = <-s.attached:
	case <-time.After(attachTime):
		err = fmt.Errorf("strace has not attached after %v", attachTime)
	}
	if err != nil {
		s.end()
		return nil, err
	}
	return &callCounter{read: s.read, end: s.end}, nil
}

// straced is a strace that is attached to this process.
type straced struct {
	cmd      *exec.Cmd
	file     string
	attached chan error
	ended    chan struct{} // closed when the process has ended
	over     bool
}

// listen waits for strace to say that it is attached, or why not, and then for its end.
func (s *straced) listen(lines *bufio.Scanner) {
	defer close(s.ended)
	told, last := false, "strace ended without a word"
	for lines.Scan() {
		last = lines.Text()
		if !told && strings.Contains(last, "attached") && !strings.Contains(last, "Operation not permitted") {
			told = true
			s.attached <- nil
		}
	}
	_ = s.cmd.Wait()
	if !told {
		s.attached <- errors.New(last)
	}
}

// stop has strace let go, and waits until it has.
func (s *straced) stop() {
	if s.over {
		return
	}
	s.over = true
	_ = s.cmd.Process.Signal(syscall.SIGINT)
	select {
	case <-s.ended:
	case <-time.After(attachTime):
		_ = s.cmd.Process.Kill() // The kernel lets the threads go.
		<-s.ended
	}
	_ = unix.Prctl(unix.PR_SET_PTRACER, 0, 0, 0, 0)
}

func (s *straced) read() (map[string]uint64, error) {
	s.stop()
	b, err := os.ReadFile(s.file)
	if err != nil {
		return nil, err
	}
	return straceCounts(string(b)), nil
}

func (s *straced) end() {
	s.stop()
	_ = os.Remove(s.file)
}

// straceCounts reads the table of strace -c: time, seconds, time a call, calls, errors
// if there were any, name.
func straceCounts(text string) map[string]uint64 {
	counts := map[string]uint64{}
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		if len(f) < 5 || f[len(f)-1] == "total" {
			continue
		}
		n, err := strconv.ParseUint(f[3], 10, 64)
		if err != nil {
			continue // the heading, or a rule
		}
		counts[f[len(f)-1]] = n
	}
	return counts
}
