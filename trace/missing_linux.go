//go:build amd64 || arm64

package trace

import (
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"
)

// The numbers of the capabilities, from linux/capability.h.
var capabilities = []struct {
	bit  uint
	name string
}{
	{39, "CAP_BPF"}, {38, "CAP_PERFMON"},
}

const capSysAdmin = 21

// missing explains a refusal of the kernel by what this process does not have.
func missing(root fs.FS, refusal error) error {
	e := &MissingError{Err: refusal, sentinel: fs.ErrPermission}
	if _, err := btf.LoadKernelSpec(); err != nil {
		e.Missing = append(e.Missing, "BTF: a kernel built with CONFIG_DEBUG_INFO_BTF, with /sys mounted")
		e.sentinel = errors.ErrUnsupported
	}
	if !errors.Is(refusal, fs.ErrPermission) {
		if errors.Is(refusal, ebpf.ErrNotSupported) {
			e.sentinel = errors.ErrUnsupported
			e.Missing = append(e.Missing, "a kernel with these hooks: Linux 5.11 or newer")
		}
		if len(e.Missing) == 0 {
			return fmt.Errorf("trace: %w", refusal)
		}
		return e
	}
	for _, name := range lacking(root) {
		e.Missing = append(e.Missing, "capability "+name+": run as root, or grant it")
	}
	if b, err := fs.ReadFile(root, "sys/kernel/security/lockdown"); err == nil && strings.Contains(string(b), "[confidentiality]") {
		e.Missing = append(e.Missing, "a kernel that is not locked down: lockdown is at confidentiality, where no eBPF program may read the kernel's memory")
	}
	if len(e.Missing) == 0 {
		e.Missing = append(e.Missing, "the kernel's leave: the capabilities are there, so a security module, or the seccomp filter of a container, forbids bpf(2)")
	}
	return e
}

// lacking lists the capabilities that this process does not have and would need.
func lacking(root fs.FS) []string {
	b, err := fs.ReadFile(root, "proc/self/status")
	if err != nil {
		return nil
	}
	for line := range strings.Lines(string(b)) {
		rest, ok := strings.CutPrefix(line, "CapEff:")
		if !ok {
			continue
		}
		effective, err := strconv.ParseUint(strings.TrimSpace(rest), 16, 64)
		if err != nil || effective&(1<<capSysAdmin) != 0 {
			return nil
		}
		var names []string
		for _, c := range capabilities {
			if effective&(1<<c.bit) == 0 {
				names = append(names, c.name)
			}
		}
		return names
	}
	return nil
}

// initPIDNamespace is the name that /proc gives to the first PID namespace: its
// number is fixed in the kernel.
const initPIDNamespace = "pid:[4026531836]"

// checkNamespace refuses to follow processes by numbers that the kernel's programs
// do not know them by.
func checkNamespace(root fs.FS) error {
	ns, err := fs.ReadLink(root, "proc/self/ns/pid")
	if err == nil && ns != initPIDNamespace {
		return &MissingError{
			Missing:  []string{"the host's PID namespace: in a container, start it with the host's (docker run --pid=host, hostPID: true)"},
			sentinel: fs.ErrPermission,
		}
	}
	return nil
}
