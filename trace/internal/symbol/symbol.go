// Package symbol names the functions that addresses in programs belong to, by the
// symbols of ELF files and by the line tables that Go programs carry even where
// their symbols have been stripped.
package symbol

import (
	"debug/elf"
	"debug/gosym"
	"errors"
	"io"
	"sort"
	"strings"
)

// A Symbol is what an address is in.
type Symbol struct {
	Func string // "" if no symbol tells
	File string // of Go programs
	Line int
}

// An Object is an ELF file's symbols.
type Object struct {
	loads []load
	funcs []function // by address
	lines *gosym.Table
}

// A load is a part of the file that is mapped into memory.
type load struct {
	offset, size, vaddr uint64
}

type function struct {
	addr, size uint64
	name       string
}

// Read reads an ELF file. What it needs of it is copied.
func Read(r io.ReaderAt) (*Object, error) {
	f, err := elf.NewFile(r)
	if err != nil {
		return nil, err
	}
	o := &Object{}
	for _, p := range f.Progs {
		if p.Type == elf.PT_LOAD {
			o.loads = append(o.loads, load{p.Off, p.Filesz, p.Vaddr})
		}
	}
	symbols, err := f.Symbols()
	if err != nil && !errors.Is(err, elf.ErrNoSymbols) {
		return nil, err
	}
	// The dynamic symbols are all that a stripped library has, and the vDSO.
	if dynamic, err := f.DynamicSymbols(); err == nil {
		symbols = append(symbols, dynamic...)
	}
	for _, s := range symbols {
		t := elf.ST_TYPE(s.Info)
		if (t == elf.STT_FUNC || t == elf.STT_GNU_IFUNC) && s.Section != elf.SHN_UNDEF && s.Name != "" {
			o.funcs = append(o.funcs, function{s.Value, s.Size, s.Name})
		}
	}
	sort.SliceStable(o.funcs, func(i, j int) bool { return o.funcs[i].addr < o.funcs[j].addr })
	o.readLines(f)
	return o, nil
}

// readLines reads the line table of a Go program; other programs have none.
func (o *Object) readLines(f *elf.File) {
	section := f.Section(".gopclntab")
	if section == nil {
		section = f.Section(".data.rel.ro.gopclntab") // position-independent
	}
	text := f.Section(".text")
	if section == nil || text == nil {
		return
	}
	table, err := section.Data()
	if err != nil {
		return
	}
	start := textStart(f, o.funcs, text, section)
	lines, err := gosym.NewTable(nil, gosym.NewLineTable(table, start))
	if err == nil {
		o.lines = lines
	}
}

// Address returns where the byte at this offset of the file is in the addresses
// that its symbols are of.
func (o *Object) Address(offset uint64) (uint64, bool) {
	for _, l := range o.loads {
		if offset >= l.offset && offset-l.offset < l.size {
			return offset - l.offset + l.vaddr, true
		}
	}
	return 0, false
}

// Offset is the inverse of Address.
func (o *Object) Offset(addr uint64) (uint64, bool) {
	for _, l := range o.loads {
		if addr >= l.vaddr && addr-l.vaddr < l.size {
			return addr - l.vaddr + l.offset, true
		}
	}
	return 0, false
}

// Lookup names what the address, of those of the file's symbols, is in.
func (o *Object) Lookup(addr uint64) Symbol {
	var s Symbol
	i := sort.Search(len(o.funcs), func(i int) bool { return o.funcs[i].addr > addr }) - 1
	// Several names may stand for one address, and a function without a size
	// reaches as far as the next.
	for ; i >= 0; i-- {
		fn := &o.funcs[i]
		if addr-fn.addr < fn.size || fn.size == 0 {
			s.Func = fn.name
			break
		}
		if addr-fn.addr > 1<<20 {
			break
		}
	}
	if o.lines == nil {
		return s
	}
	file, line, fn := o.lines.PCToLine(addr)
	if fn == nil || s.Func != "" && strings.TrimSuffix(s.Func, ".abi0") != fn.Name {
		return s // not the Go part of the program
	}
	return Symbol{fn.Name, file, line}
}

// Func returns the address of a function by its name.
func (o *Object) Func(name string) (uint64, bool) {
	for _, fn := range o.funcs {
		if fn.name == name {
			return fn.addr, true
		}
	}
	if o.lines != nil {
		if fn := o.lines.LookupFunc(name); fn != nil {
			return fn.Entry, true
		}
	}
	return 0, false
}

// Go says that the file is a Go program.
func (o *Object) Go() bool { return o.lines != nil }
