package vdso

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// ErrFormat says that an image is not the ELF file that a vDSO is.
var ErrFormat = errors.New("vdso: malformed image")

// ErrNoSymbol says that an image does not define the symbol.
var ErrNoSymbol = errors.New("vdso: no such symbol")

// An object is the part of a vDSO's ELF image that a dynamic linker looks at.
// Section headers are not: a kernel need not map them. Every number in the image
// is taken for hostile; the accessors of [view] check each one that is used as a
// position.
type object struct {
	image   view
	load    segment // the only one that is loaded
	dynamic segment

	symbols, strings uint64 // offsets of the tables
	count            uint64 // of symbols
	versions         uint64 // offset of a version index for each symbol, or 0
	definitions      uint64 // offset of the version definitions, or 0
}

type segment struct {
	offset, addr, size uint64
	executable         bool
}

// What the ELF64 format lays down, under its own names. Package debug/elf has
// these as well, with a decompressor and a DWARF reader that every user of ours
// would link.
const (
	headerSize  = 64
	programSize = 56
	dynamicSize = 16
	symbolSize  = 24

	class64       = 2 // ELFCLASS64
	littleEndian  = 1 // ELFDATA2LSB
	sharedObject  = 3 // ET_DYN
	ptLoad        = 1
	ptDynamic     = 2
	pfExecutable  = 1
	dtNull        = 0
	dtHash        = 4
	dtStrtab      = 5
	dtSymtab      = 6
	dtGNUHash     = 0x6ffffef5
	dtVersym      = 0x6ffffff0
	dtVerdef      = 0x6ffffffc
	sttFunc       = 2
	stbGlobal     = 1
	stbWeak       = 2
	shnUndef      = 0
	versionHidden = 0x8000
	versionBase   = 1 // VER_FLG_BASE: the definition that names the file
)

// Lookup returns the offset in a vDSO's image of the function that a symbol of
// that name and version names. An image without versions has every version.
func Lookup(image []byte, name, version string) (offset uint64, err error) {
	o, err := parse(image)
	if err != nil {
		return 0, err
	}
	for i := uint64(1); i < o.count; i++ {
		at := o.symbols + i*symbolSize
		entry, ok := o.image.slice(at, symbolSize)
		if !ok {
			return 0, fmt.Errorf("%w: symbol %d", ErrFormat, i)
		}
		info := entry[4]
		kind, bind := info&15, info>>4
		section := binary.LittleEndian.Uint16(entry[6:])
		if kind != sttFunc || bind != stbGlobal && bind != stbWeak || section == shnUndef {
			continue
		}
		if !o.image.isString(o.strings+uint64(binary.LittleEndian.Uint32(entry)), name) || !o.hasVersion(i, version) {
			continue
		}
		offset, ok := o.offset(binary.LittleEndian.Uint64(entry[8:]))
		if !ok || !o.load.executable {
			return 0, fmt.Errorf("%w: %s outside of the code", ErrFormat, name)
		}
		return offset, nil
	}
	return 0, fmt.Errorf("%w: %s@%s", ErrNoSymbol, name, version)
}

// mappedSize returns how many bytes an image occupies in memory, from the page
// that it begins with.
func mappedSize(first []byte) (uint64, error) {
	load, _, err := segments(first)
	if err != nil {
		return 0, err
	}
	size := load.offset + load.size
	if size < load.offset || size < headerSize {
		return 0, fmt.Errorf("%w: size %d", ErrFormat, size)
	}
	return size, nil
}

// parse reads the tables that Lookup needs.
func parse(image view) (*object, error) {
	load, dynamic, err := segments(image)
	if err != nil {
		return nil, err
	}
	o := &object{image: image, load: load, dynamic: dynamic}
	if dynamic.size == 0 {
		return nil, fmt.Errorf("%w: no dynamic segment", ErrFormat)
	}
	var hash, gnuHash uint64
	entries, ok := image.slice(dynamic.offset, dynamic.size)
	if !ok {
		return nil, fmt.Errorf("%w: dynamic segment", ErrFormat)
	}
	for ; len(entries) >= dynamicSize; entries = entries[dynamicSize:] {
		var table *uint64
		tag := binary.LittleEndian.Uint64(entries)
		if tag == dtNull {
			break
		}
		switch tag {
		case dtStrtab:
			table = &o.strings
		case dtSymtab:
			table = &o.symbols
		case dtHash:
			table = &hash
		case dtGNUHash:
			table = &gnuHash
		case dtVersym:
			table = &o.versions
		case dtVerdef:
			table = &o.definitions
		default:
			continue
		}
		if *table, ok = o.offset(binary.LittleEndian.Uint64(entries[8:])); !ok {
			return nil, fmt.Errorf("%w: table outside of the image", ErrFormat)
		}
	}
	if o.strings == 0 || o.symbols == 0 {
		return nil, fmt.Errorf("%w: no symbols", ErrFormat)
	}
	ok = false
	switch {
	case hash != 0:
		var n uint32 // the length of the chains, one for each symbol
		n, ok = image.uint32(hash + 4)
		o.count = uint64(n)
	case gnuHash != 0:
		o.count, ok = image.gnuCount(gnuHash)
	}
	if !ok || o.count > uint64(len(image))/symbolSize {
		return nil, fmt.Errorf("%w: hash table", ErrFormat)
	}
	return o, nil
}

