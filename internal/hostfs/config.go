package hostfs

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"io/fs"
	"strings"
)

// A Config is what a kernel was built with.
type Config struct {
	Source  string // the file
	options map[string]string
}

// ReadConfig reads the configuration that the kernel carries, or the one that
// the distribution installed with it. The error is fs.ErrNotExist if there is none.
func ReadConfig(root fs.FS) (*Config, error) {
	const carried = "proc/config.gz"
	b, err := fs.ReadFile(root, carried)
	if err == nil {
		const most = 16 << 20
		r, err := gzip.NewReader(bytes.NewReader(b))
		if err != nil {
			return nil, &fs.PathError{Op: "read", Path: carried, Err: fmt.Errorf("%w: %w", ErrFormat, err)}
		}
		text, err := io.ReadAll(io.LimitReader(r, most))
		if err != nil {
			return nil, &fs.PathError{Op: "read", Path: carried, Err: fmt.Errorf("%w: %w", ErrFormat, err)}
		}
		return parseConfig("/"+carried, string(text)), nil
	}
	release, err := Kernel(root)
	if err != nil {
		return nil, err
	}
	for _, name := range []string{
		"boot/config-" + release,
		"lib/modules/" + release + "/config",
		"usr/lib/modules/" + release + "/config",
		"usr/lib/kernel/config-" + release,
	} {
		if !fs.ValidPath(name) {
			continue
		}
		if b, err := fs.ReadFile(root, name); err == nil {
			return parseConfig("/"+name, string(b)), nil
		}
	}
	return nil, &fs.PathError{Op: "open", Path: "boot/config-" + release, Err: fs.ErrNotExist}
}

func parseConfig(source, text string) *Config {
	c := &Config{Source: source, options: map[string]string{}}
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), "="); ok && strings.HasPrefix(name, "CONFIG_") {
			c.options[name[len("CONFIG_"):]] = strings.Trim(value, `"`)
		}
	}
	return c
}

// Value returns an option's value, named without CONFIG_; "" if it is not set.
func (c *Config) Value(name string) string { return c.options[name] }

// On reports whether an option is built in.
func (c *Config) On(name string) bool { return c.options[name] == "y" }
