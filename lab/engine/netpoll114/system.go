package netpoll114

import (
	"time"

	"github.com/detent-go/detent/lab/internal/ksleep"
	"github.com/detent-go/detent/lab/internal/osthread"
)

// system is what the engine needs of the operating system. Tests have another one,
// in which nobody really sleeps.
type system interface {
	// start starts a thread.
	start(name string, f func())

	// newNote returns what one thread parks in.
	newNote() note

	// wait waits for the given number of milliseconds, or until interrupt, which
	// may have come before, and returns how many interrupts it has taken note of.
	// interrupt reports whether a wait will take note of it. Both are called between
	// an acquire that was true and a release.
	wait(ms int) (interrupts int)
	interrupt() bool
	acquire() bool
	release()
}

type note interface {
	Clear()
	Wakeup()
	Sleep(d time.Duration) bool
}

// kernel is the real system.
type kernel struct {
	poller
	calls ksleep.Calls
}

func (k *kernel) start(name string, f func()) { osthread.Go(name, f) }

func (k *kernel) newNote() note { return &ksleep.Note{Calls: &k.calls} }
