package hostfs

import (
	"errors"
	"io/fs"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

// tree makes a root of names and texts.
func tree(files ...string) fs.FS {
	m := fstest.MapFS{}
	for i := 0; i < len(files); i += 2 {
		m[files[i]] = &fstest.MapFile{Data: []byte(files[i+1])}
	}
	return m
}

func TestParseCPUs(t *testing.T) {
	for text, want := range map[string][]int{
		"": nil, "\n": nil, "(null)\n": nil, "0\n": {0}, "0-3,8": {0, 1, 2, 3, 8}, "1-1": {1}, "2,4-5": {2, 4, 5},
	} {
		got, err := ParseCPUs(text)
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%q: %v, %v, want %v", text, got, err, want)
		}
		if back, err := ParseCPUs(got.String()); err != nil || !slices.Equal(back, got) {
			t.Errorf("%q written as %q", text, got.String())
		}
	}
	for _, text := range []string{"a", "1-", "-1", "3-1", "0-99999999", "1,1", "2,1", "0-3,2", "1 2"} {
		if got, err := ParseCPUs(text); !errors.Is(err, ErrFormat) {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
}

func FuzzParseCPUs(f *testing.F) {
	for _, seed := range []string{"0-3,8", "(null)", "1-", "0,0"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		set, err := ParseCPUs(text)
		if err != nil {
			return
		}
		back, err := ParseCPUs(set.String())
		if err != nil || !slices.Equal(back, set) || !slices.IsSorted(set) {
			t.Errorf("%q is %v, written %q", text, set, set.String())
		}
	})
}

func TestErrorsNameTheFile(t *testing.T) {
	root := tree("a/number", "12 monkeys\n", "a/long", strings.Repeat("x", 1000))
	_, err := Int(root, "a/number")
	if !errors.Is(err, ErrFormat) || Path(err) != "/a/number" || !strings.Contains(err.Error(), "12 monkeys") {
		t.Errorf("error %v, path %q", err, Path(err))
	}
	if _, err := Int(root, "a/long"); len(err.Error()) > 200 {
		t.Errorf("an error of %d bytes", len(err.Error()))
	}
	_, err = Int(root, "a/none")
	if !errors.Is(err, fs.ErrNotExist) || Path(err) != "/a/none" {
		t.Errorf("error %v, path %q", err, Path(err))
	}
	if Path(errors.New("other")) != "" {
		t.Error("a path from nowhere")
	}
}

func TestArch(t *testing.T) {
	for want, root := range map[string]fs.FS{
		"amd64":   tree("proc/sys/kernel/arch", "x86_64\n"),
		"arm64":   tree("proc/cpuinfo", "processor\t: 0\nFeatures\t: fp asimd evtstrm\nCPU implementer\t: 0x41\n"),
		"riscv64": tree("proc/sys/kernel/arch", "riscv64\n"),
		"":        tree(),
	} {
		if got := Arch(root); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestReadClocksource(t *testing.T) {
	c, err := ReadClocksource(tree(clocksourceDir+"/current_clocksource", "tsc\n", clocksourceDir+"/available_clocksource", "tsc hpet acpi_pm \n"))
	if err != nil || c.Current != "tsc" || !slices.Equal(c.Available, []string{"tsc", "hpet", "acpi_pm"}) {
		t.Errorf("%+v, %v", c, err)
	}
	if _, err := ReadClocksource(tree()); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}

func TestReadCPUInfo(t *testing.T) {
	c, err := ReadCPUInfo(tree("proc/cpuinfo", "processor\t: 0\nvendor_id\t: GenuineIntel\nmodel name\t: Xeon\nflags\t\t: fpu tsc\n\nprocessor\t: 1\nflags\t\t: fpu\n"))
	if err != nil || c.Count != 2 || c.Model != "Xeon" || c.Vendor != "GenuineIntel" || !c.Flags["tsc"] || c.Flags["ts"] || c.Same {
		t.Errorf("%+v, %v", c, err)
	}
}
