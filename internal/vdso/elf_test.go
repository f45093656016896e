package vdso

import (
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"testing"
)

func TestLookup(t *testing.T) {
	const name = "__vdso_clock_gettime"
	with := func(change func(*imageSpec)) imageSpec {
		s := typical()
		change(&s)
		return s
	}
	tests := []struct {
		name   string
		spec   imageSpec
		offset uint64
		err    error
	}{
		{"x86", typical(), atCode + 0x40, nil},
		{"GNU hash", with(func(s *imageSpec) { s.gnuHash = true }), atCode + 0x40, nil},
		{"no versions", with(func(s *imageSpec) { s.versions = nil }), atCode + 0x40, nil},
		{"loaded at an address", with(func(s *imageSpec) { s.addr = 0xffffffffff700000 }), atCode + 0x40, nil},
		{"weak", with(func(s *imageSpec) { s.symbols[2].info = weakFunc }), atCode + 0x40, nil},
		{"hidden version", with(func(s *imageSpec) { s.symbols[2].version |= versionHidden }), atCode + 0x40, nil},
		{"second version", with(func(s *imageSpec) {
			s.versions = []string{"OTHER", "LINUX_2.6"}
			s.symbols[2].version = 3
		}), atCode + 0x40, nil},
		{"the right one of two", with(func(s *imageSpec) {
			s.versions = []string{"LINUX_2.6", "OTHER"}
			s.symbols[1] = symbolSpec{name, globalFunc, 8, 3, 0x20}
		}), atCode + 0x40, nil},

		{"another version", with(func(s *imageSpec) { s.versions[0] = "LINUX_2.6.39" }), 0, ErrNoSymbol},
		{"version is a prefix", with(func(s *imageSpec) { s.versions[0] = "LINUX_2." }), 0, ErrNoSymbol},
		{"version of the file", with(func(s *imageSpec) { s.symbols[2].version = 1 }), 0, ErrNoSymbol},
		{"undefined", with(func(s *imageSpec) { s.symbols[2].section = 0 }), 0, ErrNoSymbol},
		{"data", with(func(s *imageSpec) { s.symbols[2].info = globalData }), 0, ErrNoSymbol},
		{"local", with(func(s *imageSpec) { s.symbols[2].info = localFunc }), 0, ErrNoSymbol},
		{"longer name", with(func(s *imageSpec) { s.symbols[2].name += "64" }), 0, ErrNoSymbol},
		{"no symbols", with(func(s *imageSpec) { s.symbols = nil }), 0, ErrNoSymbol},
		{"no symbols, GNU hash", with(func(s *imageSpec) { s.symbols, s.gnuHash = nil, true }), 0, ErrNoSymbol},
		{"outside of the image", with(func(s *imageSpec) { s.symbols[2].value = imageSize }), 0, ErrFormat},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			image := test.spec.build()
			offset, err := Lookup(image, name, "LINUX_2.6")
			if offset != test.offset || !errors.Is(err, test.err) {
				t.Errorf("Lookup = %#x, %v, want %#x, %v", offset, err, test.offset, test.err)
			}
			if size, err := mappedSize(image[:0x200]); size != imageSize || err != nil {
				t.Errorf("mappedSize = %#x, %v", size, err)
			}
		})
	}
}

