package probe

import (
	"context"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/detent-go/detent/internal/hostfs"
)

// The check of who keeps the clock right. It has DisciplineData.
var disciplineCheck = Check{
	Name:  "discipline",
	About: "whether somebody keeps the clock right, and how far the kernel slews it for that",
	Run: func(_ context.Context, e *Env) Result {
		if err := e.linux(); err != nil {
			return Result{Err: err}
		}
		if err := e.own(); err != nil {
			return Result{Err: err}
		}
		t, err := adjtimex()
		if err != nil {
			return Result{Err: unseen("adjtimex", err, "")}
		}
		d := t.data()
		processes, err := hostfs.Processes(e.Root)
		if _, others := processes[1]; err == nil && !others {
			err = fs.ErrPermission // hidepid, or there is no /proc
		}
		if err != nil {
			err = unseen("processes of others", err, "root can, where /proc is mounted with hidepid")
		}
		d.unseen = err != nil
		for _, name := range processes {
			if daemon := timeDaemon(name); daemon != "" && !slices.Contains(d.Daemons, daemon) {
				d.Daemons = append(d.Daemons, daemon)
			}
		}
		slices.Sort(d.Daemons)
		d.platform = e.platformData()
		config, configErr := hostfs.ReadConfig(e.Root)
		d.kvmClock = configErr != nil || config.Value("PTP_1588_CLOCK_KVM") != ""
		clocks, _ := hostfs.ReadPTPClocks(e.Root)
		for _, c := range clocks {
			if ofHost(c.Name) {
				d.HostClock = "/dev/" + c.Device
			}
		}
		return Result{Err: err, Data: d, Findings: judgeDiscipline(d)}
	},
}

// timeDaemon returns the program that sets or slews the clock behind a process of
// this name, of which the kernel keeps 15 bytes; "" if it is none.
func timeDaemon(process string) string {
	switch process {
	case "chronyd":
		return "chrony"
	case "systemd-timesyn":
		return "systemd-timesyncd"
	case "ntp-daemon":
		return "ntpd-rs"
	case "ntpd", "phc2sys", "timemaster", "sntpd", "VBoxService", "vmtoolsd", "prltoolsd":
		return process
	}
	return ""
}

// ntpClients are those of which only one can rule.
var ntpClients = []string{"chrony", "ntpd", "ntpd-rs", "systemd-timesyncd"}

// DisciplineData is the data of the check "discipline", from adjtimex(2).
type DisciplineData struct {
	Synchronized bool          `json:"synchronized"`  // somebody tells the kernel so
	Offset       time.Duration `json:"offset_ns"`     // that the kernel is still to slew
	Frequency    float64       `json:"frequency_ppm"` // by which CLOCK_MONOTONIC runs faster than CLOCK_MONOTONIC_RAW
	MaxError     time.Duration `json:"max_error_ns"`  // that the daemon admits
	EstError     time.Duration `json:"estimated_error_ns"`
	Status       []string      `json:"status"` // PLL, UNSYNC, NANO ...
	Leap         string        `json:"leap,omitempty"`
	TAI          int           `json:"tai_offset_s"`
	// Daemons are the programs running that keep clocks right, as far as this
	// process can see processes.
	Daemons   []string `json:"daemons"`
	HostClock string   `json:"host_clock,omitempty"` // a device with the hypervisor's time

	platform *PlatformData
	unseen   bool // the processes of others
	kvmClock bool // the kernel may have the driver of KVM's PTP clock
}

// A timex is what adjtimex returns, in its own units.
type timex struct {
	state, status, tai                     int
	offset, freq, maxError, estError, tick int64
}

// The bits of the status, and the states, of adjtimex(2).
var statusBits = []struct {
	bit  int
	name string
}{
	{0x1, "PLL"}, {0x2, "PPSFREQ"}, {0x4, "PPSTIME"}, {0x8, "FLL"}, {0x10, "INS"}, {0x20, "DEL"}, {statusUnsync, "UNSYNC"}, {0x80, "FREQHOLD"},
	{0x100, "PPSSIGNAL"}, {0x200, "PPSJITTER"}, {0x400, "PPSWANDER"}, {0x800, "PPSERROR"}, {0x1000, "CLOCKERR"}, {statusNano, "NANO"},
	{0x4000, "MODE"}, {0x8000, "CLK"},
}

