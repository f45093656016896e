package probe

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"
)

// A machine is a tree of testdata/machines: what a real kind of machine shows.
//
// A file there begins with what the machine is, in words. Lines "finds: ID severity"
// pin all findings, lines "lacks: check status" all checks of files that could not see
// everything. Then come the machine's files:
//
//	-- proc/cmdline --              a file, with the text that follows
//	-- proc/cpuinfo (4 times) --    the text four times, with {n} replaced by 0 ... 3
//	-- sys/.../cpu{0-7}/x --        eight files with the same text
//	-- proc/self/ns/time -> x --    a symbolic link
//	-- dev/kmsg (denied) --         a file that may not be read
//	-- proc/config.gz (gzip) --     a file with the text that follows, packed
type machine struct {
	name         string
	finds, lacks []string
	root         machineFS
}

// machineFS is a tree with files that may not be read.
type machineFS struct {
	fstest.MapFS
	denied map[string]bool
}

func (m machineFS) Open(name string) (fs.File, error) {
	if m.denied[name] {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrPermission}
	}
	return m.MapFS.Open(name)
}

func (m machineFS) ReadFile(name string) ([]byte, error) {
	if m.denied[name] {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrPermission}
	}
	return m.MapFS.ReadFile(name)
}

// without is the tree less one file.
func (m machineFS) without(name string) machineFS {
	less := machineFS{fstest.MapFS{}, m.denied}
	for n, f := range m.MapFS {
		if n != name {
			less.MapFS[n] = f
		}
	}
	return less
}

// with is the tree with another text in one file.
func (m machineFS) with(name, text string) machineFS {
	other := m.without(name)
	other.MapFS[name] = &fstest.MapFile{Data: []byte(text)}
	return other
}

func machines(t testing.TB) []machine {
	files, err := filepath.Glob("testdata/machines/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatal("no machines: ", err)
	}
	var all []machine
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		m, err := parseMachine(string(text))
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		m.name = strings.TrimSuffix(filepath.Base(file), ".txt")
		all = append(all, m)
	}
	return all
}

func parseMachine(text string) (machine, error) {
	m := machine{root: machineFS{fstest.MapFS{}, map[string]bool{}}}
	var header string
	var body strings.Builder
	done := func() error {
		if header == "" {
			return nil
		}
		return m.add(header, body.String())
	}
	for line := range strings.Lines(text) {
		if name, ok := strings.CutPrefix(line, "-- "); ok && strings.HasSuffix(line, " --\n") {
			if err := done(); err != nil {
				return m, err
			}
			header = strings.TrimSuffix(name, " --\n")
			body.Reset()
			continue
		}
		if header != "" {
			body.WriteString(line)
			continue
		}
		if f, ok := strings.CutPrefix(line, "finds: "); ok {
			m.finds = append(m.finds, strings.TrimSpace(f))
		} else if f, ok := strings.CutPrefix(line, "lacks: "); ok {
			m.lacks = append(m.lacks, strings.TrimSpace(f))
		}
	}
	return m, done()
}

func (m *machine) add(header, text string) error {
	if name, target, ok := strings.Cut(header, " -> "); ok {
		m.root.MapFS[name] = &fstest.MapFile{Data: []byte(target), Mode: fs.ModeSymlink}
		return nil
	}
	name, note, _ := strings.Cut(header, " (")
	note = strings.TrimSuffix(note, ")")
	if times, ok := strings.CutSuffix(note, " times"); ok {
		n, err := strconv.Atoi(times)
		if err != nil {
			return fmt.Errorf("%s: %w", header, err)
		}
		var all strings.Builder
		for i := range n {
			all.WriteString(strings.ReplaceAll(text, "{n}", strconv.Itoa(i)))
		}
		text = all.String()
	} else if note == "gzip" {
		var packed bytes.Buffer
		w := gzip.NewWriter(&packed)
		if _, err := w.Write([]byte(text)); err != nil {
			return err
		}
		if err := w.Close(); err != nil {
			return err
		}
		text = packed.String()
	} else if note == "denied" {
		m.root.denied[name] = true
	} else if note != "" {
		return fmt.Errorf("%s: what does %q mean?", header, note)
	}
	names := []string{name}
	if before, rest, ok := strings.Cut(name, "{"); ok {
		list, after, _ := strings.Cut(rest, "}")
		low, high, _ := strings.Cut(list, "-")
		a, err1 := strconv.Atoi(low)
		b, err2 := strconv.Atoi(high)
		if err := errors.Join(err1, err2); err != nil {
			return fmt.Errorf("%s: %w", header, err)
		}
		names = nil
		for ; a <= b; a++ {
			names = append(names, before+strconv.Itoa(a)+after)
		}
	}
	for _, n := range names {
		if !fs.ValidPath(n) || m.root.MapFS[n] != nil {
			return fmt.Errorf("%s: twice, or not a path", n)
		}
		m.root.MapFS[n] = &fstest.MapFile{Data: []byte(text)}
	}
	return nil
}

