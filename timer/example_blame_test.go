package timer_test

import (
	"fmt"
	"time"

	"github.com/detent-go/detent/timer"
)

// Whose fault is it that timers are late?
func ExampleBlame() {
	s, err := timer.New(&timer.Options{Blame: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer s.Close()

	for range 10 {
		s.Sleep(2 * time.Millisecond)
	}

	st := s.Stats()
	sum := time.Duration(0)
	for _, part := range []struct {
		cause string
		late  timer.Histogram
	}{
		{"asked for by slack", st.Blame.Slack},
		{"the kernel", st.Blame.Kernel},
		{"the Go scheduler", st.Blame.Scheduler},
		{"one of these two", st.Blame.Wakeup},
		{"the CPU quota", st.Blame.Throttled},
		{"timers before it", st.Blame.Queue},
	} {
		// fmt.Println(part.cause, part.late.Quantile(0.99), part.late.Sum())
		sum += part.late.Sum()
	}
	fmt.Println("all accounted for:", sum == st.Lateness.Sum())
	// Output:
	// all accounted for: true
}
