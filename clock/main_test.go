package clock

import (
	"flag"
	"fmt"
	"os"
	"testing"
)

// In qemu's user mode /sys is the host's. There, give the name of a file that
// contains "arch_sys_counter".
var clocksource = flag.String("clocksource", clocksourceFile, "file to read the kernel's clocksource from")

func TestMain(m *testing.M) {
	if guardian() {
		return
	}
	// Importing the package has done nothing.
	cpus.mu.Lock()
	idle := !cpus.running && !cpus.done
	cpus.mu.Unlock()
	if !idle || wallClock.state.Load() != fresh || wallClock.engine.lines != 0 {
		fmt.Fprintln(os.Stderr, "the package has begun to work before anybody has used it")
		os.Exit(1)
	}
	flag.Parse()
	clocksourceFile = *clocksource
	os.Exit(m.Run())
}
