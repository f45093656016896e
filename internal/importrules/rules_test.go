package importrules

import (
	"io/fs"
	"os"
	"strings"
	"testing"
)

// root is the module path of the library. The modules beside it have their
// directory's path below it, so that for every package of ours the import path
// is root plus the directory.
const root = "github.com/detent-go/detent"

// A rule says what one package may do. Packages are named by their directory,
// seen from the repository's root; "x/..." means x and everything below it.
type rule struct {
	imports []string // packages of ours that it may import
	tests   []string // those that its test files may import besides
	low     bool     // may hold assembly, go:linkname, unsafe, raw system calls
}

// rules has an entry for every package. A key ending in /... serves those below
// it that have none of their own. Entries of packages that do not exist are no
// fault: they bind whoever adds them.
var rules = map[string]rule{
	"internal/importrules": {},

	"internal/slab":   {imports: []string{"internal/rt"}},
	"internal/wheel":  {imports: []string{"internal/slab"}},
	"internal/heap":   {imports: []string{"internal/slab"}},
	"internal/hist":   {},
	"internal/hostfs": {},
	"internal/rt":     {low: true},
	"internal/tsc":    {low: true},
	"internal/vdso":   {low: true},
	"internal/waker":  {imports: []string{"internal/rt", "internal/vdso"}, low: true},
	"internal/shard": {imports: []string{
		"internal/heap", "internal/hist", "internal/hostfs", "internal/rt", "internal/slab", "internal/waker", "internal/wheel",
	}},

	"timer": {
		imports: []string{
			"internal/heap", "internal/hist", "internal/rt", "internal/shard", "internal/slab", "internal/waker", "internal/wheel",
		},
		tests: []string{"internal/suite"},
	},
	"internal/suite": {},
	"clock":          {imports: []string{"internal/rt", "internal/tsc", "internal/vdso"}},
	"probe": {imports: []string{
		"clock", "timer", "internal/hist", "internal/hostfs", "internal/tsc", "internal/vdso",
	}},

	"prom/...":  {imports: []string{"prom/...", "clock", "probe", "timer"}},
	"trace/...": {imports: []string{"trace/..."}},
	// C for the kernel, which its verifier looks at before it runs.
	"trace/internal/bpf/src": {low: true},
	"lab/...": {
		imports: []string{"lab/...", "clock", "probe", "timer"},
		tests:   []string{"internal/suite"},
	},
	"lab/internal/ksleep":     {low: true},
	"lab/internal/cgoclock":   {tests: []string{"clock"}},                          // the one package with cgo, which is what it is there to measure
	"lab/internal/enginetest": {imports: []string{"lab/engine", "internal/suite"}}, // of tests only
	"examples/...":            {imports: []string{"examples/...", "clock", "probe", "prom/...", "timer"}},
	"cmd/...":                 {imports: []string{"cmd/...", "clock", "lab", "probe", "prom/...", "timer", "trace/..."}},
}

// labApart is why nothing but the command that shows them reaches the lab's
// experiments.
const labApart = "the lab's engines are there to be measured, not to be used"

// A ban holds whatever the table allows, over any number of steps: no package
// that matches from reaches one that matches to.
type ban struct{ from, to, why string }

var bans = []ban{
	{"timer", "clock", "a bad TSC must not break a timer"},
	{"timer", "internal/tsc", "a bad TSC must not break a timer"},
	{"timer", "lab/...", labApart},
	{"clock", "lab/...", labApart},
	{"probe", "lab/...", labApart},
	{"prom/...", "lab/...", labApart},
	{"trace/...", "lab/...", labApart},
	{"examples/...", "lab/...", labApart},
}

// required are the modules that the library may require, all of them.
var required = []string{"golang.org/x/sys"}

func repository() fs.FS { return os.DirFS("../..") }

func TestImportRules(t *testing.T) {
	tree, err := load(repository())
	if err != nil {
		t.Fatal(err)
	}
	if len(tree.packages) < 2 {
		t.Fatalf("read %d packages: the test does not see the repository", len(tree.packages))
	}
	for _, fault := range tree.check(rules, bans, required) {
		t.Error(fault)
	}
}

func TestArchitectureNamesEveryPackage(t *testing.T) {
	tree, err := load(repository())
	if err != nil {
		t.Fatal(err)
	}
	text, err := fs.ReadFile(repository(), "docs/architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range tree.dirs() {
		if !strings.Contains(string(text), "`"+dir+"`") {
			t.Errorf("docs/architecture.md does not name `%s`: say there what it is for and what it may import", dir)
		}
	}
}
