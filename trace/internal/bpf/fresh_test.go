package bpf

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// made is what the committed objects were made of and with; go generate writes it.
const made = "made.txt"

// TestFresh: the committed objects are those of the sources. Without clang the
// sources' sums tell; with the clang that made the objects they are made again and
// compared.
func TestFresh(t *testing.T) {
	b, err := os.ReadFile(made)
	if err != nil {
		t.Fatal(err)
	}
	var clang string
	sums := make(map[string]string)
	for line := range strings.Lines(string(b)) {
		line = strings.TrimSpace(line)
		if rest, ok := strings.CutPrefix(line, "clang: "); ok {
			clang = rest
		} else if sum, name, ok := strings.Cut(line, "  "); ok {
			sums[name] = sum
		}
	}
	files, err := filepath.Glob("src/*")
	if err != nil || len(files) == 0 || clang == "" {
		t.Fatalf("%d sources, clang %q: %v", len(files), clang, err)
	}
	for _, name := range files {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		sum := sha256.Sum256(b)
		if sums[filepath.ToSlash(name)] != hex.EncodeToString(sum[:]) {
			t.Errorf("%s is not what the objects were made of: run go generate ./trace/...", name)
		}
	}
	if len(sums) != len(files) {
		t.Errorf("the objects were made of %d sources, there are %d", len(sums), len(files))
	}
	t.Run("objects", func(t *testing.T) { compareObjects(t, clang) })
}

func compareObjects(t *testing.T, clang string) {
	out, err := exec.Command("clang", "--version").Output()
	if err != nil {
		t.Skip("no clang here:", err)
	}
	if here := firstLine(out); here != clang {
		t.Skipf("the objects were made with %q, here is %q", clang, here)
	}
	if _, err := exec.LookPath("llvm-strip"); err != nil {
		t.Skip(err)
	}
	gen, err := os.ReadFile("gen.go")
	if err != nil {
		t.Fatal(err)
	}
	_, command, ok := strings.Cut(string(gen), "//go:generate go tool bpf2go ")
	if !ok {
		t.Fatal("gen.go does not run bpf2go")
	}
	command, _, _ = strings.Cut(command, "\n")
	dir := t.TempDir()
	// The command of gen.go, as a shell has it, with its output elsewhere.
	cmd := exec.Command("sh", "-c", "exec go tool bpf2go -output-dir \"$0\" "+command, dir)
	cmd.Env = append(os.Environ(), "GOPACKAGE=bpf")
	if out, err := cmd.CombinedOutput(); err != nil {
		if strings.Contains(string(out), "file not found") {
			t.Skipf("libbpf's headers are missing:\n%s", out)
		}
		t.Fatalf("%v\n%s", err, out)
	}
	for _, name := range []string{"trace_x86_bpfel.o", "trace_arm64_bpfel.o", "trace_x86_bpfel.go", "trace_arm64_bpfel.go"} {
		got, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		want, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if string(got) != string(want) {
			t.Errorf("%s is not what the sources make now: run go generate ./trace/...", name)
		}
	}
}

func firstLine(b []byte) string {
	line, _, _ := strings.Cut(string(b), "\n")
	return strings.TrimSpace(line)
}
