package probe

import (
	"context"
	"fmt"
	"strings"

	"github.com/detent-go/detent/internal/hostfs"
)

// The check of what kind of machine this is. It has PlatformData.
var platformCheck = Check{
	Name:  "platform",
	About: "what the machine is: bare metal or virtual, under which hypervisor, in a container",
	Run: func(_ context.Context, e *Env) Result {
		if err := e.linux(); err != nil {
			return Result{Err: err}
		}
		d := e.platformData()
		return Result{Err: e.mounted(), Data: d, Findings: judgePlatform(d)}
	},
}

// PlatformData is the data of the check "platform".
type PlatformData struct {
	Virtual Known `json:"virtual"`
	// Hypervisor is one of "kvm", "xen", "hyperv", "vmware", "virtualbox", "parallels",
	// "apple", "bhyve", "acrn", "qemu" (without kvm) or ""; Name is for people.
	Hypervisor string     `json:"hypervisor,omitempty"`
	Name       string     `json:"name,omitempty"`
	Vendor     string     `json:"vendor,omitempty"` // who made the machine, by its firmware
	Product    string     `json:"product,omitempty"`
	Container  Known      `json:"container"`
	WSL        bool       `json:"wsl,omitempty"`
	GVisor     bool       `json:"gvisor,omitempty"`
	CPU        string     `json:"cpu,omitempty"`
	Evidence   []Evidence `json:"evidence,omitempty"`
}

// Known is an answer that need not be known.
type Known string

const (
	Yes     Known = "yes"
	No      Known = "no"
	Unclear Known = "unknown"
)

// hypervisorName is for people.
func hypervisorName(hypervisor string) string {
	switch hypervisor {
	case "kvm":
		return "KVM"
	case "xen":
		return "Xen"
	case "hyperv":
		return "Hyper-V"
	case "vmware":
		return "VMware"
	case "virtualbox":
		return "VirtualBox"
	case "parallels":
		return "Parallels"
	case "apple":
		return "Apple Virtualization"
	case "acrn":
		return "ACRN"
	case "qemu":
		return "QEMU without KVM"
	}
	return hypervisor
}

// platformData is read once a run, for checks that judge by it.
func (e *Env) platformData() *PlatformData {
	if e.platform == nil {
		e.platform = readPlatform(e)
	}
	return e.platform
}

func readPlatform(e *Env) *PlatformData {
	d := &PlatformData{Virtual: Unclear, Container: Unclear}
	found := func(hypervisor, name, value, source string) {
		if d.Hypervisor == "" {
			d.Hypervisor = hypervisor
		}
		d.Virtual = Yes
		d.Evidence = append(d.Evidence, Evidence{name, value, source})
	}
	if release, err := hostfs.Kernel(e.Root); err == nil && strings.Contains(strings.ToLower(release), "microsoft") {
		d.WSL = strings.Contains(release, "WSL")
		found("hyperv", "kernel", release, "/proc/sys/kernel/osrelease")
	}
	if kind, err := hostfs.String(e.Root, "sys/hypervisor/type"); err == nil && kind == "xen" {
		found("xen", "type", kind, "/sys/hypervisor/type")
	}
	log, _ := e.kernelLog()
	for _, h := range []struct{ text, hypervisor string }{
		{"Hypervisor detected: KVM", "kvm"}, {"Hypervisor detected: Microsoft Hyper-V", "hyperv"}, {"Hypervisor detected: VMware", "vmware"},
		{"Hypervisor detected: Xen", "xen"}, {"Hypervisor detected: ACRN", "acrn"}, {"smccc: KVM: hypervisor services detected", "kvm"},
	} {
		if l, ok := hasLine(log, h.text); ok {
			found(h.hypervisor, "kernel's log", l.Text, log.Source)
		}
	}
	if source, err := hostfs.ReadClocksource(e.Root); err == nil {
		for _, name := range source.Available {
			switch {
			case name == "kvm-clock":
				found("kvm", "available clocksource", name, "/sys/devices/system/clocksource/clocksource0/available_clocksource")
			case name == "xen":
				found("xen", "available clocksource", name, "/sys/devices/system/clocksource/clocksource0/available_clocksource")
			case strings.HasPrefix(name, "hyperv_"):
				found("hyperv", "available clocksource", name, "/sys/devices/system/clocksource/clocksource0/available_clocksource")
			}
		}
	}
	if dmi, err := hostfs.ReadDMI(e.Root); err == nil {
		d.Vendor, d.Product = dmi.Vendor, dmi.Product
		if hypervisor := hypervisorOfDMI(dmi); hypervisor != "" {
			found(hypervisor, "firmware", strings.TrimSpace(dmi.Vendor+" "+dmi.Product), "/sys/class/dmi/id")
		}
	}
	if compatible, err := hostfs.String(e.Root, "proc/device-tree/hypervisor/compatible"); err == nil {
		kind := ""
		if strings.Contains(compatible, "xen") {
			kind = "xen"
		} else if strings.Contains(compatible, "kvm") {
			kind = "kvm"
		}
		found(kind, "device tree", compatible, "/proc/device-tree/hypervisor/compatible")
	}
	if info, err := hostfs.ReadCPUInfo(e.Root); err == nil {
		d.CPU = info.Model
		switch {
		case info.Flags["hypervisor"]:
			found("", "CPU flag", "hypervisor", "/proc/cpuinfo")
		case e.Arch == "amd64" && d.Virtual == Unclear:
			d.Virtual = No // every hypervisor sets the flag
		}
	}
	if strings.Contains(d.CPU, "QEMU TCG") {
		d.Virtual, d.Hypervisor = Yes, "qemu"
	}
	d.Name = hypervisorName(d.Hypervisor)
	switch {
	case d.WSL:
		d.Name = "Hyper-V (WSL2)"
	case d.Name == "" && d.Virtual == Yes:
		d.Name = "unknown hypervisor"
	case d.Hypervisor != "" && d.Vendor != "" && hypervisorOfDMI(hostfs.DMI{Vendor: d.Vendor, Product: d.Product}) == "":
		d.Name += " (" + d.Vendor + ")"
	}
	if version, err := hostfs.String(e.Root, "proc/version"); err == nil && strings.Contains(version, "gVisor") {
		d.GVisor = true
	} else if _, ok := hasLine(log, "Starting gVisor"); ok {
		d.GVisor = true
	}
	d.Container = inContainer(e, d.WSL)
	return d
}

