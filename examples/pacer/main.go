// Command pacer sends UDP packets over the loopback interface at a steady rate, and
// says how steady it was at the receiver: with package time, and with detent.
//
//	go run ./pacer
//	go run ./pacer -rate 5000 -for 10s
//
// A pacer computes each deadline from the last deadline, never from when it woke:
// what it is late by once does not add up. With package time it catches up in bursts,
// because it wakes a millisecond late; that is what fills queues on the way.
package main

import (
	"flag"
	"fmt"
	"net"
	"os"
	"time"

	"github.com/detent-go/detent/examples/internal/quantiles"
	"github.com/detent-go/detent/timer"
)

func main() {
	rate := flag.Int("rate", 20_000, "packets a second")
	length := flag.Duration("for", 2*time.Second, "how long to send with each engine")
	flag.Parse()
	if *rate < 1 || *rate > 1_000_000 || *length <= 0 {
		fmt.Fprintln(os.Stderr, "pacer: -rate has to be 1 to 1000000, and -for positive")
		os.Exit(2)
	}
	for _, engine := range []struct {
		name  string
		until func(time.Time)
	}{
		{"package time", func(t time.Time) { time.Sleep(time.Until(t)) }},
		{"detent", timer.SleepUntil},
		{"detent, spinning the rest", timer.Default().WithSpin().SleepUntil},
	} {
		r, err := send(*rate, *length, engine.until)
		if err != nil {
			fmt.Fprintln(os.Stderr, "pacer:", err)
			os.Exit(1)
		}
		fmt.Printf("%-26s %.0f packets a second, %d lost; gap between arrivals: %s\n", engine.name+":", r.rate, r.lost, quantiles.Of(r.gaps))
	}
}

// result is what the receiver has seen.
type result struct {
	rate float64
	lost int
	gaps []time.Duration
}

// send paces packets of 64 bytes with the given function, which waits until a time.
func send(rate int, length time.Duration, until func(time.Time)) (result, error) {
	to, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		return result{}, err
	}
	defer to.Close()
	if err := to.SetReadBuffer(1 << 20); err != nil {
		return result{}, err
	}
	from, err := net.DialUDP("udp", nil, to.LocalAddr().(*net.UDPAddr))
	if err != nil {
		return result{}, err
	}
	defer from.Close()

	arrivals := make(chan []time.Time)
	go func() {
		var times []time.Time
		var packet [64]byte
		for {
			n, err := to.Read(packet[:])
			if err != nil || n == 1 { // closed, or the last one
				arrivals <- times
				return
			}
			times = append(times, time.Now())
		}
	}()

	var packet [64]byte
	gap := time.Second / time.Duration(rate)
	sent := 0
	begin := time.Now()
	for next := begin; next.Sub(begin) < length; next = next.Add(gap) {
		until(next)
		if _, err := from.Write(packet[:]); err != nil {
			return result{}, err
		}
		sent++
	}
	took := time.Since(begin)
	if _, err := from.Write(packet[:1]); err != nil {
		return result{}, err
	}
	// The mark may be lost like any other packet.
	if err := to.SetReadDeadline(time.Now().Add(time.Second)); err != nil {
		return result{}, err
	}
	times := <-arrivals
	r := result{rate: float64(sent) / took.Seconds(), lost: sent - len(times)}
	for i := 1; i < len(times); i++ {
		r.gaps = append(r.gaps, times[i].Sub(times[i-1]))
	}
	return r, nil
}
