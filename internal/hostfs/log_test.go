package hostfs

import (
	"errors"
	"io/fs"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"
)

func TestParseLog(t *testing.T) {
	const at = 5140900 * time.Microsecond
	want := []LogLine{{At: at, Level: -1, Text: "clocksource: Switched to clocksource tsc"}}
	for form, text := range map[string]string{
		"dmesg":   "[    5.140900] clocksource: Switched to clocksource tsc\n",
		"klogctl": "<6>[    5.140900] clocksource: Switched to clocksource tsc\n",
		"kmsg":    "6,339,5140900,-;clocksource: Switched to clocksource tsc\n SUBSYSTEM=x\n DEVICE=+y\n",
		"syslog":  "Sep 23 21:33:08 host kernel: [    5.140900] clocksource: Switched to clocksource tsc\nSep 23 21:33:09 host sshd[1]: no\n",
		"rfc5424": "2025-09-23T21:33:08.1+02:00 host kernel: [    5.140900] clocksource: Switched to clocksource tsc\n",
	} {
		got := ParseLog(form, text).Lines
		for i := range got {
			if form != "dmesg" && form != "syslog" && form != "rfc5424" {
				if got[i].Level != 6 {
					t.Errorf("%s: level %d", form, got[i].Level)
				}
			}
			got[i].Level = -1
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %+v", form, got)
		}
	}
	if s := want[0].String(); s != "[    5.140900] clocksource: Switched to clocksource tsc" {
		t.Errorf("written as %q", s)
	}
	log := ParseLog("journal", "Sep 23 21:33:08 c4v3 kernel: tsc: Marking TSC unstable due to clocksource watchdog\n")
	if len(log.Lines) != 1 || log.Lines[0].At != -1 || log.Lines[0].String() != "tsc: Marking TSC unstable due to clocksource watchdog" {
		t.Errorf("without a stamp: %+v", log.Lines)
	}
	// What programs write into /dev/kmsg has a facility: anybody may claim anything.
	if log := ParseLog("", "12,5,1,-;systemd[1]: tsc: Marking TSC unstable due to mood\n"); len(log.Lines) != 0 {
		t.Errorf("a program's line: %+v", log.Lines)
	}
}

func TestLogOfThisStart(t *testing.T) {
	const text = "a kernel: [    0.000000] Linux version 5.4\n" +
		"a kernel: [    9.000000] old\n" +
		"a kernel: [    0.000000] Linux version 6.1\n" +
		"a kernel: [    3.000000] new\n"
	log := ParseLog("", text)
	if !log.Whole || len(log.Lines) != 2 || log.Lines[1].Text != "new" {
		t.Errorf("%+v", log)
	}
	if log := ParseLog("", "[ 1.000000] late\n"); log.Whole || len(log.Lines) != 1 {
		t.Errorf("%+v", log)
	}
	log = ParseLog("", "[    0.000000] Booting Linux on physical CPU 0x0000000000 [0x413fd0c1]\n[    0.000000] Linux version 6.8\n[    1.000000] x\n")
	if !log.Whole || len(log.Lines) != 3 {
		t.Errorf("%+v", log)
	}
}

func TestReadLog(t *testing.T) {
	long := strings.Repeat("6,1,1,-;"+strings.Repeat("x", 90)+"\n", 1000)
	log, err := ReadLog(tree("dev/kmsg", long+"6,2,7000000,-;last\n"))
	if err != nil || log.Source != "/dev/kmsg" || len(log.Lines) != 1001 || log.Lines[1000].At != 7*time.Second {
		t.Errorf("%v, %v", err, log)
	}
	log, err = ReadLog(tree("var/log/kern.log", "h kernel: [    1.000000] x\n"))
	if err != nil || log.Source != "/var/log/kern.log" {
		t.Errorf("%+v, %v", log, err)
	}
	// Of a logger's file the end counts, however long it is.
	filler := strings.Repeat("h kernel: [    1.000000] "+strings.Repeat("x", 1000)+"\n", mostLog/1000)
	log, err = ReadLog(tree("var/log/syslog", filler+"h kernel: [    2.000000] the end\n"))
	if err != nil || len(log.Lines) == 0 || log.Lines[len(log.Lines)-1].Text != "the end" {
		t.Errorf("of a long file: %v", err)
	}
	if _, err := ReadLog(tree("var/log/messages", "h sshd[3]: y\n")); !errors.Is(err, fs.ErrNotExist) || Path(err) != "/dev/kmsg" {
		t.Error(err)
	}
	// A device that cannot be told to end would hold the reader for ever.
	device := fstest.MapFS{"dev/kmsg": {Mode: fs.ModeDevice | fs.ModeCharDevice}}
	if _, err := ReadLog(device); !errors.Is(err, errors.ErrUnsupported) {
		t.Error(err)
	}
}

// The device blocks at its end: this returns.
func TestReadLogOfThisMachine(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("no /dev/kmsg")
	}
	log, err := ReadLog(os.DirFS("/"))
	if err != nil {
		t.Skip(err)
	}
	if len(log.Lines) == 0 {
		t.Error("nothing in ", log.Source)
	}
	t.Logf("%d lines from %s, whole: %v", len(log.Lines), log.Source, log.Whole)
}

func FuzzParseLog(f *testing.F) {
	f.Add("0,0,0,0;")
	f.Add("[    0.000000] Linux version\n6,1,2,-;x\n<6>[ 1.000001] y\nz kernel: [ 99999999999999999999.000000] w\n")
	f.Fuzz(func(t *testing.T, text string) {
		for _, l := range ParseLog("", text).Lines {
			if l.Text == "" || strings.Contains(l.Text, "\n") || l.At < -1 || l.Level < -1 || l.Level > 7 {
				t.Errorf("%+v of %q", l, text)
			}
			_ = l.String()
		}
	})
}
