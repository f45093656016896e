// Package atexec starts a command and holds it at its exec, before its first
// instruction: whoever wants to watch it from the beginning attaches then, and
// whoever wants it to find another auxiliary vector writes one.
//
// It works on Linux, where the kernel lets a parent trace its children. Elsewhere
// Start returns an error that matches errors.ErrUnsupported.
package atexec

import "fmt"

// The tag of the auxiliary vector's entry with the vDSO's address.
const SysinfoEHDR = 33

// An auxEntry is one pair of a process's auxiliary vector.
type auxEntry struct{ tag, value uint64 }

const (
	auxNull   = 0
	auxIgnore = 1
)

// ignore overwrites the tag of every entry with this tag, and says whether there
// was one.
func ignore(aux []auxEntry, tag uint64) bool {
	found := false
	for i := range aux {
		if aux[i].tag == tag {
			aux[i].tag = auxIgnore
			found = true
		}
	}
	return found
}

// skipPointers returns how far into words the list after the next null pointer
// starts, or an error if words end before it.
func skipPointers(words []uint64, from int) (int, error) {
	for i := from; i < len(words); i++ {
		if words[i] == 0 {
			return i + 1, nil
		}
	}
	return 0, fmt.Errorf("no end of a list within %d words of the stack", len(words))
}

// auxv finds the auxiliary vector in the words at the top of a new process's
// stack: the count of arguments, the arguments and the environment, each list
// ended by a null pointer, then pairs up to the tag zero. It returns the pairs and
// where they start.
func auxv(words []uint64) ([]auxEntry, int, error) {
	at, err := skipPointers(words, 1)
	if err != nil {
		return nil, 0, err
	}
	if at, err = skipPointers(words, at); err != nil {
		return nil, 0, err
	}
	var aux []auxEntry
	for i := at; i+1 < len(words); i += 2 {
		if words[i] == auxNull {
			return aux, at, nil
		}
		aux = append(aux, auxEntry{words[i], words[i+1]})
	}
	return nil, 0, fmt.Errorf("no end of the auxiliary vector within %d words of the stack", len(words))
}
