// A program with goroutines that wait for a P now and then.
package main

import "time"

func main() {
	balls := make(chan int)
	go func() {
		for b := range balls {
			_ = b
		}
	}()
	for i := 0; ; i++ {
		balls <- i
		if i%100 == 0 {
			time.Sleep(time.Millisecond)
		}
	}
}