const (
	statusUnsync = 0x40
	statusNano   = 0x2000
)

// leapState is the state that adjtimex returns: 0 and 5 (not synchronized) are none.
func leapState(state int) string {
	switch state {
	case 1:
		return "a second will be inserted today"
	case 2:
		return "a second will be left out today"
	case 3:
		return "a second is being inserted"
	case 4:
		return "a second has been inserted or left out"
	}
	return ""
}

// data puts it into units of this package.
func (t timex) data() *DisciplineData {
	const (
		scaledPPM    = 1 << 16
		usualTick    = 10_000 // microseconds, whatever HZ is
		ppmOfATickUs = 100
	)
	d := &DisciplineData{
		Synchronized: t.status&statusUnsync == 0,
		Offset:       time.Duration(t.offset) * time.Microsecond,
		Frequency:    float64(t.freq)/scaledPPM + float64(t.tick-usualTick)*ppmOfATickUs,
		MaxError:     time.Duration(t.maxError) * time.Microsecond,
		EstError:     time.Duration(t.estError) * time.Microsecond,
		Leap:         leapState(t.state), TAI: t.tai,
	}
	if t.status&statusNano != 0 {
		d.Offset = time.Duration(t.offset)
	}
	for _, s := range statusBits {
		if t.status&s.bit != 0 {
			d.Status = append(d.Status, s.name)
		}
	}
	return d
}

const (
	// muchSlew is more than an oscillator of a computer is off by: up to 100 ppm.
	muchSlew = 200
	// hardSlew is more than the kernel's own loop can do: a daemon turns the clock
	// to make up for seconds, or the clocksource's frequency is wrong.
	hardSlew = 500
)

