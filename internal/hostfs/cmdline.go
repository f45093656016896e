package hostfs

import (
	"io/fs"
	"strings"
)

// Parameters are those that the kernel was started with.
type Parameters []string

// ReadParameters reads /proc/cmdline. What follows "--" is for init and left out.
func ReadParameters(root fs.FS) (Parameters, error) {
	text, err := String(root, "proc/cmdline")
	if err != nil {
		return nil, err
	}
	var all Parameters
	var word strings.Builder
	quoted := false
	for _, r := range text + " " {
		switch {
		case r == '"':
			quoted = !quoted
		case !quoted && (r == ' ' || r == '\n' || r == '\t'):
			if word.Len() == 0 {
				continue
			}
			if word.String() == "--" {
				return all, nil
			}
			all = append(all, word.String())
			word.Reset()
		default:
			word.WriteRune(r)
		}
	}
	return all, nil
}

// Values returns what a parameter was set to, in order, for it may stand there
// several times: "" for one without a value. The kernel takes - and _ in names
// for the same.
func (p Parameters) Values(name string) []string {
	var values []string
	for _, parameter := range p {
		key, value, _ := strings.Cut(parameter, "=")
		if same(key, name) {
			values = append(values, value)
		}
	}
	return values
}

// Last returns the value that holds, and whether the parameter is there at all.
func (p Parameters) Last(name string) (value string, ok bool) {
	values := p.Values(name)
	if len(values) == 0 {
		return "", false
	}
	return values[len(values)-1], true
}

// Named returns the parameters of these names as they were written.
func (p Parameters) Named(names ...string) []string {
	var found []string
	for _, parameter := range p {
		key, _, _ := strings.Cut(parameter, "=")
		for _, name := range names {
			if same(key, name) {
				found = append(found, parameter)
				break
			}
		}
	}
	return found
}

func same(a, b string) bool {
	return strings.ReplaceAll(a, "-", "_") == strings.ReplaceAll(b, "-", "_")
}