// Every field that is a position, with values that a parser without bounds
// checks would follow.
func TestLookupCorrupted(t *testing.T) {
	fields := map[string]struct {
		at, size int
	}{
		"e_phoff":            {32, 8},
		"e_phentsize":        {54, 2},
		"e_phnum":            {56, 2},
		"load p_offset":      {atPrograms + 8, 8},
		"load p_vaddr":       {atPrograms + 16, 8},
		"load p_filesz":      {atPrograms + 32, 8},
		"dynamic p_offset":   {atPrograms + programSize + 8, 8},
		"dynamic p_filesz":   {atPrograms + programSize + 32, 8},
		"DT_STRTAB":          {atDynamic + 8, 8},
		"DT_SYMTAB":          {atDynamic + 24, 8},
		"DT_HASH":            {atDynamic + 40, 8},
		"DT_VERSYM":          {atDynamic + 56, 8},
		"DT_VERDEF":          {atDynamic + 72, 8},
		"hash head":          {atHash, 4},
		"hash count":         {atHash + 4, 4},
		"bloom words":        {atHash + 8, 4},
		"bucket":             {atHash + 24, 4},
		"st_name":            {atSymbols + 3*symbolSize, 4},
		"st_value":           {atSymbols + 3*symbolSize + 8, 8},
		"version index":      {atVersions + 6, 2},
		"vd_aux":             {atVerdefs + 28 + 12, 4},
		"vd_next":            {atVerdefs + 16, 4},
		"vda_name":           {atVerdefs + 28 + 20, 4},
		"end of the strings": {imageSize - 8, 8},
	}
	values := []uint64{0, 1, 2, 0x7f, 0xff0, 0xfff, 0x1000, 0x1001, 1<<16 - 1, 1<<31 - 1, 1 << 31, 1<<32 - 1,
		1 << 32, 1<<63 - 1, 1 << 63, 1<<64 - 0x1000, 1<<64 - 16, 1<<64 - 1}
	for _, gnu := range []bool{false, true} {
		spec := typical()
		spec.gnuHash = gnu
		for name, field := range fields {
			for _, value := range values {
				image := spec.build()
				var bytes [8]byte
				binary.LittleEndian.PutUint64(bytes[:], value)
				copy(image[field.at:field.at+field.size], bytes[:])
				checkLookup(t, image)
				if t.Failed() {
					t.Fatalf("%s = %#x", name, value)
				}
			}
		}
	}
}

// Every length and thousands of random changes.
func TestLookupDamaged(t *testing.T) {
	for _, gnu := range []bool{false, true} {
		spec := typical()
		spec.gnuHash = gnu
		whole := spec.build()
		for n := range whole {
			checkLookup(t, whole[:n])
		}
		seed := rand.Uint64()
		rnd := rand.New(rand.NewPCG(seed, 0))
		for range 20_000 {
			image := spec.build()
			for range 1 + rnd.IntN(8) {
				image[rnd.IntN(atCode)] = byte(rnd.Uint32())
			}
			checkLookup(t, image)
			if t.Failed() {
				t.Fatal("seed", seed)
			}
		}
	}
}

// A circle of version definitions must end, and so must a symbol count that
// the image cannot hold.
func TestLookupTerminates(t *testing.T) {
	image := typical().build()
	binary.LittleEndian.PutUint32(image[atVerdefs+16:], 0xffffffff)
	binary.LittleEndian.PutUint32(image[atHash+4:], 0xffffffff)
	if _, err := Lookup(image, "no such", "LINUX_2.6"); !errors.Is(err, ErrFormat) {
		t.Errorf("4 billion symbols: %v", err)
	}
	image = typical().build()
	binary.LittleEndian.PutUint16(image[atVerdefs+28+4:], 7) // the version is not found, so all are looked at
	binary.LittleEndian.PutUint32(image[atVerdefs+28+16:], 0)
	if _, err := Lookup(image, "__vdso_clock_gettime", "LINUX_2.6"); !errors.Is(err, ErrNoSymbol) {
		t.Errorf("no version: %v", err)
	}
}

// checkLookup looks up a symbol in a damaged image: the result is an error, or
// inside the image. A crash fails the test by itself.
func checkLookup(t *testing.T, image []byte) {
	t.Helper()
	if size, err := mappedSize(image); err == nil && size < headerSize {
		t.Errorf("mappedSize = %d", size)
	}
	offset, err := Lookup(image, "__vdso_clock_gettime", "LINUX_2.6")
	switch {
	case err == nil && offset >= uint64(len(image)):
		t.Errorf("Lookup = %#x of %#x bytes", offset, len(image))
	case err != nil && !errors.Is(err, ErrFormat) && !errors.Is(err, ErrNoSymbol):
		t.Errorf("Lookup = %v, of no kind", err)
	case err != nil && offset != 0:
		t.Errorf("Lookup = %#x with error %v", offset, err)
	}
}

func FuzzLookup(f *testing.F) {
	specs := []imageSpec{typical(), {}}
	gnu := typical()
	gnu.gnuHash, gnu.addr, gnu.versions = true, 0x7000, nil
	for _, spec := range append(specs, gnu) {
		image := spec.build()
		f.Add(image)
		f.Add(image[:atSymbols])
	}
	f.Fuzz(func(t *testing.T, image []byte) { checkLookup(t, image) })
}
