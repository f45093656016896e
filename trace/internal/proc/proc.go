// Package proc reads what /proc tells about processes, as far as it explains why
// one reads its clock by system calls, and how much CPU it may have. It reads
// through an fs.FS, "/" of a machine, so that tests can give it any.
package proc

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strconv"
	"strings"
	"time"
)

// The tags of the auxiliary vector that matter here.
const (
	auxNull     = 0
	SysinfoEHDR = 33 // where the vDSO is
)

// A Process is what was read of one. Fields that could not be read are empty, which
// for a process of another user is normal.
type Process struct {
	PID     int
	Comm    string
	Exe     string
	Start   uint64 // after boot, in clock ticks: tells apart two of the same id
	Threads int
	CPU     time.Duration // user and system
	// Aux is the auxiliary vector as the kernel made it, and Found as the program
	// found it on its stack; nil if unknown.
	Aux, Found map[uint64]uint64
	Maps       []Mapping
	Seccomp    int // 0 none, 1 strict, 2 filter
	Tracer     int // the process that traces this one; 0: none
	// TimeNS says that the process is in a time namespace other than init's;
	// only where KnowsTimeNS.
	TimeNS, KnowsTimeNS bool
	Cgroups             []Cgroup
}

// A Mapping is a part of a process's memory.
type Mapping struct {
	Start, End, Offset uint64
	Exec               bool
	Path               string // "[vdso]" and the like in brackets; "" if anonymous
}

// A Cgroup is a process's place in one hierarchy.
type Cgroup struct {
	Controllers []string // none for version 2
	Path        string
}

// ticks is USER_HZ, which is 100 on every architecture that programs here run on.
const tick = 10 * time.Millisecond

// Read reads a process, without its details. It fails only if there is no such
// process.
func Read(root fs.FS, pid int) (*Process, error) {
	p := &Process{PID: pid}
	if err := p.readStat(root); err != nil {
		return nil, err
	}
	dir := p.dir()
	p.Exe, _ = fs.ReadLink(root, dir+"/exe")
	p.Exe = strings.TrimSuffix(p.Exe, " (deleted)")
	if b, err := fs.ReadFile(root, dir+"/cgroup"); err == nil {
		p.Cgroups = parseCgroups(b)
	}
	return p, nil
}

// ReadDetails reads what explains clock readings: Aux, Maps, Seccomp, Tracer and
// TimeNS.
func (p *Process) ReadDetails(root fs.FS) {
	dir := p.dir()
	if b, err := fs.ReadFile(root, dir+"/auxv"); err == nil && len(b) > 0 {
		p.Aux = parseAux(b)
	}
	if b, err := fs.ReadFile(root, dir+"/maps"); err == nil {
		p.Maps = ParseMaps(b)
	}
	if b, err := fs.ReadFile(root, dir+"/status"); err == nil {
		p.Seccomp = statusNumber(b, "Seccomp")
		p.Tracer = statusNumber(b, "TracerPid")
	}
	p.readTimeNS(root)
}

// ReadUsage reads the threads and the CPU time anew, and says whether the process is
// still the one that was read.
func (p *Process) ReadUsage(root fs.FS) bool {
	again := &Process{PID: p.PID}
	if again.readStat(root) != nil || again.Start != p.Start {
		return false
	}
	p.Threads, p.CPU, p.Comm = again.Threads, again.CPU, again.Comm
	return true
}

// ReadMaps reads the mappings anew.
func (p *Process) ReadMaps(root fs.FS) {
	if b, err := fs.ReadFile(root, p.dir()+"/maps"); err == nil && len(b) > 0 {
		p.Maps = ParseMaps(b)
	}
}

func (p *Process) dir() string { return "proc/" + strconv.Itoa(p.PID) }

// At returns the mapping of an address, or nil.
func (p *Process) At(addr uint64) *Mapping {
	for i := range p.Maps {
		if m := &p.Maps[i]; addr >= m.Start && addr < m.End {
			return m
		}
	}
	return nil
}

// Named returns the first mapping with this path, or nil.
func (p *Process) Named(path string) *Mapping {
	for i := range p.Maps {
		if p.Maps[i].Path == path {
			return &p.Maps[i]
		}
	}
	return nil
}

// stat is split into its fields after the name, which is in parentheses and may
// hold anything.
func statFields(b []byte) (comm string, fields []string, err error) {
	open, end := bytes.IndexByte(b, '('), bytes.LastIndexByte(b, ')')
	if open < 0 || end < open {
		return "", nil, errors.New("no name in stat")
	}
	fields = strings.Fields(string(b[end+1:]))
	if len(fields) < 26 {
		return "", nil, fmt.Errorf("%d fields after the name in stat", len(fields))
	}
	return string(b[open+1 : end]), fields, nil
}

func (p *Process) readStat(root fs.FS) error {
	b, err := fs.ReadFile(root, p.dir()+"/stat")
	if err != nil {
		return err
	}
	comm, f, err := statFields(b)
	if err != nil {
		return fmt.Errorf("process %d: %w", p.PID, err)
	}
	number := func(field int) uint64 {
		n, _ := strconv.ParseUint(f[field-3], 10, 64)
		return n
	}
	p.Comm = comm
	p.CPU = time.Duration(number(14)+number(15)) * tick
	p.Threads = int(number(20))
	p.Start = number(22)
	return nil
}

