// Package goprog reads the state of a running Go program's scheduler from the
// program's memory, without stopping it: where things are is told by the debugging
// information that Go programs carry unless built with -ldflags=-w.
package goprog

import (
	"debug/buildinfo"
	"debug/dwarf"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/bits"
	"strings"
)

// ErrNotGo says that a file is not a Go program.
var ErrNotGo = errors.New("not a Go program")

// A Program is what is known of a Go program from its file.
type Program struct {
	Version string // "go1.26.0"
	// Layout is nil, and Absent says why, if the scheduler's state cannot be
	// found.
	Layout *Layout
	Absent string
	loads  []load
}

type load struct{ offset, size, vaddr uint64 }

// A Layout says where the scheduler's state is, in the addresses of the file.
type Layout struct {
	sched, gomaxprocs uint64 // addresses
	// Offsets in the scheduler's struct; runq may be missing, as -1.
	npidle, runq, timeToRun int64
	buckets                 int // of the histogram timeToRun
}

// Read reads a Go program's file. The error matches ErrNotGo for other files.
func Read(r io.ReaderAt) (*Program, error) {
	info, err := buildinfo.Read(r)
	if err != nil {
		return nil, errors.Join(ErrNotGo, err)
	}
	f, err := elf.NewFile(r)
	if err != nil {
		return nil, err
	}
	p := &Program{Version: info.GoVersion}
	for _, s := range f.Progs {
		if s.Type == elf.PT_LOAD {
			p.loads = append(p.loads, load{s.Off, s.Filesz, s.Vaddr})
		}
	}
	if p.Layout, err = readLayout(f); err != nil {
		p.Layout, p.Absent = nil, err.Error()
	}
	return p, nil
}

func readLayout(f *elf.File) (*Layout, error) {
	symbols, err := f.Symbols()
	if err != nil {
		return nil, errors.New("no symbols: built with -ldflags=-s")
	}
	l := &Layout{runq: -1}
	for _, s := range symbols {
		switch s.Name {
		case "runtime.sched":
			l.sched = s.Value
		case "runtime.gomaxprocs":
			l.gomaxprocs = s.Value
		}
	}
	if l.sched == 0 || l.gomaxprocs == 0 {
		return nil, errors.New("the scheduler has no symbol")
	}
	data, err := f.DWARF()
	if err != nil {
		return nil, fmt.Errorf("no debugging information: %w", err)
	}
	return l, l.readTypes(data)
}

// readTypes finds the fields in the type of the scheduler.
func (l *Layout) readTypes(data *dwarf.Data) error {
	t, err := findStruct(data, "runtime.schedt")
	if err != nil {
		return err
	}
	npidle, err := field(t, "npidle")
	if err != nil {
		return err
	}
	timeToRun, err := field(t, "timeToRun")
	if err != nil {
		return err
	}
	histogram, ok := timeToRun.Type.(*dwarf.StructType)
	if !ok {
		return errors.New("the histogram of latencies is of a kind unknown here")
	}
	counts, err := field(histogram, "counts")
	if err != nil {
		return err
	}
	array, ok := counts.Type.(*dwarf.ArrayType)
	if !ok || array.Count%subBuckets != 0 || array.Count > 1024 || array.Type.Size() != 8 {
		return errors.New("the histogram of latencies is of a size unknown here")
	}
	l.npidle = npidle.ByteOffset
	l.timeToRun = timeToRun.ByteOffset + counts.ByteOffset
	l.buckets = int(array.Count)
	// A field of its own in older versions, the queue's size in newer ones.
	if size, err := field(t, "runqsize"); err == nil {
		l.runq = size.ByteOffset
	} else if runq, err := field(t, "runq"); err == nil {
		if queue, ok := runq.Type.(*dwarf.StructType); ok {
			if size, err := field(queue, "size"); err == nil {
				l.runq = runq.ByteOffset + size.ByteOffset
			}
		}
	}
	return nil
}

