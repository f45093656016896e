package patient

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"sync"
	"testing"

	"github.com/detent-go/detent/cmd/internal/atexec"
)

// A Patient is a running program with a fault.
type Patient struct {
	Fault Fault

	cmd   *exec.Cmd
	stdin io.Closer
	undo  []func() error

	once sync.Once
	err  error
}

// Start starts a patient and returns when it has begun. An error matches
// fs.ErrPermission or errors.ErrUnsupported where this machine or this user cannot
// make the fault. The patient ends with ctx, or with Close.
func Start(ctx context.Context, f Fault) (*Patient, error) {
	exe, err := os.Executable()
	if err != nil {
		return nil, err
	}
	p := &Patient{Fault: f, cmd: exec.CommandContext(ctx, exe)}
	p.cmd.Env = append(os.Environ(), variable+"="+string(f))
	p.cmd.Stderr = os.Stderr
	if p.stdin, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	stdout, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := p.start(); err != nil {
		return nil, errors.Join(fmt.Errorf("starting the patient %q: %w", f, err), p.Close())
	}
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if line != ready {
		return nil, errors.Join(fmt.Errorf("the patient %q wrote %q: %w", f, line, err), p.Close())
	}
	return p, nil
}

func (p *Patient) start() error {
	switch p.Fault {
	case NoVDSO:
		held, err := atexec.Start(p.cmd)
		if err != nil {
			return err
		}
		return errors.Join(held.HideAux(atexec.SysinfoEHDR), held.Resume())
	case Throttled:
		g, err := newCgroup()
		if err != nil {
			return err
		}
		p.undo = append(p.undo, g.remove)
		if err := g.limit(quota, period); err != nil {
			return err
		}
		if err := p.cmd.Start(); err != nil {
			return err
		}
		return g.add(p.PID())
	default:
		return p.cmd.Start()
	}
}

// PID is the patient's process id.
func (p *Patient) PID() int { return p.cmd.Process.Pid }

// Close ends the patient and takes away what was made for it.
func (p *Patient) Close() error {
	p.once.Do(func() {
		p.stdin.Close()
		if p.cmd.Process != nil {
			p.cmd.Process.Kill()
			p.cmd.Wait() // its status says that it was killed
		}
		for _, undo := range p.undo {
			p.err = errors.Join(p.err, undo())
		}
	})
	return p.err
}

// Run starts a patient that ends with the test. The test is skipped, with the
// reason, where the fault cannot be made.
func Run(t testing.TB, f Fault) *Patient {
	t.Helper()
	p, err := Start(context.Background(), f)
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, errors.ErrUnsupported) {
		t.Skipf("cannot make the fault here: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Errorf("ending the patient %q: %v", f, err)
		}
	})
	return p
}