// ReadFound reads the auxiliary vector as the program found it, from the
// start of its stack. A program may have overwritten it since; the Go runtime and
// the C libraries do not.
func (p *Process) ReadFound(root fs.FS) error {
	b, err := fs.ReadFile(root, p.dir()+"/stat")
	if err != nil {
		return err
	}
	_, f, err := statFields(b)
	if err != nil {
		return err
	}
	start, _ := strconv.ParseUint(f[28-3], 10, 64)
	m := p.At(start)
	if start == 0 || m == nil {
		return fmt.Errorf("the stack of %d is not shown: %w", p.PID, fs.ErrPermission)
	}
	words, err := p.readWords(root, start, min(m.End-start, 4<<20))
	if err != nil {
		return err
	}
	// The count of arguments, the arguments, the environment, each list ended by
	// a null pointer.
	at := 1
	for range 2 {
		for at < len(words) && words[at] != 0 {
			at++
		}
		at++
	}
	if at >= len(words) {
		return fmt.Errorf("no auxiliary vector on the stack of %d", p.PID)
	}
	p.Found = pairs(words[at:])
	return nil
}

func (p *Process) readWords(root fs.FS, at, size uint64) ([]uint64, error) {
	f, err := root.Open(p.dir() + "/mem")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	r, ok := f.(io.ReaderAt)
	if !ok {
		return nil, fmt.Errorf("the memory of %d: %w", p.PID, errors.ErrUnsupported)
	}
	b := make([]byte, size)
	n, err := r.ReadAt(b, int64(at))
	if n < 8 {
		return nil, fmt.Errorf("reading the memory of %d: %w", p.PID, err)
	}
	words := make([]uint64, n/8)
	for i := range words {
		words[i] = binary.LittleEndian.Uint64(b[8*i:])
	}
	return words, nil
}

// pairs stops at the tag that ends a vector.
func pairs(words []uint64) map[uint64]uint64 {
	aux := make(map[uint64]uint64)
	for i := 0; i+1 < len(words) && words[i] != auxNull; i += 2 {
		aux[words[i]] = words[i+1]
	}
	return aux
}

// parseAux reads /proc/PID/auxv of a 64-bit little-endian machine, as all that
// programs are traced on here are.
func parseAux(b []byte) map[uint64]uint64 {
	words := make([]uint64, len(b)/8)
	for i := range words {
		words[i] = binary.LittleEndian.Uint64(b[8*i:])
	}
	return pairs(words)
}

// ParseMaps reads /proc/PID/maps; lines that are no mapping are left out.
func ParseMaps(b []byte) []Mapping {
	var maps []Mapping
	for line := range strings.Lines(string(b)) {
		// 7f0c-7f0d r-xp 00000000 fe:00 1234   /path with spaces
		f := strings.Fields(line)
		if len(f) < 5 {
			continue
		}
		from, to, ok := strings.Cut(f[0], "-")
		start, err1 := strconv.ParseUint(from, 16, 64)
		end, err2 := strconv.ParseUint(to, 16, 64)
		offset, err3 := strconv.ParseUint(f[2], 16, 64)
		if !ok || errors.Join(err1, err2, err3) != nil {
			continue
		}
		m := Mapping{Start: start, End: end, Offset: offset, Exec: strings.Contains(f[1], "x")}
		if len(f) > 5 {
			_, rest, _ := strings.Cut(line, " "+f[4]+" ") // the inode
			m.Path = strings.TrimSpace(rest)
			m.Path = strings.TrimSuffix(m.Path, " (deleted)")
		}
		maps = append(maps, m)
	}
	return maps
}

func statusNumber(status []byte, name string) int {
	for line := range strings.Lines(string(status)) {
		if rest, ok := strings.CutPrefix(line, name+":"); ok {
			n, _ := strconv.Atoi(strings.TrimSpace(rest))
			return n
		}
	}
	return 0
}

// readTimeNS compares with the first process's namespace, which is the machine's
// where this process is not in a container of its own.
func (p *Process) readTimeNS(root fs.FS) {
	own, err := fs.ReadLink(root, p.dir()+"/ns/time")
	if err != nil {
		return
	}
	first, err := fs.ReadLink(root, "proc/1/ns/time")
	if err != nil {
		return
	}
	p.TimeNS, p.KnowsTimeNS = own != first, true
}

func parseCgroups(b []byte) []Cgroup {
	var groups []Cgroup
	for line := range strings.Lines(string(b)) {
		// 4:cpu,cpuacct:/path for version 1, 0::/path for version 2
		f := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(f) != 3 {
			continue
		}
		g := Cgroup{Path: path.Clean(f[2])}
		if f[1] != "" {
			g.Controllers = strings.Split(f[1], ",")
		}
		groups = append(groups, g)
	}
	return groups
}
