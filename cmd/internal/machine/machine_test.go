package machine

import (
	"testing"
	"testing/fstest"
)

func TestMachineFiles(t *testing.T) {
	root := fstest.MapFS{
		"proc/cpuinfo":    {Data: []byte("processor\t: 0\nmodel\t\t: 1\nmodel name\t: Some CPU @ 2.60GHz\n\nprocessor\t: 1\nmodel name\t: Other\n")},
		"proc/meminfo":    {Data: []byte("MemTotal:       16 kB\nMemFree:         4 kB\nMemAvailable:    8 kB\n")},
		"proc/self/statm": {Data: []byte("100 7 3 1 0 5 0\n")},
		"sys/devices/system/clocksource/clocksource0/current_clocksource": {Data: []byte("kvm-clock\n")},
	}
	if got := cpuModel(root); got != "Some CPU @ 2.60GHz" {
		t.Errorf("CPU model %q", got)
	}
	if got := clocksource(root); got != "kvm-clock" {
		t.Errorf("clocksource %q", got)
	}
	if got, ok := meminfo(root, "MemAvailable"); !ok || got != 8192 {
		t.Errorf("available memory %d, %v", got, ok)
	}
	if _, ok := meminfo(root, "MemNothing"); ok {
		t.Error("a line that is not there has been read")
	}
	if got, ok := statm(root); !ok || got == 0 || got%7 != 0 {
		t.Errorf("resident bytes %d, %v", got, ok)
	}
}

// TestMachineOther: a machine that tells nothing of this is described too.
func TestMachineOther(t *testing.T) {
	none := fstest.MapFS{}
	if got := clocksource(none); got != unknown {
		t.Errorf("clocksource %q", got)
	}
	if _, ok := meminfo(none, "MemAvailable"); ok {
		t.Error("memory read from nothing")
	}
	if _, ok := statm(none); ok {
		t.Error("resident bytes read from nothing")
	}
	arm := fstest.MapFS{"proc/cpuinfo": {Data: []byte("processor\t: 0\nCPU implementer\t: 0x41\n")}}
	if got := cpuModel(arm); got != "0x41" {
		t.Errorf("CPU model of arm64 %q", got)
	}
	silent := fstest.MapFS{"proc/cpuinfo": {Data: []byte("processor\t: 0\n")}}
	if got := cpuModel(silent); got != unknown {
		t.Errorf("CPU model of a silent one %q", got)
	}
}

func TestRead(t *testing.T) {
	t.Setenv("GOGC", "150")
	m := Read()
	if m.CPUModel == "" || m.CPUs < 1 || m.Kernel == "" || m.Clocksource == "" || m.GOMAXPROCS < 1 {
		t.Errorf("incomplete: %+v", m)
	}
	if (m.Waker == WakerPortable) != (m.WakerReason != "") {
		t.Errorf("waker %q for the reason %q", m.Waker, m.WakerReason)
	}
	found := false
	for _, e := range m.Environment {
		found = found || e == "GOGC=150"
	}
	if !found {
		t.Errorf("GOGC missing from %q", m.Environment)
	}
}
