package hostfs

import (
	"fmt"
	"io/fs"
	"strconv"
	"strings"
	"time"
)

// CPUTime is what all CPUs together did since the machine started, in the ticks
// of /proc/stat: ratios of them are what counts.
type CPUTime struct {
	User, Nice, System, Idle, IOWait, IRQ, SoftIRQ, Steal int64
}

// Total is everything. Guest time is part of User and Nice.
func (t CPUTime) Total() int64 {
	return t.User + t.Nice + t.System + t.Idle + t.IOWait + t.IRQ + t.SoftIRQ + t.Steal
}

// Minus is what has happened since an earlier reading. The kernel lets idle and
// iowait go back a little.
func (t CPUTime) Minus(earlier CPUTime) CPUTime {
	return CPUTime{
		max(0, t.User-earlier.User), max(0, t.Nice-earlier.Nice), max(0, t.System-earlier.System),
		max(0, t.Idle-earlier.Idle), max(0, t.IOWait-earlier.IOWait), max(0, t.IRQ-earlier.IRQ),
		max(0, t.SoftIRQ-earlier.SoftIRQ), max(0, t.Steal-earlier.Steal),
	}
}

// ReadCPUTime reads the first line of /proc/stat.
func ReadCPUTime(root fs.FS) (CPUTime, error) {
	const name = "proc/stat"
	var t CPUTime
	text, err := String(root, name)
	if err != nil {
		return t, err
	}
	line, _, _ := strings.Cut(text, "\n")
	f := strings.Fields(line)
	if len(f) < 9 || f[0] != "cpu" {
		return t, malformed(name, line)
	}
	for i, p := range []*int64{&t.User, &t.Nice, &t.System, &t.Idle, &t.IOWait, &t.IRQ, &t.SoftIRQ, &t.Steal} {
		if *p, err = strconv.ParseInt(f[i+1], 10, 64); err != nil || *p < 0 || *p > 1<<58 {
			return t, malformed(name, line)
		}
	}
	return t, nil
}

// Uptime is how long ago the machine started, suspensions included.
func Uptime(root fs.FS) (time.Duration, error) {
	const name = "proc/uptime"
	text, err := String(root, name)
	if err != nil {
		return 0, err
	}
	first, _, _ := strings.Cut(text, " ")
	seconds, err := strconv.ParseFloat(first, 64)
	if err != nil || !(seconds >= 0 && seconds < 1<<32) {
		return 0, malformed(name, text)
	}
	return time.Duration(seconds * float64(time.Second)), nil
}

// Pressure says how much of the time somebody who could run had to wait for a
// CPU, in percent of the last 10, 60 and 300 seconds, and in all.
type Pressure struct {
	Avg10, Avg60, Avg300 float64
	Total                time.Duration
}

// ReadPressure reads the "some" line of a pressure file of the machine
// ("proc/pressure/cpu") or of a cgroup. Kernels can have it switched off: the
// error is then fs.ErrNotExist, or the kernel's own "operation not supported".
func ReadPressure(root fs.FS, name string) (Pressure, error) {
	var p Pressure
	text, err := String(root, name)
	if err != nil {
		return p, err
	}
	line, _, _ := strings.Cut(text, "\n")
	var total int64
	n, err := fmt.Sscanf(line, "some avg10=%f avg60=%f avg300=%f total=%d", &p.Avg10, &p.Avg60, &p.Avg300, &total)
	if err != nil || n != 4 {
		return p, malformed(name, line)
	}
	p.Total = micros(total)
	return p, nil
}
