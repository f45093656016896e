package lab

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"time"
)

// decideC3 compares what was measured with both clocksources, where the kernel offers
// both. The article's claim is about the interrupts of clock event devices, which no
// program chooses; but a slow clocksource makes each interrupt slow, which reads it.
func decideC3(r *Report) (Verdict, string) {
	x := r.result("clocksources")
	if x == nil {
		return NotRun, `needs the experiment "clocksources"`
	}
	hpet, ok := x.here(lateMean, "hpet", lateCase())
	acpi, ok2 := x.here(lateMean, "acpi_pm", lateCase())
	if !ok || !ok2 {
		const needs = "needs a machine whose kernel offers hpet and acpi_pm (bare metal), and to be allowed to choose: as root, with --switch-clocksource. Here"
		if x.Failed != "" {
			return NotTestable, needs + ": " + x.Failed
		}
		var had []string
		for _, f := range x.Figures {
			if f.What == readingNow && f.Here != nil {
				had = append(had, fmt.Sprintf("%s, with which time.Now takes %s", f.Who, ns(*f.Here)))
			}
		}
		return NotTestable, needs + " there was " + strings.Join(had, "; ")
	}
	because := fmt.Sprintf("a sleep of 100 us is late by %s with hpet, %s with acpi_pm (the article: 2.1 us and 1.3 us)", ns(hpet), ns(acpi))
	switch {
	case hpet >= 1.25*acpi:
		return Confirmed, because
	case acpi >= 1.25*hpet:
		return Refuted, because
	}
	return NotTestable, undecided + because
}

// decideK11 looks for the file, and asks the Go command for its tests by that name.
func decideK11(*Report) (Verdict, string) {
	if runtime.GOOS != "linux" {
		return NotTestable, "needs Linux"
	}
	_, err := os.Stat("/proc/sys/kernel/tsc")
	file := "there is a file"
	if errors.Is(err, fs.ErrNotExist) {
		file = "there is no"
	} else if err != nil {
		return NotTestable, err.Error()
	}
	test, known, found := "the go command is not here to ask for the test", false, false
	if dir, e := timeSources(); e == nil {
		test, known = "package time has no such test", true
		names, _ := fs.Glob(os.DirFS(dir), "*_test.go")
		for _, name := range names {
			if b, e := os.ReadFile(dir + "/" + name); e == nil && strings.Contains(string(b), "TestTimeNowStability") {
				test, found = "package time has the test", true
			}
		}
	}
	because := fmt.Sprintf("%s /proc/sys/kernel/tsc, and %s", file, test)
	if err == nil && !known {
		return NotTestable, because
	}
	return verdict(err == nil && found), because
}

// timeSources is where the Go command has package time, of the toolchain that is here:
// none is downloaded for that.
func timeSources() (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, "go", "list", "-f", "{{.Dir}}", "time")
	cmd.Dir = os.TempDir()
	cmd.Env = append(os.Environ(), "GOTOOLCHAIN=local", "GOWORK=off", "GOFLAGS=")
	out, err := cmd.Output()
	return strings.TrimSpace(string(out)), err
}
