package trace

import (
	"bufio"
	"io/fs"
	"strconv"
	"strings"
)

// kernelSymbols calls visit for each symbol of the kernel. Where addresses are
// hidden they are 0.
func kernelSymbols(root fs.FS, visit func(addr uint64, name string)) error {
	f, err := root.Open("proc/kallsyms")
	if err != nil {
		return err
	}
	defer f.Close()
	lines := bufio.NewScanner(bufio.NewReaderSize(f, 256<<10))
	for lines.Scan() {
		// ffffffff8141e4b0 t hrtimer_wakeup [module]
		hex, rest, ok := strings.Cut(lines.Text(), " ")
		if !ok || len(rest) < 3 {
			continue
		}
		addr, err := strconv.ParseUint(hex, 16, 64)
		if err != nil {
			continue
		}
		name, _, _ := strings.Cut(rest[2:], "\t")
		visit(addr, name)
	}
	return lines.Err()
}

// addresses returns where these functions of the kernel are; those that are not
// there, or hidden, are left out.
func addresses(root fs.FS, names ...string) (map[string]uint64, error) {
	found := make(map[string]uint64)
	err := kernelSymbols(root, func(addr uint64, name string) {
		if addr == 0 {
			return
		}
		for _, n := range names {
			if n == name {
				found[n] = addr
			}
		}
	})
	return found, err
}

// nameFunctions fills in the names of the functions that m has by address with
// none.
func nameFunctions(root fs.FS, m map[uint64]string) error {
	return kernelSymbols(root, func(addr uint64, name string) {
		if known, ok := m[addr]; ok && known == "" {
			m[addr] = name
		}
	})
}
