package hostfs

import (
	"io/fs"
	"strings"
)

// CPUInfo is what /proc/cpuinfo says, of the first CPU where CPUs differ.
type CPUInfo struct {
	Model  string          // as the kernel writes it; "" where it does not (most arm64)
	Vendor string          // vendor_id, or the implementer's number on arm
	Count  int             // CPUs listed
	Flags  map[string]bool // "flags", or "Features" on arm
	// Same is false if CPUs have different flags.
	Same bool
}

// ReadCPUInfo reads /proc/cpuinfo, whose fields are the architecture's own.
func ReadCPUInfo(root fs.FS) (CPUInfo, error) {
	info := CPUInfo{Flags: map[string]bool{}, Same: true}
	text, err := String(root, "proc/cpuinfo")
	if err != nil {
		return info, err
	}
	fields := map[string]string{}
	first := true
	for line := range strings.Lines(text) {
		name, value, ok := strings.Cut(line, ":")
		if !ok {
			continue
		}
		name, value = strings.TrimSpace(name), strings.TrimSpace(value)
		if _, seen := fields[name]; !seen {
			fields[name] = value
		}
		switch name {
		case "processor":
			info.Count++
		case "flags", "Features":
			if first {
				for flag := range strings.FieldsSeq(value) {
					info.Flags[flag] = true
				}
				first = false
			} else if value != fields[name] {
				info.Same = false
			}
		}
	}
	info.Model = firstOf(fields, "model name", "Model", "cpu model", "uarch", "cpu")
	info.Vendor = firstOf(fields, "vendor_id", "CPU implementer")
	return info, nil
}

func firstOf(fields map[string]string, names ...string) string {
	for _, name := range names {
		if v := fields[name]; v != "" {
			return v
		}
	}
	return ""
}

// Arch returns the architecture in GOARCH's terms, as far as the tree shows it:
// "" if it does not. Kernels before 6.1 do not tell, so that the form of
// /proc/cpuinfo decides.
func Arch(root fs.FS) string {
	if arch, err := String(root, "proc/sys/kernel/arch"); err == nil {
		switch arch {
		case "x86_64":
			return "amd64"
		case "aarch64":
			return "arm64"
		case "ppc64le", "riscv64", "s390x":
			return arch
		case "loongarch64":
			return "loong64"
		}
	}
	info, err := ReadCPUInfo(root)
	switch {
	case err != nil:
		return ""
	case info.Flags["lm"]:
		return "amd64"
	case info.Flags["asimd"]:
		return "arm64"
	}
	return ""
}

// Kernel returns the kernel's release, as uname -r does.
func Kernel(root fs.FS) (string, error) { return String(root, "proc/sys/kernel/osrelease") }
