package timer_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/build"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/detent-go/detent/internal/suite"
)

// Go's own tests of contexts are compiled against a package that looks like
// package context but has detent's deadlines in it, in the way of the tests of
// timers (see goroot_build_test.go). All other contexts are package context's,
// so that every tree in these tests is a mixed one.

var contextGorootFiles = []string{"x_test.go", "afterfunc_test.go", "net_test.go", "benchmark_test.go"}

// contextOurs are the names of package context that detent has instead.
var contextOurs = []string{"WithTimeout", "WithDeadline", "WithTimeoutCause", "WithDeadlineCause"}

// contextShimHead is the stand-in for package context, but for what is only
// handed on. The functions at its end are those of package context's internal
// test file, which look into its types.
const contextShimHead = `package context

import (
	"context"
	"testing"

	"%[1]s"
)

var (
	WithTimeout       = timer.WithTimeout
	WithDeadline      = timer.WithDeadline
	WithTimeoutCause  = timer.WithTimeoutCause
	WithDeadlineCause = timer.WithDeadlineCause
)

func XTestParentFinishesChild(t *testing.T)     { t.Skip("internal") }
func XTestChildFinishesFirst(t *testing.T)      { t.Skip("internal") }
func XTestCancelRemoves(t *testing.T)           { t.Skip("internal") }
func XTestCustomContextGoroutines(t *testing.T) { t.Skip("internal") }
`

// contextSkipped holds those of Go's tests that cannot run against detent, with
// the reason and the test of this package that is there instead.
var contextSkipped = map[string]string{
	"TestParentFinishesChild":     "looks at package context's lists of children: TestContextMixedTree, TestContextPending",
	"TestChildFinishesFirst":      "looks at package context's lists of children: TestContextMixedTree, TestContextPending",
	"TestCancelRemoves":           "looks at package context's lists of children: TestContextCollected",
	"TestCustomContextGoroutines": "reads package context's count of goroutines: TestContextGoroutines",
}

// contextAtTimes holds those of Go's tests that detent fails at times, with the
// reason and what is printed then. They are random, and run many times.
var contextAtTimes = map[string]struct{ why, prints string }{
	"TestLayersCancel": {
		"where a context of package context is canceled, one of package context below one of detent's is done " +
			"as soon as another goroutine has run, not when cancel returns: TestContextMixedTree",
		"ctx should be canceled",
	},
}

// contextGorootLeast is how many of Go's tests must pass at the least.
const contextGorootLeast = 30

// TestContextGoroot runs Go's own tests of contexts against detent.
func TestContextGoroot(t *testing.T) {
	if suite.Race && testing.Short() {
		t.Skip("compiles a second test binary with the race detector")
	}
	for name, tags := range map[string]string{"default": "", "portable": "detent_portable"} {
		t.Run(name, func(t *testing.T) {
			if portable && tags == "" {
				t.Skip("this run is of the portable build")
			}
			g := &goroot{binary: buildContextGoroot(t, tags), short: testing.Short()}
			testContextGoroot(t, g)
			if !suite.Race {
				g.benchmark(t)
			}
		})
	}
}

func testContextGoroot(t *testing.T, g *goroot) {
	list, err := g.exec(t, "-test.list=^Test")
	if err != nil {
		t.Fatalf("listing Go's tests: %v\n%s", err, list)
	}
	names := strings.Fields(list)
	always := slices.DeleteFunc(slices.Clone(names), func(name string) bool {
		_, at := contextAtTimes[name]
		return at
	})
	results, out := g.run(t, always...)
	passed := 0
	for _, name := range always {
		switch why := contextSkipped[name]; {
		case results[name] == "PASS" && why != "":
			t.Errorf("%s passes: it no longer belongs in the list (%s)", name, why)
		case results[name] == "PASS":
			passed++
		case results[name] == "SKIP" && why != "":
			t.Logf("%s not run, as listed: it %s", name, why)
		default:
			t.Errorf("%s: %q\n%s", name, results[name], excerpt(out, name))
		}
	}
	t.Logf("%d of %d of Go's tests passed", passed, len(names))
	if passed < contextGorootLeast {
		t.Errorf("only %d of Go's tests passed, want at least %d", passed, contextGorootLeast)
	}
	for name := range contextSkipped {
		if !slices.Contains(names, name) {
			t.Errorf("%s is in the list, but Go has no such test", name)
		}
	}
	for name, at := range contextAtTimes {
		if !slices.Contains(names, name) {
			t.Errorf("%s is in the list, but Go has no such test", name)
			continue
		}
		testContextAtTimes(t, g, name, at.why, at.prints)
	}
}

