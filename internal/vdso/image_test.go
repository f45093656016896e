package vdso

import (
	"encoding/binary"
)

// An imageSpec describes a vDSO to be built byte by byte, after the layout that
// the kernel's linker script gives it: headers, hash table, symbols, strings,
// versions, dynamic segment, code.
type imageSpec struct {
	symbols  []symbolSpec
	versions []string // index 2, 3, ... in symbolSpec.version; none: no version tables
	gnuHash  bool     // instead of DT_HASH
	addr     uint64   // at which the image claims to be loaded
	code     []byte
}

type symbolSpec struct {
	name    string
	info    byte   // type and binding
	section uint16 // 0: undefined
	version uint16
	value   uint64 // offset of the function in the code
}

const (
	globalFunc = stbGlobal<<4 | sttFunc
	weakFunc   = stbWeak<<4 | sttFunc
	globalData = stbGlobal<<4 | 1
	localFunc  = sttFunc
)

// Where the parts are. Each test that corrupts one goes by these names.
const (
	atPrograms = headerSize
	atHash     = 0x100
	atSymbols  = 0x200
	atStrings  = 0x400
	atVersions = 0x600
	atVerdefs  = 0x640
	atDynamic  = 0x800
	atCode     = 0xa00
	imageSize  = 0x1000
)

func (s imageSpec) build() []byte {
	le := binary.LittleEndian
	b := make([]byte, imageSize)
	copy(b, "\x7fELF")
	b[4], b[5], b[6] = class64, littleEndian, 1
	le.PutUint16(b[16:], sharedObject)
	le.PutUint64(b[32:], atPrograms)
	le.PutUint16(b[54:], programSize)
	le.PutUint16(b[56:], 2)
	program := func(i int, kind, flags uint32, offset, size uint64) {
		p := b[atPrograms+i*programSize:]
		le.PutUint32(p, kind)
		le.PutUint32(p[4:], flags)
		le.PutUint64(p[8:], offset)
		le.PutUint64(p[16:], s.addr+offset)
		le.PutUint64(p[32:], size)
		le.PutUint64(p[40:], size)
	}
	program(0, ptLoad, 4|pfExecutable, 0, imageSize)

	strings := uint32(1)
	intern := func(name string) uint32 {
		at := strings
		strings += uint32(copy(b[atStrings+at:], name)) + 1
		return at
	}
	for i, sym := range s.symbols {
		p := b[atSymbols+(i+1)*symbolSize:]
		le.PutUint32(p, intern(sym.name))
		p[4] = sym.info
		le.PutUint16(p[6:], sym.section)
		le.PutUint64(p[8:], s.addr+atCode+sym.value)
		le.PutUint16(b[atVersions+(i+1)*2:], sym.version)
	}

	// One bucket for all: nobody looks a symbol up by its hash.
	hash, n := b[atHash:], uint32(len(s.symbols))
	if s.gnuHash {
		le.PutUint32(hash, 1)     // buckets
		le.PutUint32(hash[4:], 1) // the first symbol in the table
		le.PutUint32(hash[8:], 1) // words of the bloom filter
		if n > 0 {
			le.PutUint32(hash[24:], 1)
			le.PutUint32(hash[28+(n-1)*4:], 1) // the end of the chain
		}
	} else {
		le.PutUint32(hash, 1)
		le.PutUint32(hash[4:], n+1)
	}

	at := b[atVerdefs:]
	definition := func(flags, index uint16, name string, last bool) {
		le.PutUint16(at, 1)
		le.PutUint16(at[2:], flags)
		le.PutUint16(at[4:], index)
		le.PutUint16(at[6:], 1)
		le.PutUint32(at[12:], 20) // the name follows
		le.PutUint32(at[20:], intern(name))
		if !last {
			le.PutUint32(at[16:], 28)
		}
		at = at[28:]
	}
	if len(s.versions) > 0 {
		definition(versionBase, 1, "linux-vdso.so.1", false)
		for i, name := range s.versions {
			definition(0, uint16(i+2), name, i == len(s.versions)-1)
		}
	}

	at = b[atDynamic:]
	dynamic := func(tag, value uint64) {
		le.PutUint64(at, tag)
		le.PutUint64(at[8:], value)
		at = at[dynamicSize:]
	}
	dynamic(dtStrtab, s.addr+atStrings)
	dynamic(dtSymtab, s.addr+atSymbols)
	if s.gnuHash {
		dynamic(dtGNUHash, s.addr+atHash)
	} else {
		dynamic(dtHash, s.addr+atHash)
	}
	if len(s.versions) > 0 {
		dynamic(dtVersym, s.addr+atVersions)
		dynamic(dtVerdef, s.addr+atVerdefs)
	}
	dynamic(dtNull, 0)
	program(1, ptDynamic, 4, atDynamic, uint64(len(b[atDynamic:])-len(at)))

	copy(b[atCode:], s.code)
	return b
}

// typical is an image as x86 kernels have it.
func typical() imageSpec {
	return imageSpec{
		symbols: []symbolSpec{
			{"clock_gettime", weakFunc, 8, 2, 0x40},
			{"__vdso_gettimeofday", globalFunc, 8, 2, 0x20},
			{"__vdso_clock_gettime", globalFunc, 8, 2, 0x40},
			{"__vdso_time", globalFunc, 8, 2, 0x60},
		},
		versions: []string{"LINUX_2.6"},
	}
}
