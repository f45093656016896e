package proc

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io/fs"
	"maps"
	"slices"
	"testing"
	"testing/fstest"
	"time"
)

func file(s string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(s)} }
func link(s string) *fstest.MapFile {
	return &fstest.MapFile{Data: []byte(s), Mode: fs.ModeSymlink | 0o777}
}

func words(w ...uint64) []byte {
	var b []byte
	for _, x := range w {
		b = binary.LittleEndian.AppendUint64(b, x)
	}
	return b
}

const stat = "7 (a) b (c) S 1 7 7 0 -1 4194560 8 0 0 0 150 50 0 0 20 0 12 0 4711 1 2 18446744073709551615 1 2 4096 0 0 0 0\n"

// memory is a file that can be read at any offset, as /proc/PID/mem.
type memory struct {
	fstest.MapFS
	name string
	at   int64
	data []byte
}

type memoryFile struct {
	fs.File
	*memory
}

func (m *memory) Open(name string) (fs.File, error) {
	if name == m.name {
		return memoryFile{nil, m}, nil
	}
	return m.MapFS.Open(name)
}

func (memoryFile) Close() error { return nil }

func (f memoryFile) ReadAt(b []byte, off int64) (int, error) {
	if off < f.at || off >= f.at+int64(len(f.data)) {
		return 0, errors.New("no memory there")
	}
	n := copy(b, f.data[off-f.at:])
	if n < len(b) {
		return n, errors.New("no memory after that")
	}
	return n, nil
}

func TestRead(t *testing.T) {
	root := fstest.MapFS{
		"proc/1/ns/time":  link("time:[1]"),
		"proc/7/stat":     file(stat),
		"proc/7/exe":      link("/opt/a b (deleted)"),
		"proc/7/auxv":     {Data: words(33, 0x7000, 6, 4096, 0, 0, 33, 1)},
		"proc/7/status":   file("Name:\tx\nTracerPid:\t99\nSeccomp:\t2\nSeccomp_filters:\t1\n"),
		"proc/7/ns/time":  link("time:[2]"),
		"proc/7/cgroup":   file("12:cpu,cpuacct:/a\n0::/b/c\nnonsense\n"),
		"proc/7/maps":     file("1000-2000 r-xp 00000400 fe:00 1000 /opt/a b (deleted)\n3000-5000 rw-p 00000000 00:00 0 \n7000-8000 r-xp 00000000 00:00 0                          [vdso]\nrubbish\n"),
		"proc/8/stat":     file("8 (x) S 1\n"),
		"proc/9/stat":     file("nothing\n"),
		"proc/10/stat":    file(stat),
		"proc/10/auxv":    file(""),
		"proc/10/ns/time": link("time:[1]"),
	}
	p, err := Read(root, 7)
	if err != nil {
		t.Fatal(err)
	}
	p.ReadDetails(root)
	if p.Comm != "a) b (c" || p.Exe != "/opt/a b" || p.Start != 4711 || p.Threads != 12 || p.CPU != 2*time.Second {
		t.Errorf("%+v", p)
	}
	if want := map[uint64]uint64{33: 0x7000, 6: 4096}; !maps.Equal(p.Aux, want) {
		t.Errorf("vector %v, want %v", p.Aux, want)
	}
	if p.Seccomp != 2 || p.Tracer != 99 || !p.TimeNS || !p.KnowsTimeNS {
		t.Errorf("%+v", p)
	}
	if len(p.Cgroups) != 2 || !slices.Equal(p.Cgroups[0].Controllers, []string{"cpu", "cpuacct"}) || p.Cgroups[1].Path != "/b/c" {
		t.Errorf("%+v", p.Cgroups)
	}
	want := []Mapping{
		{0x1000, 0x2000, 0x400, true, "/opt/a b"}, {0x3000, 0x5000, 0, false, ""}, {0x7000, 0x8000, 0, true, "[vdso]"},
	}
	if !slices.Equal(p.Maps, want) {
		t.Errorf("%+v, want %+v", p.Maps, want)
	}
	if p.At(0x1fff) != &p.Maps[0] || p.At(0x2000) != nil || p.Named("[vdso]") != &p.Maps[2] || p.Named("[vvar]") != nil {
		t.Error("mappings are not found by address and name")
	}
	for _, pid := range []int{8, 9} {
		if _, err := Read(root, pid); err == nil {
			t.Errorf("process %d has been read", pid)
		}
	}
	if _, err := Read(root, 11); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no such process: %v", err)
	}
	// Another user's: little can be seen.
	hidden, err := Read(root, 10)
	if err != nil {
		t.Fatal(err)
	}
	hidden.ReadDetails(root)
	if hidden.Aux != nil || hidden.Maps != nil || hidden.TimeNS || !hidden.KnowsTimeNS {
		t.Errorf("%+v", hidden)
	}
}

