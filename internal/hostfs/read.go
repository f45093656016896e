package hostfs

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strconv"
	"strings"
)

// ErrFormat is wrapped by errors about a file whose text is not what the kernel
// writes there.
var ErrFormat = errors.New("not in the expected format")

// Path returns the file that an error of this package is about, with the leading
// slash that people write; "" if there is none.
func Path(err error) string {
	var p *fs.PathError
	if errors.As(err, &p) {
		return "/" + p.Path
	}
	return ""
}

// malformed is an error about the text of a file.
func malformed(name, text string) error {
	const most = 60
	if len(text) > most {
		text = text[:most] + "..."
	}
	return &fs.PathError{Op: "read", Path: name, Err: fmt.Errorf("%q: %w", text, ErrFormat)}
}

// Exists reports whether there is a file or directory of that name, as far as
// this process may see.
func Exists(root fs.FS, name string) bool {
	_, err := fs.Stat(root, name)
	return err == nil
}

// String reads a file whole, without the white space around its text.
func String(root fs.FS, name string) (string, error) {
	b, err := fs.ReadFile(root, name)
	if err != nil {
		return "", err
	}
	// The kernel ends strings of the device tree with a NUL.
	return strings.Trim(string(b), " \t\r\n\x00"), nil
}

// Int reads a file that holds one decimal number.
func Int(root fs.FS, name string) (int64, error) {
	s, err := String(root, name)
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		return 0, malformed(name, s)
	}
	return n, nil
}

// A CPUSet is a set of CPUs, in ascending order.
type CPUSet []int

// String has the form of the kernel's lists: "0-3,8".
func (s CPUSet) String() string {
	var b strings.Builder
	for i := 0; i < len(s); {
		j := i
		for j+1 < len(s) && s[j+1] == s[j]+1 {
			j++
		}
		if b.Len() > 0 {
			b.WriteByte(',')
		}
		b.WriteString(strconv.Itoa(s[i]))
		if j > i {
			b.WriteByte('-')
			b.WriteString(strconv.Itoa(s[j]))
		}
		i = j + 1
	}
	return b.String()
}

// Contains reports whether the CPU is in the set.
func (s CPUSet) Contains(cpu int) bool {
	for _, c := range s {
		if c == cpu {
			return true
		}
	}
	return false
}

// mostCPUs bounds what a list can be expanded to: far above any kernel's NR_CPUS.
const mostCPUs = 1 << 16

// ParseCPUs reads a list of the kernel's, "0-3,8"; empty and "(null)" are no CPU.
func ParseCPUs(text string) (CPUSet, error) {
	text = strings.TrimSpace(text)
	if text == "" || text == "(null)" {
		return nil, nil
	}
	var set CPUSet
	for part := range strings.SplitSeq(text, ",") {
		low, high, isRange := strings.Cut(part, "-")
		if !isRange {
			high = low
		}
		a, err1 := strconv.Atoi(low)
		b, err2 := strconv.Atoi(high)
		if err1 != nil || err2 != nil || a < 0 || b < a || b >= mostCPUs || len(set) > 0 && a <= set[len(set)-1] {
			return nil, fmt.Errorf("list of CPUs %q: %w", text, ErrFormat)
		}
		for ; a <= b; a++ {
			set = append(set, a)
		}
	}
	return set, nil
}

// CPUs reads a file that holds a list of CPUs.
func CPUs(root fs.FS, name string) (CPUSet, error) {
	s, err := String(root, name)
	if err != nil {
		return nil, err
	}
	set, err := ParseCPUs(s)
	if err != nil {
		return nil, malformed(name, s)
	}
	return set, nil
}

// cpuDir is where sysfs keeps the CPUs.
const cpuDir = "sys/devices/system/cpu"

// OnlineCPUs are those that the kernel schedules on.
func OnlineCPUs(root fs.FS) (CPUSet, error) { return CPUs(root, cpuDir+"/online") }

// perCPU is a CPU's own file in sysfs.
func perCPU(cpu int, name string) string {
	return path.Join(cpuDir, "cpu"+strconv.Itoa(cpu), name)
}
