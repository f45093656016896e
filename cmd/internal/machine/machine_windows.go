package machine

import (
	"cmp"
	"fmt"
	"os"

	"golang.org/x/sys/windows"
)

func kernel() string {
	v := windows.RtlGetVersion()
	return fmt.Sprintf("Windows %d.%d.%d", v.MajorVersion, v.MinorVersion, v.BuildNumber)
}

func platformCPU() string { return cmp.Or(os.Getenv("PROCESSOR_IDENTIFIER"), unknown) }