// hypervisorOfDMI knows the firmware of virtual machines. Clouds that put their own
// name there are not among them: their bare metal has it too.
func hypervisorOfDMI(d hostfs.DMI) string {
	switch {
	case strings.Contains(d.Product, "KVM"), strings.HasPrefix(d.Vendor, "Firecracker"):
		return "kvm"
	case d.Vendor == "QEMU":
		return "" // with KVM or without: the kernel tells
	case strings.HasPrefix(d.Vendor, "VMware"):
		return "vmware"
	case d.Vendor == "innotek GmbH", d.Product == "VirtualBox":
		return "virtualbox"
	case d.Vendor == "Xen":
		return "xen"
	case d.Vendor == "Microsoft Corporation" && d.Product == "Virtual Machine":
		return "hyperv"
	case strings.HasPrefix(d.Vendor, "Parallels"):
		return "parallels"
	case strings.HasPrefix(d.Product, "Apple Virtualization"):
		return "apple"
	case strings.Contains(d.Vendor, "BHYVE"), strings.Contains(d.Product, "BHYVE"):
		return "bhyve"
	}
	return ""
}

// inContainer looks at the namespaces, and at what container runtimes leave. WSL2
// has namespaces of its own, and a virtual machine may be started from a container's
// image: its root is a device.
func inContainer(e *Env, wsl bool) Known {
	answer := Unclear
	for _, ns := range []struct {
		kind    string
		initial uint64
	}{{"pid", hostfs.InitialPIDNamespace}, {"cgroup", hostfs.InitialCgroupNamespace}} {
		if n, err := hostfs.Namespace(e.Root, ns.kind); err == nil && !wsl {
			if n != ns.initial {
				return Yes
			}
			answer = No
		}
	}
	if answer == No {
		mounts, err := hostfs.ReadMounts(e.Root)
		if err != nil {
			return Unclear
		}
		for _, m := range mounts {
			if m.Point == "/" && !strings.Contains(m.Type, "overlay") {
				return No
			}
		}
	}
	for _, name := range []string{".dockerenv", "run/.containerenv", "var/run/secrets/kubernetes.io", "run/systemd/container"} {
		if hostfs.Exists(e.Root, name) {
			return Yes
		}
	}
	return answer
}

func judgePlatform(d *PlatformData) []Finding {
	var found []Finding
	if strings.Contains(d.CPU, "QEMU TCG") {
		found = append(found, Finding{
			ID: "platform.emulated", Severity: Warning, Confidence: Certain,
			Title:    "the CPU is emulated in software: times measured here say nothing about a real one",
			Evidence: []Evidence{{"CPU", d.CPU, "/proc/cpuinfo"}},
			Remedy:   []string{"start QEMU with -accel kvm -cpu host, on a host whose /dev/kvm it may open"},
		})
	}
	if d.GVisor {
		found = append(found, Finding{
			ID: "platform.gvisor", Severity: Notice, Confidence: Certain,
			Title:    "the kernel is gVisor's: timers go through one more scheduler, and files describe what it emulates",
			Detail:   "A sleep ends when the sandbox's own Go runtime and then the host's kernel have let it. What the other checks read in /proc and /sys is about the sandbox, not the host.",
			Evidence: []Evidence{{"kernel", "gVisor", "/proc/version, kernel's log"}},
			Remedy:   []string{"run what needs precise timers with another runtime (runc), or with gVisor's KVM platform (runsc --platform=kvm), whose system calls cost less"},
		})
	}
	return found
}

// machine is the hypervisor for people: "" on bare metal or if unknown.
func (d *PlatformData) machine() string {
	if d.GVisor {
		return fmt.Sprint("gVisor", strings.TrimSuffix(" on "+d.Name, " on "))
	}
	return d.Name
}
