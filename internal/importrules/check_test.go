package importrules

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// A tree is what the rules are about in one repository.
type tree struct {
	packages map[string]*pkg // by directory
	gomod    string          // the root module's go.mod
}

type pkg struct {
	library bool // of the root module
	imports []use
	low     []use
	wide    []use
}

// A use is one thing that a file does: an import, or something low-level.
type use struct {
	at   string // file:line
	what string
	test bool // in a _test.go file
}

func (t *tree) dirs() []string { return slices.Sorted(maps.Keys(t.packages)) }

// load reads the packages below fsys as the go command would see them with
// every build constraint satisfied.
func load(fsys fs.FS) (*tree, error) {
	gomod, err := fs.ReadFile(fsys, "go.mod")
	if err != nil {
		return nil, err
	}
	t := &tree{packages: map[string]*pkg{}, gomod: string(gomod)}
	modules := map[string]bool{} // directories with a go.mod, but for the root
	err = fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			base := d.Name()
			if name != "." && (base[0] == '.' || base[0] == '_' || base == "testdata" || base == "vendor") {
				return fs.SkipDir
			}
			if _, err := fs.Stat(fsys, path.Join(name, "go.mod")); err == nil && name != "." {
				modules[name] = true
			}
			return nil
		}
		dir := path.Dir(name)
		p := t.packages[dir]
		if p == nil {
			p = &pkg{library: !below(dir, modules)}
		}
		switch path.Ext(name) {
		case ".go":
			src, err := fs.ReadFile(fsys, name)
			if err != nil {
				return err
			}
			if err := p.read(name, src); err != nil {
				return err
			}
		case ".s", ".S", ".sx", ".c", ".cc", ".cpp", ".cxx", ".m", ".h", ".hh", ".syso":
			p.low = append(p.low, use{at: name, what: "a source file that is not Go"})
		default:
			return nil
		}
		t.packages[dir] = p
		return nil
	})
	return t, err
}

func below(dir string, modules map[string]bool) bool {
	for ; dir != "."; dir = path.Dir(dir) {
		if modules[dir] {
			return true
		}
	}
	return false
}

// raw matches the functions of syscall, x/sys/unix and x/sys/windows through
// which a program reaches the kernel or a DLL by number or by name.
var raw = regexp.MustCompile(`^(Raw)?(Vfork)?Syscall|^(New|Must|)(Lazy|Load)(System)?(DLL|Library)`)

func (p *pkg) read(name string, src []byte) error {
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, name, src, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	test := strings.HasSuffix(name, "_test.go")
	at := func(pos token.Pos) string {
		return fmt.Sprintf("%s:%d", name, fset.Position(pos).Line)
	}
	addLow := func(pos token.Pos, what string) { p.low = append(p.low, use{at(pos), what, test}) }

	gates := map[string]bool{} // names under which the file imports a package with raw calls
	atomics := ""              // the name under which it imports sync/atomic
	for _, spec := range file.Imports {
		imported, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return fmt.Errorf("%s: %w", at(spec.Pos()), err)
		}
		p.imports = append(p.imports, use{at(spec.Pos()), imported, test})
		switch imported {
		case "unsafe":
			addLow(spec.Pos(), "unsafe")
		case "sync/atomic":
			atomics = "atomic"
			if spec.Name != nil {
				atomics = spec.Name.Name
			}
		case "syscall", "golang.org/x/sys/unix", "golang.org/x/sys/windows":
			local := path.Base(imported)
			if spec.Name != nil {
				local = spec.Name.Name
			}
			if local == "." {
				addLow(spec.Pos(), "a dot import of "+imported+", which hides raw system calls")
			}
			gates[local] = true
		}
	}
	for _, group := range file.Comments {
		for _, c := range group.List {
			if strings.HasPrefix(c.Text, "//go:linkname") {
				addLow(c.Pos(), "go:linkname")
			}
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		if sel, ok := n.(*ast.SelectorExpr); ok {
			if x, ok := sel.X.(*ast.Ident); ok && gates[x.Name] && raw.MatchString(sel.Sel.Name) {
				addLow(sel.Pos(), "the raw system call "+x.Name+"."+sel.Sel.Name)
			} else if ok && x.Name == atomics && wide.MatchString(sel.Sel.Name) {
				p.wide = append(p.wide, use{at(sel.Pos()), x.Name + "." + sel.Sel.Name, test})
			}
		}
		return true
	})
	return nil
}

// wide matches the functions of sync/atomic on variables of 64 bits, which panic
// on a 32-bit system where the variable is not aligned, as a field may be.
var wide = regexp.MustCompile(`^(Load|Store|Add|And|Or|Swap|CompareAndSwap)(Int|Uint)64$`)

