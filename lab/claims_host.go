package lab

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"runtime"
	"strings"
)

// decideK11 looks for the file, and asks the Go command for its tests by that name.
func decideK11(*Report) (Verdict, string) {
	if runtime.GOOS != "linux" {
		return NotTestable, "needs Linux"
	}
	_, err := os.Stat("/proc/sys/kernel/tsc")
	file := "there is"
	if errors.Is(err, fs.ErrNotExist) {
		file = "there is no"
	}
	test := "the go command is not here to ask for the test"
	if out, e := exec.Command("go", "list", "-f", "{{.Dir}}", "time").Output(); e == nil {
		test = "package time has no such test"
		dir := strings.TrimSpace(string(out))
		names, _ := fs.Glob(os.DirFS(dir), "*_test.go")
		for _, name := range names {
			if b, e := os.ReadFile(dir + "/" + name); e == nil && strings.Contains(string(b), "TestTimeNowStability") {
				test = "package time has the test"
			}
		}
	}
	return verdict(err == nil && strings.HasPrefix(test, "package time has the")), fmt.Sprintf("%s /proc/sys/kernel/tsc, and %s", file, test)
}
