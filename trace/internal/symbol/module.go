package symbol

import (
	"debug/elf"
	"encoding/binary"
)

// Where the runtime's struct moduledata has what is looked for, in words of 8 bytes.
// It has been so since Go 1.16.
const (
	modulePclntab = 0 // a pointer to the line table
	moduleMinPC   = 20
	moduleText    = 22
	moduleEtext   = 23
	moduleWords   = 24
)

// textStart returns where the code of Go begins. That is what the line table counts
// from, and it is the beginning of .text only if no C is linked in before it. Where
// symbols have been stripped, the runtime's own description of the program tells,
// which the line table's address finds.
func textStart(f *elf.File, funcs []function, text, pclntab *elf.Section) uint64 {
	for _, fn := range funcs {
		if fn.name == "runtime.text" {
			return fn.addr
		}
	}
	plausible := func(word func(int) uint64) (uint64, bool) {
		start, end, first := word(moduleText), word(moduleEtext), word(moduleMinPC)
		inside := start >= text.Addr && end <= text.Addr+text.Size
		return start, word(modulePclntab) == pclntab.Addr && inside && start <= first && first < end
	}
	for _, s := range f.Sections {
		if s.Type != elf.SHT_PROGBITS || s.Flags&elf.SHF_WRITE == 0 || s.Size > 64<<20 {
			continue
		}
		data, err := s.Data()
		if err != nil {
			continue
		}
		for at := 0; at+8*moduleWords <= len(data); at += 8 {
			if start, ok := plausible(func(i int) uint64 { return binary.LittleEndian.Uint64(data[at+8*i:]) }); ok {
				return start
			}
		}
	}
	// Of a position-independent program the file has the words among its
	// relocations.
	relative := relocations(f)
	for at, value := range relative {
		if value != pclntab.Addr {
			continue
		}
		if start, ok := plausible(func(i int) uint64 { return relative[at+8*uint64(i)] }); ok {
			return start
		}
	}
	return text.Addr
}

// relocations returns, by address, the values that need the program's base added.
func relocations(f *elf.File) map[uint64]uint64 {
	relative := make(map[uint64]uint64)
	for _, s := range f.Sections {
		if s.Type != elf.SHT_RELA || s.Flags&elf.SHF_ALLOC == 0 || s.Size > 64<<20 {
			continue
		}
		data, err := s.Data()
		if err != nil {
			continue
		}
		for ; len(data) >= 24; data = data[24:] {
			switch kind := uint32(binary.LittleEndian.Uint64(data[8:])); {
			case f.Machine == elf.EM_X86_64 && kind == uint32(elf.R_X86_64_RELATIVE),
				f.Machine == elf.EM_AARCH64 && kind == uint32(elf.R_AARCH64_RELATIVE):
				relative[binary.LittleEndian.Uint64(data)] = binary.LittleEndian.Uint64(data[16:])
			}
		}
	}
	return relative
}
