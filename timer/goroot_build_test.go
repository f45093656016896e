package timer_test

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// Go's own tests of timers are compiled against a package that looks like
// package time but has detent's timers in it. Neither that package nor the
// tests are part of the repository: the first is written and the second are
// read from GOROOT at test time, and both exist for the go command only, laid
// over the module with -overlay.

// gorootFiles are Go's tests of timers and tickers.
var gorootFiles = []string{"sleep_test.go", "tick_test.go"}

// ours are the names of package time that detent has instead.
var ours = []string{"Timer", "Ticker", "NewTimer", "AfterFunc", "After", "Sleep", "NewTicker", "Tick"}

// shimHead is the stand-in for package time, but for what is only handed on.
const shimHead = `package time

import (
	"time"

	"%[1]s"
)

type (
	Timer  = timer.Timer
	Ticker = timer.Ticker
)

var (
	NewTimer  = timer.NewTimer
	After     = timer.After
	Sleep     = timer.Sleep
	NewTicker = timer.NewTicker
	Tick      = timer.Tick
)

// AfterFunc lets f be nil, which Go's benchmarks use for timers that never
// fire: detent's panics at the call, and so would say that they are wrong.
func AfterFunc(d time.Duration, f func()) *Timer {
	if f == nil {
		f = func() {}
	}
	return timer.AfterFunc(d, f)
}

// What package time exports to its tests.

// CheckRuntimeTimerPeriodOverflow does with a ticker what the original does
// with the runtime's own timer: due at once, and next after a period that
// overflows.
func CheckRuntimeTimerPeriodOverflow() {
	t := timer.NewTicker(1)
	defer t.Stop()
	<-t.C
	t.Reset(1<<63 - 1)
	<-After(25 * time.Millisecond)
}

// AsynctimerChan is the GODEBUG setting that chooses package time's channels
// of before Go 1.23. Detent's have one way only.
var AsynctimerChan setting

type setting struct{}

func (setting) Value() string { return "0" }
`

const shimInterruptUnix = `
func Interrupt() { syscall.Kill(syscall.Getpid(), syscall.SIGCHLD) }
`

const shimInterruptNone = `
func Interrupt() {}
`

const shimTestenv = `package testenv

import "testing"

func SkipFlaky(t testing.TB, issue int) {
	t.Helper()
	t.Skipf("skipping known flaky test: golang.org/issue/%d", issue)
}
`

// buildGoroot compiles Go's tests against detent with the tags, and returns
// the path of the test binary.
func buildGoroot(t *testing.T, tags string) string {
	t.Helper()
	src, path, dir := gorootSource(t, "time", gorootFiles)
	standIns := path + "/internal/goroot"
	files := map[string][]byte{
		"time/time.go":       shim(t, src, path),
		"testenv/testenv.go": []byte(shimTestenv),
	}
	for _, name := range gorootFiles {
		files["time/"+name] = rewrite(t, filepath.Join(src, name), standIns)
	}
	return compileOverlay(t, tags, filepath.Join(dir, "internal", "goroot"), files, standIns+"/time")
}

// shim writes the stand-in for package time: detent's timers, and everything
// else that the package in src exports.
func shim(t *testing.T, src, timerPath string) []byte {
	t.Helper()
	var b bytes.Buffer
	fmt.Fprintf(&b, shimHead, timerPath)
	b.Write(handOn(t, src, "time", ours))
	switch runtime.GOOS {
	case "windows", "plan9", "js", "wasip1":
		b.WriteString(shimInterruptNone)
	default:
		b.WriteString(shimInterruptUnix)
		return bytes.Replace(b.Bytes(), []byte("import (\n"), []byte("import (\n\t\"syscall\"\n"), 1)
	}
	return b.Bytes()
}

// shorten makes loops of Go's tests shorter that wait for as many wake-ups, one
// after another, as package time has no need of: it also looks for due timers
// when somebody receives.
var shorten = strings.NewReplacer(
	"for range 100000 {\n\t\t\t\tselect {\n\t\t\t\tcase <-timer.C:", // TestMultiWakeupTicker
	"for range 10000 {\n\t\t\t\tselect {\n\t\t\t\tcase <-timer.C:",
)

// rewrite returns Go's test file with its imports led to the stand-ins, and
// without its way into the runtime.
func rewrite(t *testing.T, name, standIns string) []byte {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, name, text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	type edit struct {
		from, to int
		text     string
	}
	var edits []edit
	replace := func(n ast.Node, text string) {
		edits = append(edits, edit{fset.Position(n.Pos()).Offset, fset.Position(n.End()).Offset, text})
	}
	for _, spec := range file.Imports {
		switch path, _ := strconv.Unquote(spec.Path.Value); path {
		case "time":
			replace(spec.Path, strconv.Quote(standIns+"/time"))
		case "internal/testenv":
			replace(spec.Path, strconv.Quote(standIns+"/testenv"))
		}
	}
	for _, group := range file.Comments {
		for _, c := range group.List {
			if !strings.HasPrefix(c.Text, "//go:linkname ") {
				continue
			}
			if !strings.HasPrefix(c.Text, "//go:linkname haveHighResSleep ") {
				t.Fatalf("%s: an unknown way into the runtime: %s", fset.Position(c.Pos()), c.Text)
			}
			replace(c, "// Set below, where the original looks into the runtime.")
		}
	}
	slices.SortFunc(edits, func(a, b edit) int { return b.from - a.from })
	for _, e := range edits {
		text = slices.Concat(text[:e.from], []byte(e.text), text[e.to:])
	}
	text = []byte(shorten.Replace(string(text)))
	if bytes.Contains(text, []byte("\nvar haveHighResSleep bool\n")) {
		// Windows alone has sleeps that are coarser, on some machines.
		text = append(text, "\nfunc init() { haveHighResSleep = runtime.GOOS != \"windows\" }\n"...)
	}
	return text
}
