package serve

import (
	"fmt"

	"kernel.org/pub/linux/libs/security/libcap/cap"
)

// kept are the capabilities that watching needs after it has begun: the rest of a
// root's powers over the machine is given up, by all threads and for good.
var kept = []cap.Value{
	cap.BPF, cap.PERFMON, // reading the maps, and attaching to what starts
	cap.SYS_PTRACE, cap.DAC_READ_SEARCH, // /proc of other users' processes
	cap.SYSLOG, // the kernel's log and symbols
}

// Drop gives up the privileges that are not needed any more. What this process does
// not have it does not get.
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
	if err := want.SetProc(); err != nil {
		return fmt.Errorf("dropping capabilities: %w", err)
	}
	return nil
}
