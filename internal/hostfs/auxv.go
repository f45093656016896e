package hostfs

import (
	"encoding/binary"
	"fmt"
	"io/fs"
)

// Entries of the auxiliary vector, which the kernel hands to a process at exec.
const (
	AuxPageSize     = 6  // AT_PAGESZ
	AuxClockTicks   = 17 // AT_CLKTCK: ticks a second of times(2), not the kernel's HZ
	AuxSecure       = 23 // AT_SECURE
	AuxSysinfoEHDR  = 33 // AT_SYSINFO_EHDR: where the vDSO is
	auxEntrySize    = 16 // two words of 64 bits
	mostAuxvEntries = 256
)

// Auxv reads the auxiliary vector of a process ("self" or its number), on
// machines of 64 bits with the byte order of amd64 and arm64. A missing entry is
// one that the kernel did not hand over, or that somebody took out.
func Auxv(root fs.FS, process string) (map[uint64]uint64, error) {
	name := "proc/" + process + "/auxv"
	b, err := fs.ReadFile(root, name)
	if err != nil {
		return nil, err
	}
	vector := map[uint64]uint64{}
	for i := 0; i+auxEntrySize <= len(b) && i < mostAuxvEntries*auxEntrySize; i += auxEntrySize {
		tag, value := binary.LittleEndian.Uint64(b[i:]), binary.LittleEndian.Uint64(b[i+8:])
		if tag == 0 {
			return vector, nil
		}
		vector[tag] = value
	}
	return nil, &fs.PathError{Op: "read", Path: name, Err: fmt.Errorf("%d bytes without an end: %w", len(b), ErrFormat)}
}
