package patient

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"reflect"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/detent-go/detent/cmd/internal/atexec"
)

// playRefused does what Refuse asks of this process, if it does, and never returns
// then.
func playRefused() {
	what, ok := os.LookupEnv(refusal)
	if !ok {
		return
	}
	path := os.Getenv(program)
	code, err := cannot, error(nil)
	switch what {
	case refuse:
		err = become(path, "")
	case refuseHide:
		// The filter is of this thread alone. After an exec it is of all, and of
		// those that they start.
		var exe string
		if exe, err = os.Executable(); err == nil {
			err = become(exe, hide)
		}
	case hide:
		code, err = startHidden(path)
	default:
		err = fmt.Errorf("what is %q?", what)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "patient:", err)
	}
	os.Exit(code)
}

// become replaces this process by a program, to which clock_gettime is refused. If
// that is this one again, next is what it is to do.
func become(path, next string) error {
	runtime.LockOSThread()
	if err := refuseClock(); err != nil {
		return err
	}
	err := os.Setenv(refusal, next)
	if next == "" {
		err = errors.Join(os.Unsetenv(refusal), os.Unsetenv(program))
	}
	if err != nil {
		return err
	}
	return syscall.Exec(path, os.Args, os.Environ())
}

// refuseClock has the kernel refuse clock_gettime to the calling thread, for good.
func refuseClock() error {
	const (
		load   = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS
		equal  = unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K
		result = unix.BPF_RET | unix.BPF_K
		number = 0 // of the system call, in the data that the filter sees
	)
	filter := []unix.SockFilter{
		{Code: load, K: number},
		{Code: equal, K: unix.SYS_CLOCK_GETTIME, Jt: 0, Jf: 1},
		{Code: result, K: unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)},
		{Code: result, K: unix.SECCOMP_RET_ALLOW},
	}
	list := &unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	err := unix.Prctl(unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, reflect.ValueOf(list).Pointer(), 0, 0)
	runtime.KeepAlive(list)
	return err
}

// startHidden runs a program without a vDSO and returns its exit code.
func startHidden(path string) (code int, err error) {
	if err := errors.Join(os.Unsetenv(refusal), os.Unsetenv(program)); err != nil {
		return cannot, err
	}
	cmd := exec.Command(path)
	cmd.Args = os.Args
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	held, err := atexec.Start(cmd)
	if err != nil {
		return cannot, err
	}
	hidden := held.HideAux(atexec.SysinfoEHDR)
	if err := errors.Join(hidden, held.Resume()); err != nil {
		cmd.Process.Kill()
		cmd.Wait()
		return cannot, err
	}
	var exit *exec.ExitError
	if err := cmd.Wait(); err != nil && !errors.As(err, &exit) {
		return cannot, err
	}
	if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 128 + int(status.Signal()), fmt.Errorf("%v", status.Signal())
	}
	return cmd.ProcessState.ExitCode(), nil
}
