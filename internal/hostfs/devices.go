package hostfs

import (
	"errors"
	"io/fs"
	"strings"
)

// A PTPClock is a clock device of /sys/class/ptp: of a network card, or one that
// shows the host's time to a virtual machine.
type PTPClock struct {
	Device string // ptp0
	Name   string // as its driver calls it: "KVM virtual PTP"
}

// ReadPTPClocks lists them; none, and no error, if there is none.
func ReadPTPClocks(root fs.FS) ([]PTPClock, error) {
	const dir = "sys/class/ptp"
	names, err := numbered(root, dir, "ptp")
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var clocks []PTPClock
	for _, name := range names {
		clock, err := String(root, dir+"/"+name+"/clock_name")
		if err != nil {
			return clocks, err
		}
		clocks = append(clocks, PTPClock{Device: name, Name: clock})
	}
	return clocks, err
}

// ReadClockevents returns the device that interrupts each CPU when its next timer is
// due, in the order of CPUs, and the one that wakes CPUs whose own device sleeps
// with them ("" if there is none).
func ReadClockevents(root fs.FS) (perCPU []string, broadcast string, err error) {
	const dir = "sys/devices/system/clockevents"
	names, err := numbered(root, dir, "clockevent")
	if err != nil {
		return nil, "", err
	}
	for _, name := range names {
		device, err := String(root, dir+"/"+name+"/current_device")
		if err != nil {
			return perCPU, "", err
		}
		perCPU = append(perCPU, device)
	}
	broadcast, _ = String(root, dir+"/broadcast/current_device")
	return perCPU, strings.TrimSuffix(broadcast, "\n"), nil
}

// DMI is how the firmware names the machine; empty strings where it does not.
type DMI struct{ Vendor, Product, BIOS string }

// ReadDMI reads it. The error matches fs.ErrNotExist if there is no such firmware.
func ReadDMI(root fs.FS) (DMI, error) {
	const dir = "sys/class/dmi/id"
	var d DMI
	var err error
	if d.Vendor, err = String(root, dir+"/sys_vendor"); err != nil {
		return d, err
	}
	d.Product, _ = String(root, dir+"/product_name")
	d.BIOS, _ = String(root, dir+"/bios_vendor")
	return d, nil
}
