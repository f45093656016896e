package patient

import (
	"os"
	"os/exec"
)

// refusal tells a process of Refuse what it is to do, and program what to become.
const (
	refusal = "DETENT_REFUSE"
	program = "DETENT_REFUSE_PROGRAM"

	refuse     = "refuse"             // refuse the call, become the program
	refuseHide = "refuse and hide"    // refuse it, then
	hide       = "hide, with refusal" // start the program without a vDSO

	// cannot is the exit code where that cannot be done, with the reason on stderr.
	cannot = 77
)

// Refuse changes a command that has not been started: a filter of system calls, as
// sandboxes have them, will refuse it clock_gettime, and without vdso it will not
// find the vDSO either, which hides that from most programs. Where that is not
// possible the command ends with the code [CannotRefuse].
func Refuse(cmd *exec.Cmd, vdso bool) error {
	exe, err := os.Executable()
	if err != nil {
		return err
	}
	what := refuse
	if !vdso {
		what = refuseHide
	}
	if cmd.Env == nil {
		cmd.Env = os.Environ()
	}
	cmd.Env = append(cmd.Env, refusal+"="+what, program+"="+cmd.Path)
	cmd.Path = exe
	return nil
}

// CannotRefuse is the exit code of a command for which Refuse did not work.
const CannotRefuse = cannot
