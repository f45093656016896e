package lab

import (
	"fmt"
	"io"
	"os/exec"
	"syscall"
)

// guardianScript waits for a word. If its input ends without one, then who started it
// has died, however that came about, and it puts the clocksource back. Signals that
// end a terminal's programs do not end it.
const guardianScript = `trap '' HUP INT QUIT TERM
read -r word
[ "$word" = done ] || printf %s "$1" > "$2"`

// guarded calls f, which may change the clocksource, and puts it back: when f returns or
// panics by itself; when the process dies meanwhile, by a process that outlives it.
func (c clocksource) guarded(f func() error) (err error) {
	before, _, err := c.read()
	if err != nil {
		return err
	}
	cmd := exec.Command("/bin/sh", "-c", guardianScript, "sh", before, c.currentFile())
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	alive, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("nobody would put the clocksource back if this process died: %w", err)
	}
	defer func() {
		back := c.use(before)
		if back == nil {
			_, back = io.WriteString(alive, "done\n")
		}
		_ = alive.Close() // Without the word, the guardian puts it back.
		if e := cmd.Wait(); back == nil {
			back = e
		}
		if back != nil {
			back = fmt.Errorf("putting the clocksource back to %s: %w", before, back)
		}
		if err == nil {
			err = back
		}
	}()
	return f()
}
