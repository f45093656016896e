package timer_test

import (
	"fmt"
	"runtime/pprof"
	"time"

	"github.com/detent-go/detent/timer"
)

// Who has made the timers that are pending? In a server, net/http/pprof answers at
// /debug/pprof/detent.timer.
func ExampleSetProfileFraction() {
	timer.SetProfileFraction(1) // all of them; a program with very many would have one in a thousand
	defer timer.SetProfileFraction(0)

	s, err := timer.New(nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer s.Close()
	for range 3 {
		s.AfterFunc(time.Hour, func() {})
	}

	profile := pprof.Lookup("detent.timer")
	fmt.Println(profile.Count(), "timers")
	// profile.WriteTo(os.Stdout, 1) shows who started them.

	// Output:
	// 3 timers
}
