package clock

import (
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/detent-go/detent/internal/tsc"
)

// An engine reads the counter by a line (see [tsc.Line]) that readers themselves
// renew, or the kernel's clock where the counter is not to be trusted, and where
// it is read so rarely that lines do not pay.
//
// # Ground rules
//
// The line in force is read without a lock: a reader loads seq, the line, the
// counter, and seq again. If seq has not changed, the line was in force; if the
// counter is in the line's stretch, the reading is good, whatever happens
// meanwhile. A line is replaced only after its stretch has passed. So all
// readings together are one rising function of the counter, and time steps back
// for nobody. While the line is being written span is 0, which no counter is in.
//
// kernel is not nil while readings are of the kernel's clock. A reader loads it,
// reads the clock, and loads it again; if it has changed the reading is discarded.
// So whoever sets kernel to nil, and then samples the clock, knows that no reading
// beyond that sample has been given out, and the first line begins there. That
// needs the reader's second load to come after its reading of the clock, which
// takes a fence, at the price of half a reading. Hence two phases in front of
// every line, calibrating and resuming, in which readers fence; both last longer
// than a CPU can have an instruction in flight.
//
// In the other direction, readings are held at the end of the last line,
// kernelMode.floor, until the clock has passed it.
//
// When there is neither a line nor a kernelMode, nothing has been read yet or
// somebody is changing from the one to the other: readers wait for mu.
//
// mu is for renewing the line and changing the mode, and protects what is below
// it. It is held for a microsecond, every quarter of a second for some ten.
type engine struct {
	seq                  atomic.Uint64
	start, span, mult    atomic.Uint64
	base                 atomic.Int64
	wall                 atomic.Uint64 // of nowClock
	mono                 atomic.Int64  // likewise
	lineError, lineDrift atomic.Int64
	kernel               atomic.Pointer[kernelMode]

	mu sync.Mutex

	line    tsc.Line     // the line in force, or the last one
	tracker *tsc.Tracker // nil until the counter has been trusted once
	grain   uint64       // see [tsc.Grain]
	enough  uint64       // the width in ticks of a good sample
	lates   int          // how often in succession a line was renewed late
	doomed  error        // why the line in force is to be the last
	checked int64        // when trust was last looked at, by Mono
	strange uint64       // tracker.Jumps at that time

	firstMono, firstRaw tsc.Sample // the beginning of the calibration
	hz                  float64
	hzBy                string
	settled             bool // hz will not get better
	lines, fallbacks    uint64

	// Hooks, set before first use; nil for a TSC as users have it.

	// trust tells whether the kernel uses the counter.
	trust func() error

	// parts returns what wall and mono are to be with a line that begins at
	// base, and how many nanoseconds may be added to wall, after which the line
	// has to end. An error says that there can be no such line.
	parts func(base int64) (wall uint64, mono, left int64, err error)
}

// A kernelMode says that the engine reads the kernel's clock.
type kernelMode struct {
	phase phase
	err   error // why the counter is not trusted, if it is not
	floor int64 // no reading is less
	due   int64 // when to look again, by Mono

	// While idle: how many readings there have been before until.
	count atomic.Int32
	until atomic.Int64
}

// A phase is one of a kernelMode.
type phase uint8

const (
	untrusted   phase = iota // for the reason that err gives
	calibrating              // the counter is being measured; readers fence
	idle                     // the clock is read too rarely for lines
	resuming                 // it is not any more; readers fence
)

// forever, as kernelMode.due, is for what no time changes.
const forever = math.MaxInt64

const (
	calibration = 20 * time.Millisecond
	watch       = 250 * time.Millisecond // between two looks at the conditions of trust
	penalty     = 10 * time.Second       // without trust for a counter that jumps
	resumption  = 20 * time.Microsecond

	// stale is the age at which the beginning of a calibration is too old: a
	// suspend may lie between.
	stale = 10 * time.Second

	// manyJumps within watch cost the counter its trust. One is what a paused
	// virtual machine looks like.
	manyJumps = 3

	// A line costs as much as some thirty readings of it save. So the engine
	// goes idle when twice in succession a line is renewed later after its end
	// than a thirtieth of it, and resumes when so many readings come within
	// the time of a line.
	busyReadings = 32
	lineTime     = 500 * time.Microsecond
	late         = lineTime / busyReadings
)

// read reads the clock, and how far that may be off the kernel's.
func (e *engine) read() (ns, bound int64) {
	for {
		if ns, bound, ok := e.readLine(); ok {
			return ns, bound
		}
		k := e.kernel.Load()
		if k == nil {
			e.mu.Lock()
			e.advanceLocked()
			e.mu.Unlock()
			continue
		}
		now := Mono.Nanos()
		if k.phase == calibrating || k.phase == resuming {
			tsc.Fence()
		}
		if e.kernel.Load() != k {
			continue
		}
		// The others need not wait for the one that looks.
		if (now >= k.due || k.phase == idle && k.busy(now)) && e.mu.TryLock() {
			if e.kernel.Load() == k {
				e.reconsiderLocked(k, now)
			}
			e.mu.Unlock()
		}
		return max(now, k.floor), max(0, k.floor-now)
	}
}

// busy counts a reading of an idle engine, and tells whether there have been many.
func (k *kernelMode) busy(now int64) bool {
	if now < k.until.Load() {
		return k.count.Add(1) >= busyReadings
	}
	k.count.Store(0)
	k.until.Store(now + int64(lineTime))
	return false
}

// readLine reads the counter. It reports false if no line covers it.
func (e *engine) readLine() (ns, bound int64, ok bool) {
	seq := e.seq.Load()
	start, span, mult, base := e.start.Load(), e.span.Load(), e.mult.Load(), e.base.Load()
	off, drift := e.lineError.Load(), e.lineDrift.Load()
	if span == 0 {
		return 0, 0, false
	}
	d := tsc.Ordered() - start
	if d >= span || e.seq.Load() != seq {
		return 0, 0, false
	}
	elapsed := tsc.Scale(d, mult)
	return base + elapsed, tsc.Bound(off, drift, elapsed), true
}

// nextLocked puts the line in force that follows at a sample, no lower than floor.
func (e *engine) nextLocked(s tsc.Sample, floor int64) {
	line := e.tracker.Next(s, floor)
	var wall uint64
	var mono int64
	if e.parts != nil {
		var left int64
		var err error
		if wall, mono, left, err = e.parts(line.Base); err != nil {
			e.line = tsc.Line{Base: line.Base} // which nobody is beyond
			e.fallBackLocked(err, s.Ref+int64(penalty))
			return
		}
		line = e.tracker.Cut(left)
	}
	e.lines++
	e.publishLocked(line, wall, mono)
}

// publishLocked puts a line in force, or, with the zero line, none.
func (e *engine) publishLocked(line tsc.Line, wall uint64, mono int64) {
	e.line = line
	e.seq.Add(1)
	e.span.Store(0)
	e.start.Store(line.Start)
	e.mult.Store(line.Mult)
	e.base.Store(line.Base)
	e.wall.Store(wall)
	e.mono.Store(mono)
	e.lineError.Store(line.Error)
	e.lineDrift.Store(line.Drift)
	e.span.Store(line.Span)
	e.seq.Add(1)
}
