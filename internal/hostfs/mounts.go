package hostfs

import (
	"io/fs"
	"strings"
)

// A Mount is a line of mountinfo.
type Mount struct {
	Root    string // the part of the file system that is mounted
	Point   string // where, seen from this process
	Type    string
	Options []string // of the file system itself, not of the mount
}

// ReadMounts reads what this process has mounted.
func ReadMounts(root fs.FS) ([]Mount, error) {
	const name = "proc/self/mountinfo"
	text, err := String(root, name)
	if err != nil {
		return nil, err
	}
	var mounts []Mount
	for line := range strings.Lines(text) {
		head, tail, ok := strings.Cut(line, " - ")
		f, t := strings.Fields(head), strings.Fields(tail)
		if !ok || len(f) < 5 || len(t) < 1 {
			return nil, malformed(name, line)
		}
		m := Mount{Root: unescape(f[3]), Point: unescape(f[4]), Type: t[0]}
		if len(t) >= 3 {
			m.Options = strings.Split(t[2], ",")
		}
		mounts = append(mounts, m)
	}
	return mounts, nil
}

// unescape undoes the kernel's \040 for a space, and so on.
func unescape(s string) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	return strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace(s)
}
