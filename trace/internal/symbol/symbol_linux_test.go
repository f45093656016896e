package symbol

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/detent-go/detent/trace/internal/proc"
)

func self(t *testing.T) *proc.Process {
	p, err := proc.Read(os.DirFS("/"), os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	p.ReadDetails(os.DirFS("/"))
	return p
}

//go:noinline
func here() (uintptr, string, string, int) {
	pc, file, line, _ := runtime.Caller(0)
	return pc, runtime.FuncForPC(pc).Name(), file, line
}

// TestOwn: this program's own functions, as the runtime knows them. go test strips
// symbols, so it is the line table that tells.
func TestOwn(t *testing.T) {
	pc, name, file, line := here()
	cache := NewCache(os.DirFS("/"))
	p := self(t)
	got, object := cache.Lookup(p, uint64(pc))
	if got.Func != name || got.Line != line || filepath.Base(got.File) != filepath.Base(file) {
		t.Errorf("%+v, want %s at %s:%d", got, name, file, line)
	}
	if object != p.Exe {
		t.Errorf("in %q, want %q", object, p.Exe)
	}
	o := cache.Object(p, p.At(uint64(pc)))
	if o == nil || !o.Go() {
		t.Fatal("this program is not taken for a Go program")
	}
	addr, ok := o.Func(name)
	if !ok || addr > uint64(pc) || uint64(pc)-addr > 1000 {
		t.Errorf("%s is at %#x, %v; the call was at %#x", name, addr, ok, pc)
	}
	offset, ok := o.Offset(addr)
	if back, ok2 := o.Address(offset); !ok || !ok2 || back != addr {
		t.Errorf("address %#x is offset %#x is address %#x", addr, offset, back)
	}
	if _, ok := o.Func("no such function"); ok {
		t.Error("a function that is not there was found")
	}
	if cache.Object(p, p.At(uint64(pc))) != o {
		t.Error("the file has been read again")
	}
}

func TestVDSO(t *testing.T) {
	p := self(t)
	m := p.Named("[vdso]")
	if m == nil {
		t.Skip("no vDSO")
	}
	cache := NewCache(os.DirFS("/"))
	o := cache.Object(p, m)
	if o == nil {
		t.Fatal("the vDSO cannot be read")
	}
	for _, name := range []string{"__vdso_clock_gettime", "__kernel_clock_gettime"} {
		addr, ok := o.Func(name)
		if !ok {
			continue
		}
		got, object := cache.Lookup(p, m.Start+addr)
		// It has a second name for the same address.
		if object != "[vdso]" || !strings.HasSuffix(got.Func, "clock_gettime") {
			t.Errorf("%+v in %s", got, object)
		}
		return
	}
	t.Error("no clock_gettime in the vDSO")
}

// TestUnmapped: addresses that belong to nothing, or to what is no ELF file.
func TestUnmapped(t *testing.T) {
	name := filepath.Join(t.TempDir(), "data")
	if err := os.WriteFile(name, []byte("not an ELF file"), 0o600); err != nil {
		t.Fatal(err)
	}
	cache := NewCache(os.DirFS("/"))
	p := &proc.Process{PID: os.Getpid(), Maps: []proc.Mapping{
		{Start: 0x1000, End: 0x2000, Path: name},
		{Start: 0x3000, End: 0x4000, Path: "/no/such/file"},
		{Start: 0x5000, End: 0x6000},
	}}
	for addr, want := range map[uint64]string{0x1000: name, 0x3000: "/no/such/file", 0x5000: "", 0x9000: ""} {
		if got, object := cache.Lookup(p, addr); got != (Symbol{}) || object != want {
			t.Errorf("%#x: %+v in %q, want %q", addr, got, object, want)
		}
	}
}

// TestCacheBound: the cache forgets what was used the longest time ago.
func TestCacheBound(t *testing.T) {
	dir := t.TempDir()
	cache := NewCache(os.DirFS("/"))
	p := &proc.Process{PID: os.Getpid()}
	for i := range 3 * maxObjects {
		name := filepath.Join(dir, strings.Repeat("x", i+1))
		if err := os.WriteFile(name, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		cache.Object(p, &proc.Mapping{Path: name})
	}
	if len(cache.objects) != maxObjects || cache.order.Len() != maxObjects {
		t.Errorf("%d objects, want %d", len(cache.objects), maxObjects)
	}
}

// TestLibrary: a shared library, by its dynamic symbols.
func TestLibrary(t *testing.T) {
	var name string
	for _, pattern := range []string{"/lib/*-linux-gnu/libc.so.6", "/lib64/libc.so.6", "/usr/lib/libc.so.6"} {
		if found, _ := filepath.Glob(pattern); len(found) > 0 {
			name = found[0]
		}
	}
	f, err := os.Open(name)
	if err != nil {
		t.Skip("no C library here:", err)
	}
	defer f.Close()
	o, err := Read(f)
	if err != nil {
		t.Fatal(err)
	}
	addr, ok := o.Func("clock_gettime")
	if !ok || o.Go() {
		t.Fatalf("clock_gettime is at %#x, %v; a Go program: %v", addr, ok, o.Go())
	}
	if got := o.Lookup(addr + 1); !strings.Contains(got.Func, "clock_gettime") {
		t.Errorf("%+v", got)
	}
	if got := o.Lookup(0); got.Func != "" {
		t.Errorf("address 0 is %+v", got)
	}
}

// TestLinked: Go programs as they are built and stripped in practice, also with C
// in them and independent of their position.
func TestLinked(t *testing.T) {
	goTool, err := exec.LookPath("go")
	if err != nil {
		t.Skip("no go command to build programs with:", err)
	}
	for name, build := range map[string]struct {
		cgo  string
		args []string
	}{
		"plain":         {"0", nil},
		"stripped":      {"0", []string{"-ldflags=-s -w"}},
		"pie":           {"0", []string{"-buildmode=pie", "-ldflags=-s -w"}},
		"with C":        {"1", []string{"-ldflags=-s -w -linkmode=external"}},
		"pie, with C":   {"1", []string{"-buildmode=pie", "-ldflags=-s -w -linkmode=external"}},
		"internal link": {"1", []string{"-ldflags=-s -w -linkmode=internal"}},
	} {
		t.Run(name, func(t *testing.T) {
			exe := filepath.Join(t.TempDir(), "linked")
			cmd := exec.Command(goTool, append(append([]string{"build", "-o", exe}, build.args...), "./testdata/linked")...)
			cmd.Env = append(os.Environ(), "CGO_ENABLED="+build.cgo)
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Skipf("cannot be built here: %v\n%s", err, out)
			}
			checkPlace(t, exe)
		})
	}
}

func checkPlace(t *testing.T, exe string) {
	cmd := exec.Command(exe)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Wait()
	defer stdin.Close()
	var pc uint64
	var line int
	if _, err := fmt.Fscan(stdout, &pc, &line); err != nil {
		t.Fatal(err)
	}
	root := os.DirFS("/")
	p, err := proc.Read(root, cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	p.ReadDetails(root)
	got, object := NewCache(root).Lookup(p, pc)
	if got.Func != "main.place" || got.Line != line || object != exe {
		t.Errorf("%+v in %s, want main.place, line %d, in %s", got, object, line, exe)
	}
}
