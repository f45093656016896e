package watch

import (
	"fmt"
	"path"
	"strings"
	"time"

	"github.com/detent-go/detent/trace"
)

// Duration writes one with two or three digits that count: "870ns", "5.2us",
// "31ms", "2.4s".
func Duration(d time.Duration) string {
	if d == 0 {
		return "0"
	}
	v, unit := float64(d), "ns"
	for _, next := range []struct {
		factor float64
		unit   string
	}{{1e3, "us"}, {1e3, "ms"}, {1e3, "s"}, {60, "min"}, {60, "h"}} {
		if v < next.factor && v > -next.factor {
			break
		}
		v, unit = v/next.factor, next.unit
	}
	if v < 9.95 && v > -9.95 && unit != "ns" {
		return fmt.Sprintf("%.1f%s", v, unit)
	}
	return fmt.Sprintf("%.0f%s", v, unit)
}

// AtMost writes a bound, as a histogram gives for its quantiles.
func AtMost(d time.Duration) string {
	if d == 0 {
		return "0"
	}
	return "≤" + Duration(d)
}

// Rate writes how often something happens in a second: "0.2", "31", "5.2k", "1.3M".
func Rate(n uint64, in time.Duration) string {
	if n == 0 || in <= 0 {
		return "0"
	}
	v, unit := float64(n)/in.Seconds(), ""
	for _, next := range []string{"k", "M", "G"} {
		if v < 999.5 {
			break
		}
		v, unit = v/1000, next
	}
	if v < 9.95 {
		return fmt.Sprintf("%.1f%s", v, unit)
	}
	return fmt.Sprintf("%.0f%s", v, unit)
}

// Why says in a sentence why a process makes system calls for a clock.
func Why(r trace.Reason) string {
	switch r {
	case trace.ReasonClock:
		return "no vDSO serves this clock: reading it is a system call on every machine"
	case trace.ReasonClocksource:
		return "the kernel's clocksource cannot be read by programs, so the vDSO asks the kernel for each reading, in every process of this machine"
	case trace.ReasonOldVDSO:
		return "this kernel's vDSO does not serve this clock, and serves others"
	case trace.ReasonNoVDSO:
		return "the kernel has given this process no vDSO"
	case trace.ReasonHidden:
		return "the kernel has given this process a vDSO, and something took it out of the auxiliary vector before the program looked: a tracer or a sandbox"
	case trace.ReasonUnusable:
		return "the program found a vDSO and does not use it: what its runtime looks for is not in it"
	case trace.ReasonDirect:
		return "the program makes the system call itself, past the vDSO"
	}
	return "not enough could be seen: the process has ended, or has no symbols"
}

// wrappers are functions that stand between a system call and who wanted it.
var wrappers = []string{
	"runtime.", "internal/runtime/", "syscall.", "internal/syscall/", "golang.org/x/sys/", "time.", "runtime/internal/",
	"clock_gettime", "__clock_gettime", "gettimeofday", "__gettimeofday", "syscall",
	"__vdso_", "__kernel_", "std::time::", "_ZN3std",
}

// Caller returns the frame of a stack that wanted the time: the first that is not a
// wrapper around the system call. It returns the innermost, and false, if there are
// only such, or no symbols.
func Caller(s trace.Stack) (trace.Frame, bool) {
	for _, f := range s.Frames {
		if f.Func != "" && !isWrapper(f) {
			return f, true
		}
	}
	if len(s.Frames) == 0 {
		return trace.Frame{}, false
	}
	return s.Frames[0], false
}

func isWrapper(f trace.Frame) bool {
	if f.Object == "[vdso]" {
		return true
	}
	for _, w := range wrappers {
		if f.Func == w || strings.HasPrefix(f.Func, w) && strings.ContainsAny(w[len(w)-1:], "./:_") {
			return true
		}
	}
	return false
}

// Place writes where a frame is, for people.
func Place(f trace.Frame) string {
	switch {
	case f.Func != "" && f.File != "":
		return fmt.Sprintf("%s (%s:%d)", f.Func, path.Base(f.File), f.Line)
	case f.Func != "":
		return f.Func
	case f.Object != "":
		return fmt.Sprintf("%#x in %s", f.PC, path.Base(f.Object))
	case f.PC != 0:
		return fmt.Sprintf("%#x", f.PC)
	}
	return ""
}

// share writes a part of a whole as a percentage, "" if there is no whole.
func share(part, whole time.Duration) string {
	if whole <= 0 {
		return ""
	}
	return fmt.Sprintf("%.0f%%", 100*float64(part)/float64(whole))
}
