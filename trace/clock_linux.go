//go:build amd64 || arm64

package trace

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// A clockWatcher notices changes of the clock: steps at once, by a timer that the
// kernel cancels when the wall clock is set; messages of the kernel as they come;
// the clocksource and the rate by looking at them once an interval, since nothing
// tells of their change.
type clockWatcher struct {
	steps *os.File // a timerfd; nil if it cannot be had
	log   *os.File // /dev/kmsg; nil if it cannot be read
}

// watchClock starts the watching. Nothing of it needs privileges but reading the
// kernel's log, which is noted if it is refused.
func (t *Tracer) watchClock() error {
	w := &clockWatcher{}
	t.clock = w
	fd, err := unix.TimerfdCreate(unix.CLOCK_REALTIME, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC)
	if err != nil {
		return fmt.Errorf("trace: timerfd: %w", err)
	}
	w.steps = os.NewFile(uintptr(fd), "timerfd")
	if err := armForSteps(fd); err != nil {
		return fmt.Errorf("trace: timerfd: %w", err)
	}
	offset := wallOffset()
	t.wait.Go(func() { t.watchSteps(fd, offset) })
	note := Hook{Name: "/dev/kmsg", Feature: WatchClockChanges.String()}
	if log, err := openLog(); err != nil {
		note.Absent = err.Error()
	} else {
		w.log = log
		t.wait.Go(t.watchLog)
	}
	t.notes = append(t.notes, note)
	first := t.clockState()
	t.wait.Go(func() { t.pollClock(first) })
	return nil
}

func (w *clockWatcher) close() error {
	var errs []error
	for _, f := range []*os.File{w.steps, w.log} {
		if f != nil {
			errs = append(errs, f.Close())
		}
	}
	return errors.Join(errs...)
}

// armForSteps sets the timer for a time that does not come.
func armForSteps(fd int) error {
	return unix.TimerfdSettime(fd, unix.TFD_TIMER_ABSTIME|unix.TFD_TIMER_CANCEL_ON_SET,
		&unix.ItimerSpec{Value: unix.Timespec{Sec: 1 << 40}}, nil)
}

// wallOffset is the wall clock minus CLOCK_MONOTONIC, which only setting the clock
// changes. Of several readings, that with the shortest way between the two clocks
// counts.
func wallOffset() time.Duration {
	var best, offset int64 = 1 << 62, 0
	for range 10 {
		var a, wall, b unix.Timespec
		if errors.Join(
			unix.ClockGettime(unix.CLOCK_MONOTONIC, &a),
			unix.ClockGettime(unix.CLOCK_REALTIME, &wall),
			unix.ClockGettime(unix.CLOCK_MONOTONIC, &b),
		) != nil {
			return 0
		}
		if d := b.Nano() - a.Nano(); d < best {
			best, offset = d, wall.Nano()-(a.Nano()+b.Nano())/2
		}
	}
	return time.Duration(offset)
}

// watchSteps waits for the timer to be cancelled, until its file is closed.
func (t *Tracer) watchSteps(fd int, offset time.Duration) {
	var buf [8]byte
	for {
		_, err := t.clock.steps.Read(buf[:])
		switch {
		case err == nil:
			continue
		case !errors.Is(err, unix.ECANCELED):
			return // closed
		}
		// Armed before the clock is read: a step between the two is told twice,
		// the second time as a step of almost nothing, rather than not at all.
		if err := t.armAgain(); err != nil {
			t.lose("steps of the clock: " + err.Error())
			return
		}
		now := wallOffset()
		t.send(Event{Time: time.Now(), Kind: EventStep, Step: now - offset})
		offset = now
	}
}

// armAgain arms the timer through its file, which Close may be closing.
func (t *Tracer) armAgain() error {
	raw, err := t.clock.steps.SyscallConn()
	if err != nil {
		return err
	}
	var armed error
	if err := raw.Control(func(fd uintptr) { armed = armForSteps(int(fd)) }); err != nil {
		return err
	}
	return armed
}

// openLog opens the kernel's log after its last message.
func openLog() (*os.File, error) {
	fd, err := unix.Open("/dev/kmsg", unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: "/dev/kmsg", Err: err}
	}
	if _, err := unix.Seek(fd, 0, 2); err != nil {
		unix.Close(fd)
		return nil, &os.PathError{Op: "seek", Path: "/dev/kmsg", Err: err}
	}
	return os.NewFile(uintptr(fd), "/dev/kmsg"), nil
}

// watchLog sends the kernel's messages about clocks, until the log is closed.
func (t *Tracer) watchLog() {
	buf := make([]byte, 8<<10) // a record is never longer
	for {
		n, err := t.clock.log.Read(buf)
		switch {
		case errors.Is(err, unix.EPIPE):
			t.lose("messages of the kernel: overwritten before they were read")
			continue
		case err != nil:
			return
		}
		if text := logText(buf[:n]); aboutClock(text) {
			t.send(Event{Time: time.Now(), Kind: EventMessage, Text: text})
		}
	}
}

// logText takes a record of /dev/kmsg apart: "6,123,456789,-;text" and lines of
// data after that.
func logText(record []byte) string {
	_, text, _ := bytes.Cut(record, []byte(";"))
	text, _, _ = bytes.Cut(text, []byte("\n"))
	return string(text)
}

func aboutClock(text string) bool {
	lower := strings.ToLower(text)
	for _, word := range []string{"clocksource", "tsc", "timekeeping", "hpet", "sched_clock", "clockevent", "hrtimer"} {
		if strings.Contains(lower, word) {
			return true
		}
	}
	return false
}

// clockState is what no hook tells of.
func (t *Tracer) clockState() ClockPart {
	s := ClockPart{Clocksource: t.clocksource()}
	var x unix.Timex // modes 0: it reads
	if _, err := unix.Adjtimex(&x); err != nil {
		return s
	}
	s.PPM = float64(x.Freq) / 65536
	s.Tick = int64(x.Tick)
	s.Offset = time.Duration(x.Offset) * time.Microsecond
	if x.Status&unix.STA_NANO != 0 {
		s.Offset = time.Duration(x.Offset)
	}
	return s
}

// slewed says that the rate was changed from one state to the other. A
// synchronising daemon corrects it by fractions of a ppm every minute, and what is
// left to make up for shrinks by itself: only its beginning tells.
func slewed(was, is ClockPart) bool {
	d := is.PPM - was.PPM
	return d > 1 || d < -1 || is.Tick != was.Tick ||
		was.Offset == 0 && (is.Offset > time.Millisecond || is.Offset < -time.Millisecond)
}

func (t *Tracer) pollClock(was ClockPart) {
	tick := time.NewTicker(t.opts.Interval)
	defer tick.Stop()
	for {
		select {
		case <-t.quit:
			return
		case <-tick.C:
		}
		is := t.clockState()
		if is.Clocksource != was.Clocksource {
			t.send(Event{
				Time: time.Now(), Kind: EventClocksource,
				Was: &ClockPart{Clocksource: was.Clocksource}, Is: &ClockPart{Clocksource: is.Clocksource},
			})
		}
		if slewed(was, is) {
			a, b := was, is
			t.send(Event{Time: time.Now(), Kind: EventSlew, Was: &a, Is: &b})
			was.PPM, was.Tick = is.PPM, is.Tick
		}
		was.Clocksource, was.Offset = is.Clocksource, is.Offset
	}
}