// examine runs all checks over a tree.
func examine(t testing.TB, root fs.FS) *Report {
	t.Helper()
	report, err := Run(context.Background(), Options{Effort: Quick, Root: root})
	if err != nil {
		t.Fatal(err)
	}
	return report
}

func findingsOf(r *Report) []string {
	var found []string
	for _, f := range r.Findings() {
		found = append(found, f.ID+" "+f.Severity.String())
	}
	slices.Sort(found)
	return found
}

// Each kind of machine has these findings, and no other: the healthy ones none
// above info.
func TestMachines(t *testing.T) {
	for _, m := range machines(t) {
		t.Run(m.name, func(t *testing.T) {
			report := examine(t, m.root)
			slices.Sort(m.finds)
			if got := findingsOf(report); !slices.Equal(got, m.finds) {
				t.Errorf("finds %q\nwant  %q", got, m.finds)
			}
			var lacks []string
			for _, r := range report.Results {
				switch {
				case strings.Contains(fmt.Sprint(r.Err), "on the machine itself only"):
				case r.Status() != Measured:
					lacks = append(lacks, r.Check+" "+string(r.Status()))
					t.Logf("%s: %v", r.Check, r.Err)
				}
			}
			slices.Sort(lacks)
			slices.Sort(m.lacks)
			if !slices.Equal(lacks, m.lacks) {
				t.Errorf("lacks %q\nwant  %q", lacks, m.lacks)
			}
			for _, f := range report.Findings() {
				t.Logf("%s %s: %s\n%s\nevidence %v\nremedy %q", f.Severity, f.ID, f.Title, f.Detail, f.Evidence, f.Remedy)
				complete(t, f)
			}
			t.Logf("%+v", report.Machine)
		})
	}
}

// complete checks what every finding has to have.
func complete(t *testing.T, f Finding) {
	t.Helper()
	if f.Title == "" || strings.HasSuffix(f.Title, ".") || strings.Contains(f.Title, "\n") || strings.Contains(f.Title, "%!") {
		t.Errorf("%s: title %q", f.ID, f.Title)
	}
	if len(f.Evidence) == 0 {
		t.Errorf("%s: no evidence", f.ID)
	}
	for _, e := range f.Evidence {
		if e.Name == "" || e.Value == "" || e.Source == "" {
			t.Errorf("%s: evidence %+v", f.ID, e)
		}
	}
	if f.Severity > Info && len(f.Remedy) == 0 && f.Because == "" {
		t.Errorf("%s: no remedy", f.ID)
	}
	for _, r := range f.Remedy {
		if r == "" || strings.Contains(r, "%!") {
			t.Errorf("%s: remedy %q", f.ID, r)
		}
	}
}

// files names them; one of those of which each CPU has its own stands for all.
func (m machine) files() []string {
	var names []string
	seen := map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(m.root.MapFS)) {
		kind := strings.Map(func(r rune) rune {
			if r >= '0' && r <= '9' {
				return -1
			}
			return r
		}, name)
		if !strings.HasPrefix(name, "sys/devices/system/cpu/") || !seen[kind] {
			names = append(names, name)
		}
		seen[kind] = true
	}
	return names
}

// What cannot be read makes no finding: whichever file of a healthy machine is
// missing, nothing is the matter with it.
func TestMachinesWithoutAFile(t *testing.T) {
	for _, m := range machines(t) {
		if slices.ContainsFunc(m.finds, func(f string) bool { return !strings.HasSuffix(f, " info") }) {
			continue
		}
		for _, name := range m.files() {
			if r := examine(t, m.root.without(name)); r.Worst() > Info {
				t.Errorf("%s without %s: %q", m.name, name, findingsOf(r))
			}
		}
	}
}

// A file full of nonsense is an error of the checks that read it, or makes no
// difference, but is no panic.
func TestMachinesWithNonsense(t *testing.T) {
	for _, m := range machines(t) {
		for _, name := range m.files() {
			if m.root.MapFS[name].Mode.IsRegular() {
				for _, text := range []string{"", "-1\n", "nonsense: (x) -- 99999999999999999999\n"} {
					for _, f := range examine(t, m.root.with(name, text)).Findings() {
						complete(t, f)
					}
				}
			}
		}
	}
}