// findStruct looks in the compilation unit of package runtime alone: others are
// many, and have no types of the runtime's that it does not have.
func findStruct(data *dwarf.Data, name string) (*dwarf.StructType, error) {
	r := data.Reader()
	inside := false
	for {
		e, err := r.Next()
		if err != nil {
			return nil, err
		}
		if e == nil {
			return nil, fmt.Errorf("no type %s in the debugging information", name)
		}
		switch e.Tag {
		case dwarf.TagCompileUnit:
			unit, _ := e.Val(dwarf.AttrName).(string)
			if inside = unit == "runtime"; !inside {
				r.SkipChildren()
			}
		case dwarf.TagStructType:
			if n, _ := e.Val(dwarf.AttrName).(string); inside && n == name {
				t, err := data.Type(e.Offset)
				if err != nil {
					return nil, err
				}
				if s, ok := t.(*dwarf.StructType); ok {
					return s, nil
				}
			}
			r.SkipChildren()
		case dwarf.TagSubprogram:
			r.SkipChildren()
		}
	}
}

func field(t *dwarf.StructType, name string) (*dwarf.StructField, error) {
	for _, f := range t.Field {
		if f.Name == name {
			if typedef, ok := f.Type.(*dwarf.TypedefType); ok {
				f.Type = typedef.Type
			}
			return f, nil
		}
	}
	return nil, fmt.Errorf("%s has no field %s in this version of Go", t.StructName, name)
}

// Bias returns by how much a running program's addresses differ from the file's,
// given where a part of the file is mapped.
func (p *Program) Bias(start, end, offset uint64) (uint64, bool) {
	for _, l := range p.loads {
		if l.size > 0 && l.offset >= offset && l.offset-offset < end-start {
			return start + (l.offset - offset) - l.vaddr, true
		}
	}
	return 0, false
}

// A State is a scheduler's at one moment.
type State struct {
	GOMAXPROCS, IdlePs int
	Queued             int // goroutines in the global queue; -1: unknown
	// Latency counts how long goroutines were runnable before they ran, by the
	// bits of the nanoseconds.
	Latency [64]uint64
}

// The runtime's histograms have four buckets for each power of two from 2^8 ns on,
// and four for what is shorter.
const (
	subBuckets = 4
	firstBits  = 8
)

// bitsOf returns how many bits the nanoseconds in a bucket of the runtime have.
func bitsOf(bucket int) int {
	power, sub := bucket/subBuckets, bucket%subBuckets
	if power > 0 {
		return power + firstBits
	}
	// 0-63, 64-127, 128-191, 192-255
	return bits.Len(uint((sub+1)<<(firstBits-2) - 1))
}

// Read reads the state from the program's memory.
func (l *Layout) Read(mem io.ReaderAt, bias uint64) (State, error) {
	s := State{Queued: -1}
	int32At := func(addr uint64) (int, error) {
		var b [4]byte
		_, err := mem.ReadAt(b[:], int64(addr))
		return int(int32(binary.LittleEndian.Uint32(b[:]))), err
	}
	var err1, err2, err3 error
	s.GOMAXPROCS, err1 = int32At(l.gomaxprocs + bias)
	s.IdlePs, err2 = int32At(l.sched + uint64(l.npidle) + bias)
	if l.runq >= 0 {
		s.Queued, err3 = int32At(l.sched + uint64(l.runq) + bias)
	}
	if err := errors.Join(err1, err2, err3); err != nil {
		return s, err
	}
	b := make([]byte, 8*l.buckets)
	if _, err := mem.ReadAt(b, int64(l.sched+uint64(l.timeToRun)+bias)); err != nil {
		return s, err
	}
	for i := range l.buckets {
		s.Latency[min(bitsOf(i), len(s.Latency)-1)] += binary.LittleEndian.Uint64(b[8*i:])
	}
	return s, nil
}

// AtLeast says that a version of Go, as a program's build information has it, is
// this one or newer. Development versions are newer than any.
func AtLeast(version string, major, minor int) bool {
	var a, b int
	if _, err := fmt.Sscanf(version, "go%d.%d", &a, &b); err != nil {
		return strings.HasPrefix(version, "devel")
	}
	return a > major || a == major && b >= minor
}
