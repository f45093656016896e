package lab

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// fakeClocksource is a directory as the kernel's, whose file takes what is written.
func fakeClocksource(t *testing.T) clocksource {
	t.Helper()
	c := clocksource{t.TempDir()}
	c.set(t, "tsc")
	if err := os.WriteFile(c.dir+"/available_clocksource", []byte("tsc hpet acpi_pm \n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return c
}

func (c clocksource) set(t *testing.T, name string) {
	t.Helper()
	if err := os.WriteFile(c.currentFile(), []byte(name), 0o600); err != nil {
		t.Fatal(err)
	}
}

func (c clocksource) want(t *testing.T, name string) {
	t.Helper()
	if got, _, err := c.read(); err != nil || got != name {
		t.Errorf("the clocksource is %q, %v; want %s", got, err, name)
	}
}

// TestGuarded: the clocksource is put back after the work, after an error of it, and
// after a panic.
func TestGuarded(t *testing.T) {
	c := fakeClocksource(t)
	if err := c.guarded(func() error { return c.use("hpet") }); err != nil {
		t.Error(err)
	}
	c.want(t, "tsc")
	broken := errors.New("broken")
	if err := c.guarded(func() error { c.set(t, "hpet"); return broken }); !errors.Is(err, broken) {
		t.Errorf("error %v", err)
	}
	c.want(t, "tsc")
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the panic is swallowed")
			}
		}()
		_ = c.guarded(func() error { c.set(t, "hpet"); panic("broken") })
	}()
	c.want(t, "tsc")
}

// TestGuardian: a process that is killed while it has changed the clocksource leaves
// somebody who puts it back.
func TestGuardian(t *testing.T) {
	const variable = "DETENT_LAB_GUARDED"
	if dir := os.Getenv(variable); dir != "" {
		c := clocksource{dir}
		_ = c.guarded(func() error {
			if err := c.use("hpet"); err != nil {
				return err
			}
			fmt.Println("changed")
			select {}
		})
		return
	}
	c := fakeClocksource(t)
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestGuardian$")
	cmd.Env = append(os.Environ(), variable+"="+c.dir)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var seen bytes.Buffer
	for b := make([]byte, 100); !strings.Contains(seen.String(), "changed"); {
		n, err := out.Read(b)
		seen.Write(b[:n])
		if err != nil {
			t.Fatalf("%v: %s", err, &seen)
		}
	}
	c.want(t, "hpet")
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	for begin := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		if got, _, err := c.read(); err == nil && got == "tsc" {
			return
		}
		if time.Since(begin) > 30*time.Second {
			t.Fatal("nobody put the clocksource back")
		}
	}
}

// TestClocksources: only the clocksource in use is measured unless the others were
// asked for; with them the claim about the article's two is decided, or not by noise.
func TestClocksources(t *testing.T) {
	p := tiny()
	for _, c := range []struct {
		name   string
		change bool
		want   string
	}{{"not asked", false, "tsc"}, {"asked", true, "tsc hpet acpi_pm"}} {
		source := fakeClocksource(t)
		p.Switch = c.change
		r := &Result{Name: "clocksources"}
		if err := source.measure(context.Background(), p, r); err != nil {
			t.Fatal(err)
		}
		source.want(t, "tsc")
		var measured []string
		for _, f := range r.Figures {
			if f.What == readingNow && f.Here != nil {
				measured = append(measured, f.Who)
			}
		}
		if got := strings.Join(measured, " "); got != c.want {
			t.Errorf("%s: measured %q", c.name, got)
		}
		if v, because := decideC3(&Report{Results: []*Result{r}}); !c.change && v != NotTestable || because == "" {
			t.Errorf("%s: C3 is %s: %s", c.name, v, because)
		}
		if !c.change && !strings.Contains(strings.Join(r.Skipped, "\n"), errNotAsked.Error()) {
			t.Errorf("skipped %q", r.Skipped)
		}
	}
}

// TestNoClocksources: a system without them says so.
func TestNoClocksources(t *testing.T) {
	c := clocksource{filepath.Join(t.TempDir(), "none")}
	if err := c.measure(context.Background(), tiny(), &Result{}); err == nil || !strings.Contains(err.Error(), "does not tell") {
		t.Errorf("error %v", err)
	}
	if err := c.guarded(func() error { t.Error("called"); return nil }); err == nil {
		t.Error("guards nothing")
	}
}

// TestRealClocksources changes the machine's clocksource, and puts it back.
func TestRealClocksources(t *testing.T) {
	if os.Getenv("DETENT_SICK") == "" || os.Getuid() != 0 {
		t.Skip("changes the clocksource of the machine: DETENT_SICK=1, as root")
	}
	c := clocksource{clocksourceDir}
	before, available, err := c.read()
	if err != nil || len(available) < 2 {
		t.Skipf("the kernel offers %q, %v", available, err)
	}
	p := tiny()
	p.Switch = true
	r := &Result{Name: "clocksources"}
	if err := c.measure(context.Background(), p, r); err != nil {
		t.Fatal(err)
	}
	c.want(t, before)
	for _, name := range available {
		if _, ok := r.here(readingNow, name, "one thread"); !ok {
			t.Errorf("nothing was measured with %s: skipped %q", name, r.Skipped)
		}
	}
}
