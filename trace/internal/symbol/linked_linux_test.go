package symbol

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/detent-go/detent/trace/internal/proc"
)

const linkedProgram = `package main

// static int one(void) { return 1; }
import "C"

import (
	"fmt"
	"os"
	"runtime"
)

//go:noinline
func here() uintptr {
	pc, _, _, _ := runtime.Caller(0)
	return pc
}

func main() {
	fmt.Println(here(), C.one())
	os.Stdin.Read(make([]byte, 1))
}
`

// TestLinkedWithC: in a program that the C linker has put together, its own code
// comes first. Without symbols only the runtime's account tells where Go's begins.
func TestLinkedWithC(t *testing.T) {
	if _, err := exec.LookPath("gcc"); err != nil {
		t.Skip("no C compiler")
	}
	dir := t.TempDir()
	for name, text := range map[string]string{"main.go": linkedProgram, "go.mod": "module linked\n\ngo 1.26\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, flags := range []string{"-linkmode=external", "-linkmode=external -s -w"} {
		build := exec.Command("go", "build", "-o", "linked", "-ldflags", flags, ".")
		build.Dir = dir
		build.Env = append(os.Environ(), "CGO_ENABLED=1", "GOWORK=off", "GOFLAGS=-buildvcs=false")
		if out, err := build.CombinedOutput(); err != nil {
			t.Skipf("cannot be linked here: %v\n%s", err, out)
		}
		cmd := exec.Command(filepath.Join(dir, "linked"))
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
		var pc uint64
		var one int
		if _, err := fmt.Fscan(stdout, &pc, &one); err != nil {
			t.Fatal(err)
		}
		p, err := proc.Read(os.DirFS("/"), cmd.Process.Pid)
		if err != nil {
			t.Fatal(err)
		}
		p.ReadDetails(os.DirFS("/"))
		if got, _ := NewCache(os.DirFS("/")).Lookup(p, pc); got.Func != "main.here" {
			t.Errorf("%s: %+v, want main.here", flags, got)
		}
		stdin.Close()
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
	}
}
