package lab

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"time"
)

const availableClocksources = "/sys/devices/system/clocksource/clocksource0/available_clocksource"

// decideC3 says what this machine lacks. The claim is about the interrupts of clock
// event devices, which no program chooses; what reading the counters costs could be
// compared where the kernel offers both, by a change of the clocksource for everybody
// on the machine, which a measurement does not make.
func decideC3(*Report) (Verdict, string) {
	const needs = "needs a machine that lets one choose hpet and acpi_pm, with the clock event device to match: bare metal, and its boot parameters"
	b, err := os.ReadFile(availableClocksources)
	if err != nil {
		return NotTestable, needs
	}
	offered := strings.Fields(string(b))
	if slices.Contains(offered, "hpet") && slices.Contains(offered, "acpi_pm") {
		return NotTestable, needs + ". This kernel offers both as clocksources: what reading them costs, which is another matter, " +
			"shows with each in current_clocksource (as root) and detent lab run clocks"
	}
	return NotTestable, needs + ". This kernel offers " + strings.Join(offered, ", ")
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
