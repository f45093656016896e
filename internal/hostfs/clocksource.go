package hostfs

import (
	"io/fs"
	"strings"
)

const clocksourceDir = "sys/devices/system/clocksource/clocksource0"

// A Clocksource is what the kernel takes its time from, and could take it from.
type Clocksource struct {
	Current   string
	Available []string // the current one among them; best first
}

// ReadClocksource reads both from sysfs. The list of those available says nothing
// about which one is used: only Current does.
func ReadClocksource(root fs.FS) (Clocksource, error) {
	var c Clocksource
	var err error
	if c.Current, err = String(root, clocksourceDir+"/current_clocksource"); err != nil {
		return c, err
	}
	list, err := String(root, clocksourceDir+"/available_clocksource")
	c.Available = strings.Fields(list)
	return c, err
}
