// Package hostfs reads what Linux tells about a machine in /proc, /sys, /dev
// and /boot: typed, and from any fs.FS, so that a tree that was copied off a
// machine reads like the machine itself.
//
// A root is the directory "/" of a machine: os.DirFS("/") for this one. Names
// are those of fs.FS, without the leading slash. Everything here tolerates what
// the kernels of the last ten years write, and a text that no kernel writes is an
// error that names the file, never a panic: trees come from anywhere.
//
// Errors match fs.ErrNotExist where the machine does not have the file at all
// (an older kernel, another architecture, something not configured), and
// fs.ErrPermission where somebody else could read it. [Path] gives the file.
//
// Nothing is kept between calls: each reads the file anew. All functions may be
// called from any number of goroutines.
package hostfs