func judgeDiscipline(d *DisciplineData) []Finding {
	var found []Finding
	evidence := []Evidence{
		{"status", strings.Join(d.Status, " "), "adjtimex(2)"},
		{"frequency", fmt.Sprintf("%+.3f ppm", d.Frequency), "adjtimex(2)"},
		{"offset, greatest error", fmt.Sprintf("%v, %v", d.Offset, d.MaxError), "adjtimex(2)"},
		{"programs seen", orNone(strings.Join(d.Daemons, " ")), "/proc/*/comm"},
	}
	if d.unseen {
		evidence[len(evidence)-1].Value = "those of others cannot be seen"
	}
	if !d.Synchronized {
		f := Finding{
			ID: "discipline.unsynchronized", Severity: Notice, Confidence: Certain,
			Title:    "nobody keeps the wall clock right: it may drift by seconds a day",
			Detail:   "Timers and durations are not concerned, but for the rate of the machine's oscillator.",
			Evidence: evidence,
			Remedy:   []string{"install chrony and start it: systemctl enable --now chronyd (Debian: chrony)"},
		}
		switch {
		case len(d.Daemons) > 0:
			f.Severity, f.Confidence = Info, Possible
			f.Title = fmt.Sprintf("the kernel does not know the wall clock to be right, although %s runs", strings.Join(d.Daemons, ", "))
			f.Detail = "It has found no server yet, or does not tell the kernel (chrony without rtcsync)."
			f.Remedy = []string{"ask it: chronyc tracking; timedatectl timesync-status; ntpq -p"}
		case d.unseen:
			f.Confidence = Likely
			f.Title = "the kernel does not know the wall clock to be right"
			f.Detail = "Who keeps it, if anybody does, cannot be seen from here. " + f.Detail
			f.Remedy = append([]string{"look as root who does: chronyc tracking; timedatectl; ntpq -p"}, f.Remedy...)
		case d.platform.Container == Yes:
			f.Confidence = Likely
			f.Title = "the kernel does not know the wall clock to be right"
			f.Remedy = []string{"on the host: chronyc tracking, or timedatectl; a container cannot keep the clock"}
		case d.platform.WSL:
			f.Severity, f.Confidence = Info, Likely
			f.Title = "nobody in WSL2 keeps the wall clock right; Windows sets it from time to time"
			f.Remedy = []string{"after the computer has slept, if the time is wrong: hwclock -s"}
		case d.HostClock != "":
			f.Remedy = append(f.Remedy, fmt.Sprintf("the host shows its time as %s: add to chrony.conf: refclock PHC %s poll 2", d.HostClock, d.HostClock))
		case d.platform.Hypervisor == "kvm" && d.kvmClock:
			f.Remedy = append(f.Remedy, "KVM can show its host's time: modprobe ptp_kvm, then in chrony.conf: refclock PHC /dev/ptp0 poll 2")
		}
		found = append(found, f)
	}
	if rate := max(d.Frequency, -d.Frequency); rate >= muchSlew {
		f := Finding{
			ID: "discipline.slewed", Severity: Notice, Confidence: Certain,
			Title:    fmt.Sprintf("CLOCK_MONOTONIC, which timers go by, is made to run %+.0f ppm off the machine's oscillator: %s an hour", d.Frequency, short(time.Duration(d.Frequency*float64(time.Hour)/1e6).Round(time.Millisecond))),
			Detail:   "More than an oscillator is usually off by. Either a program makes up for a wrong wall clock at the moment, or the clocksource's frequency was measured wrongly at the machine's start. CLOCK_MONOTONIC_RAW is not slewed.",
			Evidence: evidence,
			Remedy:   []string{"look whether it goes back: adjtimex --print, or chronyc tracking (System time, Frequency)", "if it stays for hours, start the machine anew: the kernel then measures the frequency anew; tsc_early_khz= on the kernel's command line gives it the right one"},
		}
		if rate > hardSlew {
			f.Severity = Warning
		}
		found = append(found, f)
	}
	if offset := max(d.Offset, -d.Offset); offset >= 10*time.Millisecond {
		found = append(found, Finding{
			ID: "discipline.offset", Severity: Notice, Confidence: Certain,
			Title:    fmt.Sprintf("the wall clock is %v off, which the kernel is slewing away", d.Offset),
			Evidence: evidence,
			Remedy:   []string{"if it may be set at once: chronyc makestep"},
		})
	}
	if d.Synchronized && d.MaxError >= time.Second {
		found = append(found, Finding{
			ID: "discipline.uncertain", Severity: Notice, Confidence: Certain,
			Title:    fmt.Sprintf("the wall clock may be up to %s off, as who keeps it admits", short(d.MaxError)),
			Detail:   "The kernel adds half a millisecond a second until somebody confirms the time: that was long ago.",
			Evidence: evidence,
			Remedy:   []string{"look whether the servers answer: chronyc sources; ntpq -p; timedatectl timesync-status"},
		})
	}
	if d.Leap != "" {
		found = append(found, Finding{
			ID: "discipline.leap-second", Severity: Notice, Confidence: Certain,
			Title:    "leap second: " + d.Leap,
			Detail:   "The wall clock counts a second twice, or skips one; the monotonic clock does not.",
			Evidence: evidence,
			Remedy:   []string{"where a second counted twice does harm: chrony's leapsecmode slew, or time servers that smear it over a day"},
		})
	}
	var clients []string
	for _, name := range d.Daemons {
		if slices.Contains(ntpClients, name) {
			clients = append(clients, name)
		}
	}
	if len(clients) > 1 {
		found = append(found, Finding{
			ID: "discipline.rivals", Severity: Warning, Confidence: Likely,
			Title:    "several programs keep the same clock and undo each other's work: " + strings.Join(clients, ", "),
			Evidence: evidence,
			Remedy:   []string{"keep one: systemctl disable --now systemd-timesyncd   # or whichever is not wanted"},
		})
	}
	return found
}
