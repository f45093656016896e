// Command aligned prints a line every so often by the wall clock: every 15 seconds on
// the quarter of the minute, as those who collect metrics do.
//
//	go run ./aligned
//	go run ./aligned -every 1s -slow 2500ms
//
// Work that takes longer than a period misses ticks: they are counted, and the next
// line comes on the grid again.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"time"

	"github.com/detent-go/detent/timer"
)

func main() {
	every := flag.Duration("every", 15*time.Second, "the period")
	offset := flag.Duration("offset", 0, "how long after each multiple of the period")
	count := flag.Int("n", 0, "how many lines; 0: until interrupted")
	slow := flag.Duration("slow", 0, "how long the work of each line takes")
	flag.Parse()
	if *every <= 0 || *slow < 0 || *count < 0 {
		fmt.Fprintln(os.Stderr, "aligned: -every has to be positive, -slow and -n not negative")
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	run(ctx, os.Stdout, *every, *offset, *slow, *count)
}

// run prints count lines, or lines until ctx ends if count is 0.
func run(ctx context.Context, w io.Writer, every, offset, slow time.Duration, count int) {
	ticks := timer.NewInterval(every, &timer.TickOptions{Aligned: true, Offset: offset})
	n := 0
	for tick := range ticks.Ticks(ctx) {
		late := time.Since(tick.At).Round(time.Microsecond)
		fmt.Fprintf(w, "%s, %v late, %d missed\n", tick.At.Format("15:04:05.000"), late, tick.Missed)
		time.Sleep(slow)
		if n++; n == count {
			return
		}
	}
}
