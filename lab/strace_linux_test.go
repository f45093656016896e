package lab

import (
	"maps"
	"os/exec"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestStraceCounts(t *testing.T) {
	const text = `% time     seconds  usecs/call     calls    errors syscall
------ ----------- ----------- --------- --------- ----------------
 79.37  114.646338        6223     18422      5370 futex
 18.88   27.277894        1190     22919           nanosleep
------ ----------- ----------- --------- --------- ----------------
100.00  141.924232        7413     41341      5370 total
`
	if got, want := straceCounts(text), map[string]uint64{"futex": 18422, "nanosleep": 22919}; !maps.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// TestStrace: what this process calls while strace is attached is counted.
func TestStrace(t *testing.T) {
	if _, err := exec.LookPath("strace"); err != nil {
		t.Skip(err)
	}
	c, err := countByStrace([]string{"nanosleep", "no_such_call"})
	if err != nil {
		t.Skipf("this process may not be traced: %v", err)
	}
	const calls = 50
	for range calls {
		ts := unix.NsecToTimespec(int64(time.Microsecond))
		_ = unix.Nanosleep(&ts, nil)
	}
	if counts := c.stop(); counts["nanosleep"] < calls {
		t.Errorf("%d calls made, counted %v", calls, counts)
	}
}
