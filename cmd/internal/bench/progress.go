package bench

import (
	"fmt"
	"io"
	"sync"
	"time"
)

// A Progress says on a terminal or in a log what is being measured.
//
// Ground rules: mu guards what is below it and the writing, which Show does
// in the measuring goroutine and the clock in one of its own.
type Progress struct {
	w     io.Writer
	live  bool
	begin time.Time
	stop  chan struct{}
	clock sync.WaitGroup

	mu    sync.Mutex
	shown Event
}

// NewProgress writes to w: live, one line that is always written anew, and
// otherwise a line for each scenario. Close ends it.
func NewProgress(w io.Writer, live bool) *Progress {
	p := &Progress{w: w, live: live, begin: time.Now(), stop: make(chan struct{})}
	if live {
		p.clock.Go(p.tick)
	}
	return p
}

// tick keeps the seconds of the live line going.
func (p *Progress) tick() {
	t := time.NewTicker(time.Second)
	defer t.Stop()
	for {
		select {
		case <-p.stop:
			return
		case <-t.C:
			p.mu.Lock()
			p.drawLocked()
			p.mu.Unlock()
		}
	}
}

// Show tells of an event.
func (p *Progress) Show(e Event) {
	p.mu.Lock()
	defer p.mu.Unlock()
	next := e.Index != p.shown.Index
	p.shown = e
	switch {
	case p.live:
		p.drawLocked()
	case next:
		fmt.Fprintf(p.w, "[%*d/%d] %s: %s (at %.0f s)\n",
			width(e.Total), e.Index, e.Total, e.Scenario.Name, e.Scenario.Title, time.Since(p.begin).Seconds())
	}
}

// drawLocked writes the live line over the last one.
func (p *Progress) drawLocked() {
	e := p.shown
	if e.Total == 0 {
		return
	}
	at := "setting up"
	if e.Round > 0 {
		at = fmt.Sprintf("round %d of %d", e.Round, e.Rounds)
	}
	fmt.Fprintf(p.w, "\r\x1b[K[%*d/%d] %3.0f s  %s: %s",
		width(e.Total), e.Index, e.Total, time.Since(p.begin).Seconds(), e.Scenario.Name, at)
}

// Close ends the progress and takes the live line away.
func (p *Progress) Close() {
	close(p.stop)
	p.clock.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.live && p.shown.Total > 0 {
		fmt.Fprint(p.w, "\r\x1b[K")
	}
}

// width is that of n in decimal.
func width(n int) int { return len(fmt.Sprint(n)) }
