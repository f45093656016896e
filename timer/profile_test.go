package timer_test

import (
	"bytes"
	"context"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	_ "net/http/pprof"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"runtime/pprof"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/detent-go/detent/internal/suite"
	"github.com/detent-go/detent/timer"
)

// profiled samples one of n timers until the end of the test. Timers of other
// tests are not in the profile, since they have not been started meanwhile.
func profiled(t testing.TB, n int) {
	t.Helper()
	if was := timer.SetProfileFraction(n); was != 0 {
		t.Fatalf("the fraction was %d", was)
	}
	t.Cleanup(func() {
		if got := timer.SetProfileFraction(0); got != n {
			t.Errorf("the fraction is %d, want %d", got, n)
		}
	})
}

// samples is the number of timers in the profile.
func samples() int {
	if p := pprof.Lookup("detent.timer"); p != nil {
		return p.Count()
	}
	return 0
}

// profileText is the profile in the form for people.
func profileText(t testing.TB) string {
	t.Helper()
	var b bytes.Buffer
	if err := pprof.Lookup("detent.timer").WriteTo(&b, 1); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// startedBy returns how many timers of the profile begin with the given function.
func startedBy(text, name string) int {
	// "3 @ 0x... 0x...", and then the frames, innermost first.
	m := regexp.MustCompile(`(?m)^(\d+) @ .*\n#\t0x\w+\t\S*timer_test\.` + name + `\+`).FindStringSubmatch(text)
	if m == nil {
		return 0
	}
	n, _ := strconv.Atoi(m[1])
	return n
}

//go:noinline
func makesCallbacks(s *timer.Service, n int) (ts []*timer.Timer) {
	for range n {
		ts = append(ts, s.AfterFunc(time.Hour, func() {}))
	}
	return ts
}

//go:noinline
func makesDefaults(n int) (ts []*timer.Timer) {
	for range n {
		ts = append(ts, timer.AfterFunc(time.Hour, func() {}))
	}
	return ts
}

//go:noinline
func makesTickers(s *timer.Service, n int) (ts []*timer.Ticker) {
	for range n {
		ts = append(ts, s.NewTicker(time.Hour))
	}
	return ts
}

//go:noinline
func makesContexts(s *timer.Service, n int) (cancels []context.CancelFunc) {
	for range n {
		_, cancel := s.WithTimeout(context.Background(), time.Hour)
		cancels = append(cancels, cancel)
	}
	return cancels
}

//go:noinline
func makesChannels(s *timer.Service, n int) (ts []*timer.Timer) {
	for range n {
		ts = append(ts, s.NewTimer(time.Hour))
	}
	return ts
}

//go:noinline
func makesAbsolute(s *timer.Service, n int) (ts []*timer.Timer) {
	for range n {
		ts = append(ts, s.AfterFuncAt(time.Now().Add(time.Hour), func() {}))
	}
	return ts
}

// leasehold has a timer for a field.
type leasehold struct{ timer timer.Embedded }

func (*leasehold) Expire(*timer.Embedded) {}

//go:noinline
func makesLeases(s *timer.Service, n int) (ls []*leasehold) {
	for range n {
		l := new(leasehold)
		l.timer.Init(s, l)
		l.timer.Reset(time.Hour)
		ls = append(ls, l)
	}
	return ls
}

//go:noinline
func sleeps(s *timer.Service, d time.Duration) { s.Sleep(d) }

//go:noinline
func resets(t *timer.Timer) { t.Reset(time.Hour) }

// TestProfile: the profile has each pending timer under the function that started
// it, without those of this package, until it has fired or been stopped.
func TestProfile(t *testing.T) {
	profiled(t, 1)
	s := mustNewOpen(t, nil)
	callbacks, defaults, tickers := makesCallbacks(s, 3), makesDefaults(2), makesTickers(s, 4)
	cancels, channels := makesContexts(s, 5), makesChannels(s, 6)
	absolute, leases := makesAbsolute(s, 7), makesLeases(s, 8)
	text := profileText(t)
	for name, want := range map[string]int{
		"makesCallbacks": 3, "makesDefaults": 2, "makesTickers": 4, "makesContexts": 5, "makesChannels": 6,
		"makesAbsolute": 7, "makesLeases": 8,
	} {
		if got := startedBy(text, name); got != want {
			t.Errorf("%d timers by %s, want %d", got, name, want)
		}
	}
	if strings.Contains(text, "detent/timer.") || strings.Contains(text, "internal/shard") {
		t.Error("functions of the package are in the profile")
	}
	if t.Failed() {
		t.Log(text)
	}

	// Reset keeps a pending timer; and starts one that is not.
	callbacks[0].Reset(2 * time.Hour)
	callbacks[0].Reset(time.Hour)
	resets(callbacks[0])
	callbacks[1].Stop()
	resets(callbacks[1])
	tickers[0].Reset(time.Hour)
	text = profileText(t)
	if a, b := startedBy(text, "makesCallbacks"), startedBy(text, "resets"); a != 2 || b != 1 || samples() != 35 {
		t.Errorf("after Reset: %d of %d timers by makesCallbacks, %d by resets; want 2 and 1 of 35\n%s", a, samples(), b, text)
	}

	for _, x := range slices.Concat(callbacks, defaults, channels, absolute) {
		x.Stop()
	}
	for _, cancel := range cancels {
		cancel()
	}
	for _, l := range leases {
		l.timer.Stop()
	}
	for _, x := range tickers[1:] {
		x.Stop()
	}
	if n := samples(); n != 1 {
		t.Errorf("%d timers are in the profile, want one ticker\n%s", n, profileText(t))
	}
	closes(t, s)
	if n := samples(); n != 0 {
		t.Errorf("%d timers are in the profile after Close\n%s", n, profileText(t))
	}
}

// TestProfileFired: what fires leaves the profile, and so does what was due at
// once. A sleep is in there.
func TestProfileFired(t *testing.T) {
	profiled(t, 1)
	s := mustNew(t, nil)
	seen := make(chan int, 1)
	s.AfterFunc(time.Millisecond, func() { seen <- startedBy(profileText(t), "TestProfileFired") })
	if n := suite.Await(t, "the callback", seen); n != 0 {
		t.Errorf("%d timers are in the profile when the callback of the only one runs", n)
	}
	suite.Await(t, "a timer", s.After(time.Microsecond))
	suite.Await(t, "a timer", s.NewTimer(0).C)
	<-s.NewTimer(-1).C
	slept := make(chan struct{})
	go func() {
		sleeps(s, 50*time.Millisecond)
		close(slept)
	}()
	suite.Eventually(t, "the sleep is in the profile, or over", func() bool {
		select {
		case <-slept:
			return true
		default:
			return startedBy(profileText(t), "sleeps") == 1
		}
	})
	suite.Await(t, "the sleep is over", slept)
	suite.Eventually(t, "the profile is empty", func() bool { return samples() == 0 })
}

// TestProfileCollected: a ticker that is collected leaves the profile, which does
// not keep it.
func TestProfileCollected(t *testing.T) {
	if portable {
		t.Skip("in a portable build tickers are not collected")
	}
	profiled(t, 1)
	s := mustNew(t, nil)
	makesTickers(s, 50)
	suite.Eventually(t, "the tickers are collected", func() bool {
		runtime.GC()
		return samples() == 0
	})
}

// TestProfileFraction: about one timer of n is sampled, and none if it is off.
func TestProfileFraction(t *testing.T) {
	if timer.SetProfileFraction(-1) != 0 {
		t.Fatal("the profile is on from the start")
	}
	s := mustNew(t, nil)
	makesCallbacks(s, 100)
	if n := samples(); n != 0 {
		t.Errorf("%d timers in the profile that is off", n)
	}
	profiled(t, 10)
	if n := timer.SetProfileFraction(-1); n != 10 {
		t.Errorf("the fraction is %d, want 10", n)
	}
	const n = 20_000
	ts := makesCallbacks(s, n)
	// 2000 on average, and a standard deviation of 42.
	if got := samples(); got < n/10-400 || got > n/10+400 {
		t.Errorf("%d timers of %d are in the profile, want one in ten", got, n)
	}
	for _, x := range ts {
		x.Stop()
	}
	if n := samples(); n != 0 {
		t.Errorf("%d timers are in the profile when all are stopped", n)
	}
}

// TestProfileStress starts, resets and stops timers from several goroutines while
// the profile is switched and written: in the end it is empty.
func TestProfileStress(t *testing.T) {
	s := mustNewOpen(t, nil)
	profiled(t, 1)
	var wg, writers sync.WaitGroup
	stop := make(chan struct{})
	writers.Go(func() {
		for k := 0; ; k++ {
			select {
			case <-stop:
				timer.SetProfileFraction(1)
				return
			default:
			}
			timer.SetProfileFraction(k % 4)
			profileText(t)
			runtime.Gosched()
		}
	})
	for g := range 4 {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(g), uint64(time.Now().UnixNano())))
			var mine [32]*timer.Timer
			for range suite.Scale(4000) {
				k := rng.IntN(len(mine))
				d := time.Duration(rng.IntN(300)-20) * time.Microsecond
				if rng.IntN(4) == 0 {
					d = time.Hour
				}
				switch x := mine[k]; {
				case x == nil && rng.IntN(2) == 0:
					mine[k] = s.AfterFunc(d, func() {})
				case x == nil:
					mine[k] = s.NewTimer(d)
				case rng.IntN(3) == 0:
					x.Stop()
					mine[k] = nil
				default:
					x.Reset(d)
				}
			}
			for k, x := range mine {
				if x != nil && k%2 == 0 {
					x.Stop()
				}
			}
		})
	}
	wg.Wait()
	close(stop)
	writers.Wait()
	closes(t, s)
	suite.Eventually(t, "the profile is empty", func() bool { return samples() == 0 })
}