// segments reads the ELF header and the program headers, which tell how the
// image is mapped and where its dynamic segment is.
func segments(image view) (load, dynamic segment, err error) {
	fail := func(what string) (segment, segment, error) {
		return segment{}, segment{}, fmt.Errorf("%w: %s", ErrFormat, what)
	}
	header, ok := image.slice(0, headerSize)
	if !ok || string(header[:4]) != "\x7fELF" ||
		header[4] != class64 || header[5] != littleEndian ||
		binary.LittleEndian.Uint16(header[16:]) != sharedObject {
		return fail("header")
	}
	at := binary.LittleEndian.Uint64(header[32:])
	size, n := binary.LittleEndian.Uint16(header[54:]), binary.LittleEndian.Uint16(header[56:])
	if size != programSize {
		return fail("size of a program header")
	}
	for i := range uint64(n) {
		// Nothing overflows in at+i*programSize once at is inside the image.
		if at >= uint64(len(image)) {
			return fail("program headers")
		}
		p, ok := image.slice(at+i*programSize, programSize)
		if !ok {
			return fail("program headers")
		}
		s := segment{
			offset:     binary.LittleEndian.Uint64(p[8:]),
			addr:       binary.LittleEndian.Uint64(p[16:]),
			size:       binary.LittleEndian.Uint64(p[32:]), // in the file: the kernel maps no more
			executable: binary.LittleEndian.Uint32(p[4:])&pfExecutable != 0,
		}
		switch binary.LittleEndian.Uint32(p) {
		case ptLoad:
			if load.size != 0 {
				return fail("more than one loaded segment")
			}
			load = s
		case ptDynamic:
			dynamic = s
		}
	}
	if load.size == 0 {
		return fail("no loaded segment")
	}
	return load, dynamic, nil
}

// offset turns an address as the image has it into an offset in the image.
func (o *object) offset(addr uint64) (uint64, bool) {
	in := addr - o.load.addr
	at := in + o.load.offset
	return at, addr >= o.load.addr && in < o.load.size && at >= in && at < uint64(len(o.image))
}

// hasVersion tells whether symbol i is of a version, which is the case for all
// if the image defines none.
func (o *object) hasVersion(i uint64, version string) bool {
	if o.versions == 0 || o.definitions == 0 {
		return true
	}
	index, ok := o.image.uint16(o.versions + i*2)
	if !ok {
		return false
	}
	index &^= versionHidden
	// A definition is linked to the next by its distance, 0 at the last. Each
	// takes 20 bytes at least, which bounds the steps in a circle.
	at := o.definitions
	for range len(o.image) / 20 {
		d, ok := o.image.slice(at, 20)
		if !ok {
			return false
		}
		flags, ndx := binary.LittleEndian.Uint16(d[2:]), binary.LittleEndian.Uint16(d[4:])
		if flags&versionBase == 0 && ndx&^versionHidden == index {
			name, ok := o.image.uint32(at + uint64(binary.LittleEndian.Uint32(d[12:])))
			return ok && o.image.isString(o.strings+uint64(name), version)
		}
		next := binary.LittleEndian.Uint32(d[16:])
		if next == 0 {
			break
		}
		at += uint64(next)
	}
	return false
}

// A view is an image with checked access.
type view []byte

func (v view) slice(at, n uint64) ([]byte, bool) {
	if at > uint64(len(v)) || n > uint64(len(v))-at {
		return nil, false
	}
	return v[at : at+n], true
}

func (v view) uint16(at uint64) (uint16, bool) {
	b, ok := v.slice(at, 2)
	if !ok {
		return 0, false
	}
	return binary.LittleEndian.Uint16(b), true
}

func (v view) uint32(at uint64) (uint32, bool) {
	b, ok := v.slice(at, 4)
	if !ok {
		return 0, false
	}
	return binary.LittleEndian.Uint32(b), true
}

// isString tells whether the string at an offset, up to its zero byte, is s.
func (v view) isString(at uint64, s string) bool {
	b, ok := v.slice(at, uint64(len(s))+1)
	return ok && string(b[:len(s)]) == s && b[len(s)] == 0
}

// gnuCount returns the number of symbols by a GNU hash table, which does not say
// it: one more than the last symbol of the longest chain, whose hash is odd.
func (v view) gnuCount(at uint64) (uint64, bool) {
	head, ok := v.slice(at, 16)
	if !ok {
		return 0, false
	}
	buckets, first := binary.LittleEndian.Uint32(head), binary.LittleEndian.Uint32(head[4:])
	bloom := binary.LittleEndian.Uint32(head[8:]) // words of 8 bytes
	at += 16 + uint64(bloom)*8
	table, ok := v.slice(at, uint64(buckets)*4)
	if !ok {
		return 0, false
	}
	last := uint32(0)
	for ; len(table) > 0; table = table[4:] {
		last = max(last, binary.LittleEndian.Uint32(table))
	}
	if last == 0 {
		return uint64(first), true // every bucket is empty
	}
	if last < first {
		return 0, false
	}
	for at += uint64(buckets) * 4; ; last++ {
		hash, ok := v.uint32(at + uint64(last-first)*4)
		if !ok {
			return 0, false
		}
		if hash&1 != 0 {
			return uint64(last) + 1, true
		}
	}
}
