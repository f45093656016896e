package hostfs

import (
	"errors"
	"io/fs"
	"strconv"
	"strings"
	"time"
)

// Fields reads a file of lines "Name: value", such as /proc/self/status.
func Fields(root fs.FS, name string) (map[string]string, error) {
	text, err := String(root, name)
	if err != nil {
		return nil, err
	}
	fields := map[string]string{}
	for line := range strings.Lines(text) {
		if key, value, ok := strings.Cut(line, ":"); ok {
			fields[strings.TrimSpace(key)] = strings.TrimSpace(value)
		}
	}
	return fields, nil
}

// TimerSlack is how much later than asked the kernel may end a sleep of this
// process's first thread.
func TimerSlack(root fs.FS) (time.Duration, error) {
	n, err := Int(root, "proc/self/timerslack_ns")
	return nanos(n), err
}

// Scheduling policies, as sched(7) numbers them.
const (
	PolicyOther    = 0
	PolicyFIFO     = 1
	PolicyRR       = 2
	PolicyBatch    = 3
	PolicyIdle     = 5
	PolicyDeadline = 6
	PolicyExt      = 7
)

// A Thread is how the kernel schedules a thread.
type Thread struct {
	Nice     int
	Policy   int
	Priority int // of PolicyFIFO and PolicyRR; 0 of others
}

// ReadThread reads how this process's first thread is scheduled.
func ReadThread(root fs.FS) (Thread, error) {
	const name = "proc/self/stat"
	var t Thread
	text, err := String(root, name)
	if err != nil {
		return t, err
	}
	// The name in parentheses may hold anything, parentheses too.
	end := strings.LastIndexByte(text, ')')
	if end < 0 {
		return t, malformed(name, text)
	}
	// Fields as proc(5) numbers them, from the third on.
	const first, nice, priority, policy = 3, 19, 40, 41
	f := strings.Fields(text[end+1:])
	if len(f) <= policy-first {
		return t, malformed(name, text)
	}
	var err1, err2, err3 error
	t.Nice, err1 = strconv.Atoi(f[nice-first])
	t.Priority, err2 = strconv.Atoi(f[priority-first])
	t.Policy, err3 = strconv.Atoi(f[policy-first])
	if errors.Join(err1, err2, err3) != nil {
		return t, malformed(name, text)
	}
	return t, nil
}

// Limit reads a soft limit of this process from /proc/self/limits, by the name
// that it has there; -1 is unlimited.
func Limit(root fs.FS, limit string) (int64, error) {
	const name = "proc/self/limits"
	text, err := String(root, name)
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(text) {
		rest, ok := strings.CutPrefix(line, limit+" ")
		if !ok {
			continue
		}
		f := strings.Fields(rest)
		if len(f) > 0 && f[0] == "unlimited" {
			return -1, nil
		}
		if len(f) > 0 {
			if n, err := strconv.ParseInt(f[0], 10, 64); err == nil {
				return n, nil
			}
		}
		return 0, malformed(name, line)
	}
	return 0, malformed(name, text)
}

// Processes lists the names of those that can be seen, by process number.
func Processes(root fs.FS) (map[int]string, error) {
	entries, err := fs.ReadDir(root, "proc")
	if err != nil {
		return nil, err
	}
	names := map[int]string{}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || pid <= 0 {
			continue
		}
		// It may have ended since.
		if comm, err := String(root, "proc/"+e.Name()+"/comm"); err == nil {
			names[pid] = comm
		}
	}
	return names, nil
}

// The numbers that the kernel gives the namespaces that it starts with.
const (
	InitialPIDNamespace    = 0xeffffffc
	InitialCgroupNamespace = 0xeffffffb
	InitialTimeNamespace   = 0xeffffffa
)

// Namespace returns the number of one of this process's namespaces: "time",
// "pid", "cgroup", "time_for_children".
func Namespace(root fs.FS, kind string) (uint64, error) {
	name := "proc/self/ns/" + kind
	link, err := fs.ReadLink(root, name)
	if err != nil {
		return 0, err
	}
	// time:[4026531834]
	_, rest, ok := strings.Cut(link, "[")
	n, err := strconv.ParseUint(strings.TrimSuffix(rest, "]"), 10, 64)
	if !ok || err != nil {
		return 0, malformed(name, link)
	}
	return n, nil
}

// TimeOffsets are what a time namespace adds to the machine's clocks.
type TimeOffsets struct{ Monotonic, Boottime time.Duration }

// ReadTimeOffsets reads those of the time namespace that children of this process
// get: its own, unless it has made a new one.
func ReadTimeOffsets(root fs.FS) (TimeOffsets, error) {
	const name = "proc/self/timens_offsets"
	var o TimeOffsets
	text, err := String(root, name)
	if err != nil {
		return o, err
	}
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		if len(f) != 3 {
			return o, malformed(name, line)
		}
		s, err1 := strconv.ParseInt(f[1], 10, 64)
		ns, err2 := strconv.ParseInt(f[2], 10, 64)
		const most = int64(1<<62) / int64(time.Second)
		if err1 != nil || err2 != nil || s < -most || s > most {
			return o, malformed(name, line)
		}
		d := time.Duration(s)*time.Second + time.Duration(ns)
		switch f[0] {
		case "monotonic", "1":
			o.Monotonic = d
		case "boottime", "7":
			o.Boottime = d
		}
	}
	return o, nil
}
