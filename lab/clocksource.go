package lab

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"time"
)

// clocksourceDir is where Linux tells of its clocksources, and lets root choose.
const clocksourceDir = "/sys/devices/system/clocksource/clocksource0"

// A clocksource is the kernel's choice of what it takes the time from, as a directory
// of files.
type clocksource struct{ dir string }

func (c clocksource) currentFile() string { return c.dir + "/current_clocksource" }

// read returns the clocksource that is in use, and those that there are.
func (c clocksource) read() (current string, available []string, err error) {
	b, err := os.ReadFile(c.currentFile())
	if err != nil {
		return "", nil, err
	}
	current = strings.TrimSpace(string(b))
	if b, err = os.ReadFile(c.dir + "/available_clocksource"); err != nil {
		return "", nil, err
	}
	available = strings.Fields(string(b))
	if current == "" || !slices.Contains(available, current) {
		return "", nil, fmt.Errorf("the clocksource in use is %q, of %q", current, available)
	}
	return current, available, nil
}

// settleTime is for how long a change is waited for.
const settleTime = time.Second

// use has the kernel take the time from another clocksource, and waits until it does.
func (c clocksource) use(name string) error {
	if err := os.WriteFile(c.currentFile(), []byte(name), 0); err != nil {
		return err
	}
	for begin := time.Now(); ; time.Sleep(time.Millisecond) {
		current, _, err := c.read()
		if err == nil && current == name {
			// The vDSO's page follows with the next tick.
			time.Sleep(20 * time.Millisecond)
			return nil
		}
		if time.Since(begin) > settleTime {
			return fmt.Errorf("the kernel does not take %s: it has %s, %v", name, current, err)
		}
	}
}
