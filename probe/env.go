package probe

import (
	"errors"
	"fmt"
	"io/fs"
	"runtime"

	"github.com/detent-go/detent/internal/hostfs"
)

// An Env is what the checks of one run share. They run one after another.
type Env struct {
	// Root is "/" of the machine that is looked at.
	Root fs.FS
	// Own says that it is this machine: only then can anything be measured, or
	// asked from the kernel by a system call.
	Own    bool
	Effort Effort
	// Arch is the machine's architecture, as GOARCH names it; "" if unknown.
	Arch string

	log      kernelLog
	platform *PlatformData
}

// linux returns why /proc and /sys cannot be read: nil if they can.
func (e *Env) linux() error {
	if e.Own && runtime.GOOS != "linux" {
		return fmt.Errorf("%s has no /proc and /sys as Linux has them: %w", runtime.GOOS, errors.ErrUnsupported)
	}
	return nil
}

// mounted returns which of /proc and /sys is not what it is on Linux: nil if both
// are. What a check does not find there then proves nothing. Copied trees are never
// whole.
func (e *Env) mounted() error {
	if !e.Own {
		return nil
	}
	var errs []error
	for _, of := range []struct{ tree, file string }{{"/proc", "proc/self/stat"}, {"/sys", "sys/devices"}} {
		if _, err := fs.Stat(e.Root, of.file); err != nil {
			errs = append(errs, unseen(of.tree, err, "it is not mounted here, so that most of what is read from it is missing in this report"))
		}
	}
	return errors.Join(errs...)
}

// own returns why nothing can be measured: nil if it can.
func (e *Env) own() error {
	if !e.Own {
		return fmt.Errorf("measured on the machine itself only, not from its files: %w", errors.ErrUnsupported)
	}
	return nil
}

// x86 reports whether the machine can be one with a TSC, as far as is known.
func (e *Env) x86() bool { return e.Arch == "amd64" || e.Arch == "386" || e.Arch == "" }

// A kernelLog is read once a run: it can be long.
type kernelLog struct {
	read bool
	log  *hostfs.Log
	err  error
}

// kernelLog returns what there is of the kernel's log: an empty one with the error,
// which says who could see it.
func (e *Env) kernelLog() (*hostfs.Log, error) {
	if e.log.read {
		return e.log.log, e.log.err
	}
	var log *hostfs.Log
	var err error
	if e.Own {
		// The end of the device is told by a time in which nothing comes.
		err = clockStopped()
	}
	if err == nil {
		log, err = hostfs.ReadLog(e.Root)
	}
	if err != nil && e.Own {
		if text, klogErr := klog(); klogErr == nil {
			log, err = hostfs.ParseLog("klogctl(2)", text), nil
		}
	}
	if err != nil {
		log = &hostfs.Log{}
		hint := "root can; everybody after sysctl kernel.dmesg_restrict=0"
		if errors.Is(err, fs.ErrNotExist) {
			hint = "in a container it is the host's: look there"
		}
		err = unseen("the kernel's log", err, hint)
	}
	e.log = kernelLog{true, log, err}
	return log, err
}

// missing makes nothing of an error that says that a machine does not have a file.
func missing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// hasLine returns the first line that holds all of the parts.
func hasLine(log *hostfs.Log, parts ...string) (hostfs.LogLine, bool) {
	for _, l := range log.Lines {
		if containsAll(l.Text, parts) {
			return l, true
		}
	}
	return hostfs.LogLine{}, false
}