func TestReadUsage(t *testing.T) {
	root := fstest.MapFS{"proc/7/stat": file(stat)}
	p, err := Read(root, 7)
	if err != nil {
		t.Fatal(err)
	}
	root["proc/7/stat"] = &fstest.MapFile{Data: bytes.Replace([]byte(stat), []byte(" 150 "), []byte(" 250 "), 1)}
	if !p.ReadUsage(root) || p.CPU != 3*time.Second {
		t.Errorf("%v", p.CPU)
	}
	root["proc/7/stat"] = &fstest.MapFile{Data: bytes.Replace([]byte(stat), []byte(" 4711 "), []byte(" 4712 "), 1)}
	if p.ReadUsage(root) {
		t.Error("another process of the same id is taken for it")
	}
}

func TestReadFound(t *testing.T) {
	stack := words(
		2, 0x100, 0x101, 0, // arguments
		0x200, 0, // environment
		1, 0x7000, 6, 4096, 0, 0,
	)
	root := &memory{
		MapFS: fstest.MapFS{
			"proc/7/stat": file(stat),
			"proc/7/maps": file("1000-3000 rw-p 00000000 00:00 0 [stack]\n"),
		},
		name: "proc/7/mem", at: 0x1000, data: stack,
	}
	p := &Process{PID: 7}
	if err := p.ReadFound(root); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("without mappings: %v", err)
	}
	p.ReadDetails(root)
	if err := p.ReadFound(root); err != nil {
		t.Fatal(err)
	}
	if want := map[uint64]uint64{1: 0x7000, 6: 4096}; !maps.Equal(p.Found, want) {
		t.Errorf("%v, want %v", p.Found, want)
	}
	root.data = stack[:40]
	p.Found = nil
	if err := p.ReadFound(root); err == nil || p.Found != nil {
		t.Errorf("a stack without a vector: %v, %v", p.Found, err)
	}
}

func TestQuota(t *testing.T) {
	mounts := "tmpfs /sys/fs/cgroup tmpfs rw 0 0\ncgroup /sys/fs/cgroup/cpu,cpuacct cgroup rw,cpu,cpuacct 0 0\ncgroup2 /sys/fs/cgroup/unified cgroup2 rw 0 0\n"
	v1, v2 := "sys/fs/cgroup/cpu,cpuacct", "sys/fs/cgroup/unified"
	root := fstest.MapFS{
		"proc/mounts":                 file(mounts),
		v1 + "/cpu.cfs_quota_us":      file("-1\n"),
		v1 + "/cpu.cfs_period_us":     file("100000\n"),
		v1 + "/a/cpu.cfs_quota_us":    file("50000\n"),
		v1 + "/a/cpu.cfs_period_us":   file("100000\n"),
		v1 + "/a/cpu.stat":            file("nr_periods 10\nnr_throttled 4\nthrottled_time 123\n"),
		v1 + "/a/b/cpu.cfs_quota_us":  file("200000\n"),
		v1 + "/a/b/cpu.cfs_period_us": file("100000\n"),
		v2 + "/c/cpu.max":             file("20000 100000\n"),
		v2 + "/c/cpu.stat":            file("usage_usec 1\nnr_periods 7\nnr_throttled 5\nthrottled_usec 9\n"),
		v2 + "/d/cpu.max":             file("max 100000\n"),
	}
	v1cpu := []string{"cpu", "cpuacct"}
	for _, c := range []struct {
		name   string
		groups []Cgroup
		want   *Quota
	}{
		{"version 1, the one above is tighter", []Cgroup{{v1cpu, "/a/b"}, {[]string{"memory"}, "/c"}},
			&Quota{v1 + "/a", "cpu.cfs_quota_us", 50 * time.Millisecond, 100 * time.Millisecond, 10, 4, 123}},
		{"version 2", []Cgroup{{nil, "/c"}}, &Quota{v2 + "/c", "cpu.max", 20 * time.Millisecond, 100 * time.Millisecond, 7, 5, 9 * time.Microsecond}},
		{"no limit", []Cgroup{{nil, "/d"}, {v1cpu, "/"}}, nil},
		{"not to be seen", []Cgroup{{nil, "/../e"}}, nil},
		{"none", nil, nil},
	} {
		got := (&Process{Cgroups: c.groups}).Quota(root)
		if (got == nil) != (c.want == nil) || got != nil && *got != *c.want {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
}

func TestPIDs(t *testing.T) {
	root := fstest.MapFS{
		"sys/fs/cgroup/a/cgroup.procs":   file("1\n22\n"),
		"sys/fs/cgroup/a/b/cgroup.procs": file("333\n"),
		"sys/fs/cgroup/c/cgroup.procs":   file("4\n"),
		"sys/fs/cgroup/a/cpu.stat":       file(""),
	}
	got, err := PIDs(root, "sys/fs/cgroup/a")
	if slices.Sort(got); err != nil || !slices.Equal(got, []int{1, 22, 333}) {
		t.Errorf("%v, %v", got, err)
	}
	if _, err := PIDs(root, "sys/fs/cgroup/z"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no such cgroup: %v", err)
	}
}
