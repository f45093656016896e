package main

import (
	"bufio"
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/detent-go/detent/cmd/internal/patient"
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
	Watching string
	Findings []struct{ ID, Title string }
}

func (s *served) state(t *testing.T) (st seen) {
	t.Helper()
	res, err := http.Get(s.url + "api/state")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if err := json.NewDecoder(res.Body).Decode(&st); err != nil {
		t.Fatal(err)
	}
	return st
}

// TestServePatient: when a process that makes needless system calls starts, the
// server names it, having given up its powers over the machine; and SIGTERM ends the
// server cleanly.
func TestServePatient(t *testing.T) {
	s := startServe(t)
	eventually(t, "it watches, or says why not", func() bool { return s.state(t).Watching != "" || powerless(t, s.cmd.Process.Pid) })
	if why := s.state(t).Watching; why != "" {
		t.Skip(why)
	}
	p := patient.Run(t, patient.Direct)
	eventually(t, "the patient is named", func() bool {
		for _, f := range s.state(t).Findings {
			if f.ID == "process.clock-system-calls" && strings.Contains(f.Title, "PID "+strconv.Itoa(p.PID())+")") {
				return true
			}
		}
		return false
	})
	if !powerless(t, s.cmd.Process.Pid) {
		t.Error("it has kept CAP_SYS_ADMIN")
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

// powerless reports whether a process has none of the powers that root has over the
// system's administration (CAP_SYS_ADMIN is bit 21).
func powerless(t *testing.T, pid int) bool {
	t.Helper()
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(`CapPrm:\s*([0-9a-f]+)`).FindSubmatch(b)
	var caps uint64
	for _, c := range m[1] {
		digit := strings.IndexByte("0123456789abcdef", c)
		caps = caps<<4 | uint64(digit)
	}
	return caps&(1<<21) == 0
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
