package timer_test

import (
	"fmt"
	"sync"
	"time"

	"github.com/detent-go/detent/timer"
)

// session is a struct with two timers of its own: one ends it when nothing has
// been heard for a while, the other when it has lasted too long.
type session struct {
	idle, life timer.Embedded
	over       sync.WaitGroup
}

func (s *session) start() {
	s.over.Add(1)
	s.idle.Init(nil, s)
	s.life.Init(nil, s)
	s.idle.Reset(5 * time.Millisecond)
	s.life.Reset(time.Hour)
}

// heard is called for each message. It allocates nothing.
func (s *session) heard() { s.idle.Reset(5 * time.Millisecond) }

// Expire is called by both timers.
func (s *session) Expire(t *timer.Embedded) {
	if t == &s.idle && s.life.Stop() {
		fmt.Println("idle for too long")
		s.over.Done()
	}
}

func ExampleEmbedded() {
	var s session
	s.start()
	for range 3 {
		s.heard()
	}
	s.over.Wait()
	// Output:
	// idle for too long
}
