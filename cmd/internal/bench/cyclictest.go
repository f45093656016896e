package bench

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strconv"
	"strings"

	"github.com/detent-go/detent/cmd/internal/load"
	"github.com/detent-go/detent/timer"
)

// cyclictestMost is how late a wake-up may be for cyclictest to tell how late, in
// microseconds.
const cyclictestMost = 10_000

// yardstick returns the path of cyclictest, or "", and whether a lane may have a
// priority. What there is not is noted.
func (s *stage) yardstick() (path string, priority bool) {
	const what = "against cyclictest"
	lane, err := timer.NewLane(&timer.LaneOptions{Priority: lanePriority})
	if err != nil {
		s.skip(what, err.Error())
		return "", false
	}
	_ = lane.Close()
	if path, err = exec.LookPath("cyclictest"); err != nil {
		s.skip(what, "cyclictest (package rt-tests) is not installed")
		return "", false
	}
	if _, err := s.cyclictest(path, 1); err != nil {
		s.skip(what, err.Error())
		return "", false
	}
	return path, true
}

// roundFIFO measures a lane with a priority, and cyclictest with the same.
func (s *stage) roundFIFO(w *worker, path string) error {
	p50, p99 := specLateP50, specLateP99
	for _, sp := range []*spec{&p50, &p99} {
		sp.against = Cyclictest
		sp.label += ", cyclictest"
	}
	name := fmt.Sprintf("idle, SCHED_FIFO %d, every %v", lanePriority, fifoPeriod)
	v, err := w.call(request{
		Op: opLane, Lane: string(laneFIFO), Mode: string(load.Idle), D: fifoPeriod, Window: s.plan.LoadWindow,
	})
	if err != nil {
		return err
	}
	s.addAll(name, w.side, v, p50, p99)
	late, err := s.cyclictest(path, max(int(s.plan.LoadWindow/fifoPeriod), 1))
	if err != nil {
		return err
	}
	s.addAll(name, Cyclictest, late, p50, p99)
	return nil
}

// cyclictest runs it for so many wake-ups.
func (s *stage) cyclictest(path string, loops int) (values, error) {
	cmd := exec.CommandContext(s.ctx, path, "-q",
		"-p", strconv.Itoa(lanePriority), "-i", strconv.FormatInt(fifoPeriod.Microseconds(), 10),
		"-l", strconv.Itoa(loops), "-h", strconv.Itoa(cyclictestMost))
	out, err := cmd.Output()
	if err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) && len(exit.Stderr) > 0 {
			err = fmt.Errorf("%w: %s", err, bytes.TrimSpace(exit.Stderr))
		}
		return nil, fmt.Errorf("cyclictest: %w", err)
	}
	return readCyclictest(out)
}

// readCyclictest reads the histogram that cyclictest writes: lines of a number of
// whole microseconds, which the lateness is rounded down to, and how often it was
// that. The values of one line are taken to lie evenly over its microsecond.
func readCyclictest(out []byte) (values, error) {
	var late []int64
	for sc := bufio.NewScanner(bytes.NewReader(out)); sc.Scan(); {
		fields := strings.Fields(sc.Text())
		if over, ok := strings.CutPrefix(sc.Text(), "# Histogram Overflows:"); ok {
			n, err := strconv.Atoi(strings.TrimSpace(over))
			if err != nil {
				return nil, fmt.Errorf("cyclictest wrote %q", sc.Text())
			}
			late = append(late, slices.Repeat([]int64{cyclictestMost * 1000}, n)...)
		}
		if len(fields) != 2 || strings.HasPrefix(fields[0], "#") {
			continue
		}
		us, err1 := strconv.ParseInt(fields[0], 10, 64)
		n, err2 := strconv.ParseInt(fields[1], 10, 64)
		if err := errors.Join(err1, err2); err != nil {
			return nil, fmt.Errorf("cyclictest wrote %q: %w", sc.Text(), err)
		}
		for i := range n {
			late = append(late, us*1000+(2*i+1)*1000/(2*n))
		}
	}
	if len(late) == 0 {
		return nil, errors.New("cyclictest wrote no histogram")
	}
	v := values{}
	v.lateness(late)
	return v, nil
}
