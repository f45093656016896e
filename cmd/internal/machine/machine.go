package machine

import (
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"strconv"
	"strings"
)

// An Info is what the figures depend on.
type Info struct {
	CPUModel    string `json:"cpu_model"`
	CPUs        int    `json:"cpus"`
	MemoryBytes uint64 `json:"memory_bytes"` // 0: unknown
	OS          string `json:"os"`
	Arch        string `json:"arch"`
	Kernel      string `json:"kernel"`
	Clocksource string `json:"clocksource"`
	Go          string `json:"go_version"`
	GOMAXPROCS  int    `json:"gomaxprocs"`
	// Waker is "timerfd" or "portable", and WakerReason says why the latter.
	Waker       string `json:"waker"`
	WakerReason string `json:"waker_reason,omitempty"`
	// Environment are the Go runtime's settings that are not the default.
	Environment []string `json:"environment"`
}

// The ways in which detent is woken.
const (
	WakerTimerfd  = "timerfd"
	WakerPortable = "portable"
)

// unknown stands for what the machine does not tell.
const unknown = "unknown"

// Read describes the machine that it runs on.
func Read() Info {
	m := Info{
		CPUs: runtime.NumCPU(), OS: runtime.GOOS, Arch: runtime.GOARCH,
		Go: runtime.Version(), GOMAXPROCS: runtime.GOMAXPROCS(0),
		Kernel: kernel(), Waker: WakerTimerfd, Environment: []string{},
	}
	root := os.DirFS("/")
	m.CPUModel = cpuModel(root)
	m.Clocksource = clocksource(root)
	m.MemoryBytes, _ = meminfo(root, "MemTotal")
	if why := portableReason(); why != "" {
		m.Waker, m.WakerReason = WakerPortable, why
	}
	for _, name := range []string{"GOGC", "GOMEMLIMIT", "GODEBUG"} {
		if v := os.Getenv(name); v != "" {
			m.Environment = append(m.Environment, name+"="+v)
		}
	}
	return m
}

// cpuModel reads the name of the first CPU. Not every architecture has one.
func cpuModel(root fs.FS) string {
	b, err := fs.ReadFile(root, "proc/cpuinfo")
	if err != nil {
		return platformCPU()
	}
	for _, key := range []string{"model name", "Model", "cpu model", "uarch", "cpu", "CPU implementer"} {
		for line := range strings.Lines(string(b)) {
			name, value, ok := strings.Cut(line, ":")
			if ok && strings.TrimSpace(name) == key {
				return strings.TrimSpace(value)
			}
		}
	}
	return unknown
}

// clocksource is where Linux takes its time from.
func clocksource(root fs.FS) string {
	b, err := fs.ReadFile(root, "sys/devices/system/clocksource/clocksource0/current_clocksource")
	if err != nil {
		return unknown
	}
	return strings.TrimSpace(string(b))
}

// meminfo reads a line of /proc/meminfo, in bytes.
func meminfo(root fs.FS, key string) (uint64, bool) {
	b, err := fs.ReadFile(root, "proc/meminfo")
	if err != nil {
		return 0, false
	}
	for line := range strings.Lines(string(b)) {
		if f := strings.Fields(line); len(f) >= 2 && f[0] == key+":" {
			kb, err := strconv.ParseUint(f[1], 10, 64)
			return kb * 1024, err == nil
		}
	}
	return 0, false
}

// AvailableMemory is what can be taken without swapping; false where the
// system does not tell.
func AvailableMemory() (uint64, bool) { return meminfo(os.DirFS("/"), "MemAvailable") }

// ResidentBytes is the memory that this process has in use.
func ResidentBytes() (uint64, bool) { return statm(os.DirFS("/")) }

func statm(root fs.FS) (uint64, bool) {
	b, err := fs.ReadFile(root, "proc/self/statm")
	if err != nil {
		return 0, false
	}
	f := strings.Fields(string(b))
	if len(f) < 2 {
		return 0, false
	}
	pages, err := strconv.ParseUint(f[1], 10, 64)
	return pages * uint64(os.Getpagesize()), err == nil
}

func Gigabytes(b uint64) string { return fmt.Sprintf("%.1f GB", float64(b)/1e9) }
