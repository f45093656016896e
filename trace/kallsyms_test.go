package trace

import (
	"errors"
	"io/fs"
	"maps"
	"testing"
	"testing/fstest"
)

func TestKernelSymbols(t *testing.T) {
	root := fstest.MapFS{"proc/kallsyms": {Data: []byte(
		"ffffffff81000000 T _text\nffffffff8141e4b0 t hrtimer_wakeup\nffffffffc0001000 t tick\t[module]\n0000000000000000 t hidden\nrubbish\nx t y\n")}}
	got, err := addresses(root, "hrtimer_wakeup", "tick", "hidden", "absent")
	want := map[string]uint64{"hrtimer_wakeup": 0xffffffff8141e4b0, "tick": 0xffffffffc0001000}
	if err != nil || !maps.Equal(got, want) {
		t.Errorf("%v, %v; want %v", got, err, want)
	}
	names := map[uint64]string{0xffffffff81000000: "", 0xffffffffc0001000: "known", 5: ""}
	if err := nameFunctions(root, names); err != nil {
		t.Fatal(err)
	}
	if want := map[uint64]string{0xffffffff81000000: "_text", 0xffffffffc0001000: "known", 5: ""}; !maps.Equal(names, want) {
		t.Errorf("%v, want %v", names, want)
	}
	if _, err := addresses(fstest.MapFS{}, "x"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no /proc: %v", err)
	}
}