// testContextAtTimes runs a test until it has failed, as it must sooner or later
// and in no other way than is known.
func testContextAtTimes(t *testing.T, g *goroot, name, why, prints string) {
	t.Helper()
	failure := regexp.MustCompile(`(?m)^ +\w+_test\.go:\d+: (.*)$`)
	for run := range 10 {
		out, err := g.exec(t, "-test.run=^"+name+"$", "-test.timeout=2m", "-test.count=200")
		if err == nil {
			continue
		}
		for _, m := range failure.FindAllStringSubmatch(out, -1) {
			if strings.HasPrefix(m[1], "context.Background") {
				continue // The test logs its contexts.
			}
			if !strings.Contains(m[1], prints) {
				t.Errorf("%s failed, and not as listed: %s", name, m[1])
			}
		}
		if !strings.Contains(out, "--- FAIL: "+name) {
			t.Errorf("%s: %v\n%s", name, err, out[max(0, len(out)-6000):])
		}
		t.Logf("%s failed %d times in %d runs, as listed: %s",
			name, strings.Count(out, "--- FAIL: "+name), 200*(run+1), why)
		return
	}
	t.Errorf("%s passed 2000 times: it no longer belongs in the list (%s)", name, why)
}

// buildContextGoroot compiles Go's tests against detent with the tags, and
// returns the path of the test binary.
func buildContextGoroot(t *testing.T, tags string) string {
	t.Helper()
	src, path, dir := gorootSource(t, "context", contextGorootFiles)
	standIns := path + "/internal/goroot"
	head := fmt.Sprintf(contextShimHead, path)
	files := map[string][]byte{
		"context/context.go": append([]byte(head), handOn(t, src, "context", contextOurs)...),
		"asan/asan.go":       []byte("package asan\n\nconst Enabled = false\n"),
	}
	for _, name := range contextGorootFiles {
		text := rewrite(t, filepath.Join(src, name), standIns)
		for from, to := range map[string]string{
			standIns + "/time": "time", // All but the contexts is to be the original.
			"context":          standIns + "/context",
			"internal/asan":    standIns + "/asan",
		} {
			text = bytes.ReplaceAll(text, []byte(strconv.Quote(from)+"\n"), []byte(strconv.Quote(to)+"\n"))
		}
		files["context/"+name] = text
	}
	return compileOverlay(t, tags, filepath.Join(dir, "internal", "goroot"), files, standIns+"/context")
}

// gorootSource returns the folder in GOROOT of a package of which the files are
// needed, and the import path and folder of this package. It skips the test
// where there are no sources.
func gorootSource(t *testing.T, pkg string, files []string) (src, path, dir string) {
	t.Helper()
	goroot, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		t.Skipf("needs the go command: go env GOROOT: %v", err)
	}
	src = filepath.Join(string(bytes.TrimSpace(goroot)), "src", pkg)
	for _, name := range files {
		if _, err := os.Stat(filepath.Join(src, name)); err != nil {
			t.Skipf("needs Go's sources: %v", err)
		}
	}
	out, err := exec.Command("go", "list", "-f", "{{.ImportPath}}\n{{.Dir}}", ".").Output()
	if err != nil {
		t.Skipf("needs the sources of this package: go list: %v", err)
	}
	path, dir, _ = strings.Cut(strings.TrimSpace(string(out)), "\n")
	return src, path, dir
}

// handOn returns declarations that hand on what the package in src, which is
// imported under the given name, exports, but for the names in except.
func handOn(t *testing.T, src, name string, except []string) []byte {
	t.Helper()
	pkg, err := build.ImportDir(src, 0)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	declare := func(kind, eq string, idents ...*ast.Ident) {
		for _, id := range idents {
			if id.IsExported() && !slices.Contains(except, id.Name) {
				fmt.Fprintf(&b, "%s %s %s %s.%s\n", kind, id.Name, eq, name, id.Name)
			}
		}
	}
	for _, file := range pkg.GoFiles {
		f, err := parser.ParseFile(token.NewFileSet(), filepath.Join(src, file), nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, decl := range f.Decls {
			switch decl := decl.(type) {
			case *ast.FuncDecl:
				if decl.Recv == nil {
					declare("var", "=", decl.Name)
				}
			case *ast.GenDecl:
				for _, spec := range decl.Specs {
					switch spec := spec.(type) {
					case *ast.TypeSpec:
						declare("type", "=", spec.Name)
					case *ast.ValueSpec:
						declare(decl.Tok.String(), "=", spec.Names...)
					}
				}
			}
		}
	}
	return b.Bytes()
}

// compileOverlay compiles the tests of a package, for which the files, named by
// their paths in dir, are laid over the module, and returns the path of the test
// binary.
func compileOverlay(t *testing.T, tags, dir string, files map[string][]byte, pkg string) string {
	t.Helper()
	tmp := t.TempDir()
	overlay := map[string]map[string]string{"Replace": {}}
	for name, text := range files {
		file := filepath.Join(tmp, strings.ReplaceAll(name, "/", "_"))
		if err := os.WriteFile(file, text, 0o666); err != nil {
			t.Fatal(err)
		}
		overlay["Replace"][filepath.Join(dir, filepath.FromSlash(name))] = file
	}
	list := filepath.Join(tmp, "overlay.json")
	text, err := json.Marshal(overlay)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(list, text, 0o666); err != nil {
		t.Fatal(err)
	}
	binary := filepath.Join(tmp, "goroot.test")
	// Vet wants to run in the package's folder, which is not there.
	args := []string{"test", "-c", "-vet=off", "-overlay", list, "-tags", tags, "-o", binary}
	if suite.Race {
		args = append(args, "-race")
	}
	cmd := exec.Command("go", append(args, pkg)...)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("compiling Go's tests against detent: %v\n%s", err, out)
	}
	return binary
}
