package engines_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/detent-go/detent/lab/engine"
	"github.com/detent-go/detent/lab/engines"
)

func each(b *testing.B, f func(b *testing.B, e engine.Engine)) {
	for _, info := range engines.All() {
		b.Run(info.Name, func(b *testing.B) {
			e, err := info.New(0)
			if errors.Is(err, errors.ErrUnsupported) {
				b.Skip(err)
			}
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			f(b, e)
			b.StopTimer()
			if err := e.Close(); err != nil {
				b.Error(err)
			}
		})
	}
}

// BenchmarkStartStop starts a timer of an hour and stops it, with some pending.
func BenchmarkStartStop(b *testing.B) {
	for _, pending := range []int{0, 100_000} {
		b.Run(fmt.Sprintf("pending=%d", pending), func(b *testing.B) {
			each(b, func(b *testing.B, e engine.Engine) {
				for i := range pending {
					e.AfterFunc(time.Hour+time.Duration(i)*time.Microsecond, func() {})
				}
				b.ResetTimer()
				b.RunParallel(func(pb *testing.PB) {
					for pb.Next() {
						e.AfterFunc(time.Hour, func() {}).Stop()
					}
				})
			})
		})
	}
}

// BenchmarkSleep sleeps for a microsecond: what a wake-up costs.
func BenchmarkSleep(b *testing.B) {
	each(b, func(b *testing.B, e engine.Engine) {
		for b.Loop() {
			e.Sleep(time.Microsecond)
		}
	})
}
