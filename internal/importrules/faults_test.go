package importrules

import (
	"strings"
	"testing"
	"testing/fstest"
)

// TestFaultsAreFound breaks each rule once, in a small repository that keeps
// all of them otherwise.
func TestFaultsAreFound(t *testing.T) {
	const ours = `"` + root + `/`
	base := map[string]string{
		"go.mod":                     "module " + root + "\n\ngo 1.26\n\nrequire golang.org/x/sys v0.1.0 // indirect\n",
		"timer/doc.go":               "package timer\n\nimport _ " + ours + "internal/shard\"\n",
		"timer/x_test.go":            "package timer_test\n\nimport _ " + ours + "timer\"\n",
		"internal/shard/shard.go":    "package shard\n\nimport _ \"golang.org/x/sys/unix\"\n",
		"internal/rt/rt.go":          "package rt\n\nimport _ \"unsafe\"\n\n//go:linkname f runtime.f\nfunc f()\n",
		"internal/rt/empty.s":        "",
		"cmd/go.mod":                 "module " + root + "/cmd\n\nrequire example.com/x v1.0.0\n",
		"cmd/detent/main.go":         "package main\n\nimport (\n\t_ \"example.com/x\"\n\t_ " + ours + "timer\"\n)\n",
		"cmd/detent/testdata/bad.go": "not Go",
		"docs/notes.md":              "no package",
	}
	tests := []struct {
		name, file, text string
		want             string // in one of the faults; "" for none
	}{
		{"nothing", "README.md", "", ""},
		{"import that the table lacks", "timer/a.go",
			"package timer\n\nimport _ " + ours + "probe\"\n", "timer/a.go:3: timer may not import probe"},
		{"the same behind a build constraint", "timer/a_windows.go",
			"//go:build never\n\npackage timer\n\nimport _ " + ours + "probe\"\n", "timer/a_windows.go:5: timer may not import probe"},
		{"the same in a test", "timer/a_test.go",
			"package timer\n\nimport _ " + ours + "probe\"\n", "timer/a_test.go:3: timer may not import probe"},
		{"another module reaching for internals", "cmd/detent/a.go",
			"package main\n\nimport _ " + ours + "internal/shard\"\n", "cmd/detent may not import internal/shard"},
		{"package without a rule", "internal/new/new.go", "package new\n", "internal/new: a package without a rule"},
		{"package in the root", "detent.go", "package detent\n", ".: a package without a rule"},
		{"way to a banned package", "internal/shard/a.go",
			"package shard\n\nimport _ " + ours + "clock\"\n", "timer -> internal/shard -> clock: a bad TSC"},
		{"lab used", "probe/a.go",
			"package probe\n\nimport _ " + ours + "lab/wheels\"\n", "probe -> lab/wheels: the lab's"},
		{"module of somebody else", "timer/a.go",
			"package timer\n\nimport _ \"example.com/x\"\n", "timer/a.go:3: the library imports example.com/x"},
		{"module with a like name", "timer/a.go",
			"package timer\n\nimport _ \"golang.org/x/sysx\"\n", "the library imports golang.org/x/sysx"},
		{"cgo", "timer/a.go", "package timer\n\nimport \"C\"\n", "timer/a.go:3: cgo"},
		{"unsafe", "timer/a.go", "package timer\n\nimport \"unsafe\"\n\nvar _ unsafe.Pointer\n", "timer/a.go:3: unsafe;"},
		{"linkname", "timer/a.go",
			"package timer\n\n//go:linkname f runtime.f\nfunc f()\n", "timer/a.go:3: go:linkname;"},
		{"assembly", "timer/a_arm64.s", "", "timer/a_arm64.s: a source file that is not Go"},
		{"raw call", "timer/a.go",
			"package timer\n\nimport \"syscall\"\n\nvar _ = syscall.RawSyscall6\n", "timer/a.go:5: the raw system call syscall.RawSyscall6"},
		{"raw call under another name", "timer/a.go",
			"package timer\n\nimport u \"golang.org/x/sys/unix\"\n\nfunc f() { u.SyscallNoError(1, 0, 0, 0) }\n", "u.SyscallNoError"},
		{"raw call of Windows", "timer/a.go",
			"package timer\n\nimport \"golang.org/x/sys/windows\"\n\nvar _ = windows.NewLazySystemDLL(\"ntdll\")\n", "windows.NewLazySystemDLL"},
		{"raw call without a name", "timer/a.go",
			"package timer\n\nimport . \"syscall\"\n\nvar _ = Getpid\n", "a dot import of syscall"},
		{"cooked call", "timer/a.go",
			"package timer\n\nimport \"syscall\"\n\nvar _ = syscall.Getpid\n", ""},
		{"64-bit atomic that may not be aligned", "timer/a.go",
			"package timer\n\nimport \"sync/atomic\"\n\nvar x uint64\nvar _ = atomic.LoadUint64(&x)\n", "timer/a.go:6: atomic.LoadUint64"},
		{"the same under another name", "timer/a.go",
			"package timer\n\nimport a \"sync/atomic\"\n\nvar x int64\nvar _ = a.AddInt64(&x, 1)\n", "timer/a.go:6: a.AddInt64"},
		{"atomic that is aligned", "timer/a.go",
			"package timer\n\nimport \"sync/atomic\"\n\nvar x atomic.Uint64\nvar y uint32\nvar _ = x.Load() + uint64(atomic.LoadUint32(&y))\n", ""},
		{"requirement", "go.mod",
			"module " + root + "\n\nrequire (\n\tgolang.org/x/sys v0.1.0\n\texample.com/x v1.0.0\n)\n", "go.mod: requires example.com/x"},
		{"tool in the library", "go.mod", "module " + root + "\n\ntool example.com/x\n", "go.mod: a tool line"},
		{"module renamed", "go.mod", "module example.com/detent\n", "go.mod: the module is example.com/detent"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			fsys := fstest.MapFS{}
			for name, text := range base {
				fsys[name] = &fstest.MapFile{Data: []byte(text)}
			}
			fsys[test.file] = &fstest.MapFile{Data: []byte(test.text)}
			tree, err := load(fsys)
			if err != nil {
				t.Fatal(err)
			}
			got := strings.Join(tree.check(rules, bans, required), "\n")
			if test.want == "" && got != "" || !strings.Contains(got, test.want) {
				t.Errorf("got faults:\n%s\nwant one with: %q", got, test.want)
			}
		})
	}
}
