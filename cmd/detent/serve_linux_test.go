//go:build amd64 || arm64

package main

import (
	"bufio"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/detent-go/detent/cmd/internal/browsertest"
	"github.com/detent-go/detent/cmd/internal/patient"
	"github.com/detent-go/detent/probe"
)

// served is `detent serve` as a process of its own.
type served struct {
	cmd *exec.Cmd
	url string
}

func startServe(t *testing.T) *served {
	t.Helper()
	cmd := exec.Command(os.Args[0], "serve", "--listen", "127.0.0.1:0")
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	s := &served{cmd: cmd}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	lines := bufio.NewScanner(stderr)
	for s.url == "" && lines.Scan() {
		if m := regexp.MustCompile(`url=(\S+)`).FindStringSubmatch(lines.Text()); m != nil {
			s.url = m[1]
		}
	}
	if s.url == "" {
		t.Fatal("it does not say where it serves")
	}
	go func() { // lest its output block it
		for lines.Scan() {
		}
	}()
	return s
}

// seen is what the test reads of the server's state.
type seen struct {
	Watching  string
	Findings  []probe.Finding
	Processes []struct {
		PID      int
		Findings []string
	}
}

// has reports whether the server shows that a process has a finding.
func (st seen) has(t *testing.T, p *patient.Patient, id string) bool {
	t.Helper()
	for _, f := range st.Findings {
		if f.ID == id && strings.Contains(f.Title, titled(p)) && (len(f.Evidence) == 0 || len(f.Remedy) == 0) {
			t.Errorf("incomplete: %+v", f)
		}
	}
	for _, x := range st.Processes {
		if x.PID == p.PID() {
			return slices.Contains(x.Findings, id)
		}
	}
	return false
}

// titled is how a finding's title names a process.
func titled(p *patient.Patient) string { return "PID " + strconv.Itoa(p.PID()) + ")" }

func (s *served) get(t *testing.T, path string) string {
	t.Helper()
	res, err := http.Get(s.url + path)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func (s *served) state(t *testing.T) (st seen) {
	t.Helper()
	if err := json.Unmarshal([]byte(s.get(t, "api/state")), &st); err != nil {
		t.Fatal(err)
	}
	return st
}

// patients are what serve names, and how.
var patients = map[patient.Fault]string{
	patient.Direct: "explain.direct-calls", patient.NoVDSO: "explain.vdso-hidden", patient.Throttled: "explain.throttled",
}

// TestServePatient: when processes with faults start, the server names them as
// detent explain does, and counts them, having given up its powers over the machine;
// the healthy one is left in peace; and SIGTERM ends the server cleanly.
func TestServePatient(t *testing.T) {
	s := startServe(t)
	eventually(t, "it watches, or says why not", func() bool { return s.state(t).Watching != "" || powerless(t, s.cmd.Process.Pid) })
	if why := s.state(t).Watching; why != "" {
		t.Skip(why)
	}
	healthy := titled(patient.Run(t, patient.Healthy))
	for fault, id := range patients {
		t.Run(string(fault), func(t *testing.T) {
			p := patient.Run(t, fault)
			eventually(t, "the patient is named", func() bool {
				st := s.state(t)
				for _, f := range st.Findings {
					// A quota over the tests themselves is a fault of theirs.
					if strings.HasPrefix(f.ID, "explain.") && strings.Contains(f.Title, healthy) && !ofMachine(f.ID) && f.ID != "explain.throttled" {
						t.Errorf("the healthy one has %s: %s", f.ID, f.Title)
					}
				}
				return st.has(t, p, id)
			})
			eventually(t, "the patient is counted", func() bool {
				return regexp.MustCompile(`(?m)^detent_process_findings\{id="` + id + `",severity="\w+"\} [1-9]`).MatchString(s.get(t, "metrics"))
			})
		})
	}
	if !powerless(t, s.cmd.Process.Pid) {
		t.Error("it has kept CAP_SYS_ADMIN")
	}
	for _, line := range []string{"Uid:\t65534\t65534\t65534\t65534\n", "Gid:\t65534\t65534\t65534\t65534\n", "Groups:\t \n", "NoNewPrivs:\t1\n"} {
		const setID = 1<<6 | 1<<7 // CAP_SETGID, CAP_SETUID
		if capabilities(t, os.Getpid())&setID != setID && !strings.HasPrefix(line, "NoNewPrivs") {
			continue // It may not, as in a container that does not give these.
		}
		if status := statusOf(t, s.cmd.Process.Pid); os.Getuid() == 0 && !strings.Contains(status, line) {
			t.Errorf("%q is not in its status:\n%s", line, status)
		}
	}
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- s.cmd.Wait() }()
	select {
	case err := <-ended:
		if err != nil {
			t.Errorf("SIGTERM: %v", err)
		}
	case <-time.After(2 * time.Minute):
		t.Error("SIGTERM does not end it")
	}
}

// TestServePage: on the page of a real server, in a real browser, numbers move, a real
// patient's finding appears when it starts and goes when it ends.
func TestServePage(t *testing.T) {
	for name, size := range map[string][2]int{"laptop": {1280, 900}, "phone": {390, 844}} {
		t.Run(name, func(t *testing.T) {
			tab := browsertest.Open(t, size[0], size[1])
			s := startServe(t)
			eventually(t, "it watches, or says why not", func() bool { return s.state(t).Watching != "" || powerless(t, s.cmd.Process.Pid) })
			if why := s.state(t).Watching; why != "" {
				t.Skip(why)
			}
			tab.Run(chromedp.Navigate(s.url))
			const tiles = `document.getElementById('tiles').textContent`
			tab.Until("there are numbers", tiles+` !== ''`)
			var before string
			tab.Eval(tiles, &before)
			tab.Until("numbers move", tiles+` !== `+strconv.Quote(before))
			p := patient.Run(t, patient.Direct)
			row := `[...document.getElementById('processes').rows].some(r => r.cells[1]?.textContent === '` + strconv.Itoa(p.PID()) +
				`' && r.textContent.includes('explain.direct-calls'))`
			tab.Until("the patient is among the processes, with its finding", row)
			tab.Until("there is such a finding", `document.querySelector('.finding[data-id="explain.direct-calls"]') !== null`)
			var wide bool
			tab.Eval(`document.documentElement.scrollWidth > innerWidth`, &wide)
			if wide {
				t.Error("the page is wider than the window")
			}
			tab.Shoot("serve-patient-" + name)
			if err := p.Close(); err != nil {
				t.Fatal(err)
			}
			tab.Until("it has gone", "!"+row)
			if problems := tab.Problems(); len(problems) > 0 {
				t.Errorf("the console complains: %q", problems)
			}
		})
	}
}

func statusOf(t *testing.T, pid int) string {
	t.Helper()
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// powerless reports whether a process has none of the powers that root has over the
// system's administration.
func powerless(t *testing.T, pid int) bool {
	t.Helper()
	const sysAdmin = 1 << 21
	return capabilities(t, pid)&sysAdmin == 0
}

// capabilities are those that a process is permitted, by the kernel's numbers.
func capabilities(t *testing.T, pid int) uint64 {
	t.Helper()
	m := regexp.MustCompile(`CapPrm:\s*([0-9a-f]+)`).FindStringSubmatch(statusOf(t, pid))
	if m == nil {
		t.Fatal("no capabilities in its status")
	}
	caps, err := strconv.ParseUint(m[1], 16, 64)
	if err != nil {
		t.Fatal(err)
	}
	return caps
}

// eventually waits for what comes sooner or later, however busy the machine is.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for range 1200 {
		if holds() {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Fatalf("never: %s", what)
}
