package serve

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
	"kernel.org/pub/linux/libs/security/libcap/cap"
)

// kept are the capabilities that watching needs after it has begun.
var kept = []cap.Value{
	cap.BPF, cap.PERFMON, // reading the maps, and attaching to what starts
	cap.SYS_PTRACE, cap.DAC_READ_SEARCH, // /proc of other users' processes
	cap.SYSLOG, // the kernel's log and symbols
}

// nobody is the user and the group that own nothing.
const nobody = 65534

// Drop gives up the privileges that are not needed any more, by all threads and for
// good: root becomes nobody, with the few capabilities of kept. Root without
// capabilities would still own the host's files. What this process does not have it
// does not get.
func Drop() error {
	have := cap.GetProc()
	want := cap.NewSet()
	for _, v := range kept {
		permitted, err := have.GetFlag(cap.Permitted, v)
		if err != nil || !permitted {
			continue // The kernel does not know it, or this process has not got it.
		}
		if err := want.SetFlag(cap.Permitted, true, v); err != nil {
			return err
		}
		if err := want.SetFlag(cap.Effective, true, v); err != nil {
			return err
		}
	}
	// Programs that this one executes get no more than it has itself.
	if err := cap.SetAmbient(false); err != nil {
		return fmt.Errorf("clearing ambient capabilities: %w", err)
	}
	for v := range cap.MaxBits() {
		if keep, _ := want.GetFlag(cap.Permitted, v); keep {
			continue
		}
		if held, err := have.GetFlag(cap.Effective, cap.SETPCAP); err == nil && held {
			if err := cap.DropBound(v); err != nil {
				return fmt.Errorf("dropping %v from the bounding set: %w", v, err)
			}
		}
	}
	if err := becomeNobody(have); err != nil {
		return err
	}
	if err := want.SetProc(); err != nil {
		return fmt.Errorf("dropping capabilities: %w", err)
	}
	if _, err := cap.Prctlw(unix.PR_SET_NO_NEW_PRIVS, 1); err != nil {
		return fmt.Errorf("forbidding new privileges: %w", err)
	}
	return nil
}

// becomeNobody leaves root's user and groups; the permitted capabilities stay. Where
// it may not, as in a container that is given a few capabilities and these not, root
// stays root.
func becomeNobody(have *cap.Set) error {
	if os.Getuid() != 0 {
		return nil
	}
	for _, v := range []cap.Value{cap.SETGID, cap.SETUID} {
		if may, err := have.GetFlag(cap.Permitted, v); err != nil || !may {
			return nil
		}
	}
	if err := cap.SetGroups(nobody); err != nil {
		return fmt.Errorf("leaving root's groups: %w", err)
	}
	if err := cap.SetUID(nobody); err != nil {
		return fmt.Errorf("leaving root's user: %w", err)
	}
	return nil
}
