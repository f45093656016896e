package atexec

import (
	"slices"
	"testing"
)

func TestAuxv(t *testing.T) {
	stack := []uint64{
		2, 0x100, 0x101, 0, // arguments
		0x200, 0x201, 0x202, 0, // environment
		33, 0x7f00, 6, 4096, 33, 0x7f01, 0, 0, // pairs
		99, 99,
	}
	aux, at, err := auxv(stack)
	if err != nil {
		t.Fatal(err)
	}
	if want := []auxEntry{{33, 0x7f00}, {6, 4096}, {33, 0x7f01}}; !slices.Equal(aux, want) || at != 8 {
		t.Errorf("%v at %d, want %v at 8", aux, at, want)
	}
	if !ignore(aux, SysinfoEHDR) {
		t.Error("entry 33 has not been found")
	}
	if want := []auxEntry{{1, 0x7f00}, {6, 4096}, {1, 0x7f01}}; !slices.Equal(aux, want) {
		t.Errorf("%v after ignore, want %v", aux, want)
	}
	if ignore(aux, SysinfoEHDR) {
		t.Error("entry 33 has been found again")
	}
	for n := range 16 {
		if _, _, err := auxv(stack[:n]); n < 15 && err == nil {
			t.Errorf("no error from the first %d words of the stack", n)
		}
	}
}