// check returns what breaks the rules, a line each.
func (t *tree) check(rules map[string]rule, bans []ban, required []string) []string {
	var faults []string
	fault := func(format string, args ...any) { faults = append(faults, fmt.Sprintf(format, args...)) }

	for _, dir := range t.dirs() {
		p := t.packages[dir]
		r, ok := find(rules, dir)
		if !ok {
			fault("%s: a package without a rule. Give it an entry in the table of internal/importrules/rules_test.go"+
				" that lists what it may import of ours, and name it in docs/architecture.md", dir)
		}
		for _, u := range p.imports {
			imported, ours := own(u.what)
			switch {
			case ours && !ok, imported == dir:
			case ours:
				if !matchAny(r.imports, imported) && !(u.test && matchAny(r.tests, imported)) {
					fault("%s: %s may not import %s (docs/architecture.md says what may import what, and why)", u.at, dir, imported)
				}
			case !p.library || standard(u.what) && u.what != "C":
			case u.what == "C":
				fault("%s: cgo; the library does without", u.at)
			default:
				if !slices.ContainsFunc(required, func(m string) bool { return u.what == m || strings.HasPrefix(u.what, m+"/") }) {
					fault("%s: the library imports %s; it needs nothing beyond %s", u.at, u.what, strings.Join(required, ", "))
				}
			}
		}
		for _, u := range p.wide {
			fault("%s: %s; atomic.Int64 and atomic.Uint64 are aligned on 32-bit systems, too", u.at, u.what)
		}
		if !r.low {
			for _, u := range p.low {
				fault("%s: %s; that belongs into %s", u.at, u.what, lowPackages(rules))
			}
		}
	}
	for _, b := range bans {
		for _, from := range t.dirs() {
			if match(b.from, from) && !match(b.to, from) {
				if chain := t.chain(from, b.to); chain != nil {
					fault("%s: %s", strings.Join(chain, " -> "), b.why)
				}
			}
		}
	}
	return append(faults, checkModule(t.gomod, required)...)
}

// chain returns the shortest way by imports from a package to one that matches
// to, nil if there is none. Test files count for the package itself only:
// nothing inherits them.
func (t *tree) chain(from, to string) []string {
	before := map[string]string{from: ""}
	for queue := []string{from}; len(queue) > 0; queue = queue[1:] {
		p := t.packages[queue[0]]
		if p == nil {
			continue
		}
		for _, u := range p.imports {
			next, ours := own(u.what)
			if _, seen := before[next]; seen || !ours || u.test && queue[0] != from {
				continue
			}
			before[next] = queue[0]
			if match(to, next) {
				var chain []string
				for ; next != ""; next = before[next] {
					chain = append(chain, next)
				}
				slices.Reverse(chain)
				return chain
			}
			queue = append(queue, next)
		}
	}
	return nil
}

// checkModule looks at the library's go.mod. It reads the few lines that matter
// itself: the library has no use for a parser of go.mod files otherwise.
func checkModule(gomod string, required []string) []string {
	var faults []string
	block := ""
	for line := range strings.Lines(gomod) {
		line, _, _ = strings.Cut(line, "//")
		f := strings.Fields(line)
		switch {
		case len(f) == 0:
			continue
		case block == "" && len(f) == 2 && f[1] == "(":
			block = f[0]
			continue
		case block != "" && f[0] == ")":
			block = ""
			continue
		case block != "":
			f = append([]string{block}, f...)
		}
		switch {
		case f[0] == "module" && f[1] != root:
			faults = append(faults, "go.mod: the module is "+f[1]+", the rules are for "+root)
		case f[0] == "require" && !slices.Contains(required, f[1]):
			faults = append(faults, "go.mod: requires "+f[1]+"; the library needs nothing beyond "+strings.Join(required, ", "))
		case f[0] == "replace" || f[0] == "tool":
			faults = append(faults, "go.mod: a "+f[0]+" line; tools belong into tools/go.mod, and a library's replace is ignored by its users")
		}
	}
	return faults
}

// find returns the rule for a directory: its own, or the nearest /... above.
func find(rules map[string]rule, dir string) (rule, bool) {
	if r, ok := rules[dir]; ok {
		return r, true
	}
	for ; dir != "."; dir = path.Dir(dir) {
		if r, ok := rules[dir+"/..."]; ok {
			return r, true
		}
	}
	return rule{}, false
}

func lowPackages(rules map[string]rule) string {
	var names []string
	for name, r := range rules {
		if r.low {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}

// own returns the directory of a package of ours.
func own(imported string) (dir string, ours bool) {
	if imported == root {
		return ".", true
	}
	return strings.CutPrefix(imported, root+"/")
}

// standard reports whether an import path is of the standard library, whose
// first element never has a dot.
func standard(imported string) bool {
	first, _, _ := strings.Cut(imported, "/")
	return !strings.Contains(first, ".")
}

func match(pattern, dir string) bool {
	if pattern == "..." {
		return true
	}
	if prefix, all := strings.CutSuffix(pattern, "/..."); all {
		return dir == prefix || strings.HasPrefix(dir, prefix+"/")
	}
	return dir == pattern
}

func matchAny(patterns []string, dir string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool { return match(p, dir) })
}
