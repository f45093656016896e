package hostfs

import (
	"io/fs"
	"strings"
)

// A TimerList is what /proc/timer_list, for root alone, says of the first CPU.
type TimerList struct {
	HighRes bool // timers are as fine as the hardware; otherwise a tick each
	// Tickless says that the tick stops on idle CPUs.
	Tickless bool
}

// ReadTimerList reads the flags from whichever form the kernel writes.
func ReadTimerList(root fs.FS) (TimerList, error) {
	const name = "proc/timer_list"
	var t TimerList
	text, err := String(root, name)
	if err != nil {
		return t, err
	}
	found := false
	for line := range strings.Lines(text) {
		key, value, ok := strings.Cut(strings.TrimSpace(line), ":")
		if !ok {
			continue
		}
		on := strings.TrimSpace(value) != "0"
		switch strings.TrimSpace(key) {
		case ".hres_active", ".highres": // until 6.8, since 6.9
			t.HighRes, found = on, true
		case ".nohz_mode", ".nohz":
			t.Tickless = on
			return t, nil
		}
	}
	if !found {
		return t, malformed(name, text)
	}
	return t, nil
}