// TestProfileServed fetches the profile as users do, and reads it with Go's own
// tool.
func TestProfileServed(t *testing.T) {
	profiled(t, 1)
	s := mustNew(t, nil)
	ts := append(makesCallbacks(s, 7), makesChannels(s, 3)...)
	resp := httptest.NewRecorder()
	http.DefaultServeMux.ServeHTTP(resp, httptest.NewRequest("GET", "/debug/pprof/detent.timer", nil))
	if resp.Code != http.StatusOK {
		t.Fatal(resp.Code, resp.Body)
	}
	for _, x := range ts {
		x.Stop()
	}
	file := filepath.Join(t.TempDir(), "profile")
	if err := os.WriteFile(file, resp.Body.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("go", "tool", "pprof", "-top", file).Output()
	if err != nil {
		t.Skipf("go tool pprof: %v", err)
	}
	for _, want := range []string{`\b7 70.00% .*timer_test\.makesCallbacks`, `\b3 30.00% .*timer_test\.makesChannels`, `Type: detent.timer`} {
		if !regexp.MustCompile(want).Match(out) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
}

// BenchmarkProfile is what a timer costs that is in the profile: to be started and
// stopped.
func BenchmarkProfile(b *testing.B) {
	s := mustNew(b, nil)
	for _, n := range []int{0, 1, 100} {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			profiled(b, n)
			b.ReportAllocs()
			for b.Loop() {
				s.AfterFunc(time.Minute, func() {}).Stop()
			}
		})
	}
}
