package peers

import (
	"time"

	"github.com/detent-go/detent/lab/engine"
)

// Infos describes the engines.
func Infos() []engine.Info {
	const replaced = "the lab replaces the timer by a new one: "
	return []engine.Info{
		info(engine.Info{
			Name:    "russellluo",
			Summary: "RussellLuo/timingwheel: rings of 20 slots of 1 ms and more, in a delay queue",
			Grain:   time.Millisecond,
			Lacks: map[engine.Capability]string{
				engine.NeverEarly:  "772 of 2000 timers of up to 100 ms fired early, by up to 0.9 ms: deadlines are cut down to whole milliseconds of the wall clock",
				engine.AnyDuration: "a timer of 1<<63-1 ns fires at once",
				engine.Resets:      replaced + "the library has no Reset",
			},
		}, func() (library, error) { return newRussellLuo(), nil }),
		info(engine.Info{
			Name:    "antlabs",
			Summary: "antlabs/timer: five rings, a lock a slot, turned every 10 ms",
			Grain:   10 * time.Millisecond,
			Lacks: map[engine.Capability]string{
				engine.NeverEarly:  "868 of 2000 timers of up to 100 ms fired early, by up to 12.6 ms: a deadline is so many ticks from the tick that has begun",
				engine.Results:     "the second Stop says true as well",
				engine.AnyDuration: "a timer of -1 h does not fire",
				engine.AnyTime:     "with timers that are stopped twice, from several goroutines, the wheel comes to a standstill",
				engine.Resets:      replaced + "the library's Reset into the slot where the timer is waits for itself",
			},
		}, func() (library, error) { return newAntLabs(), nil }),
		info(engine.Info{
			Name:    "rfyiamcool",
			Summary: "rfyiamcool/go-timewheel: 360 maps behind one lock, turned every millisecond",
			Grain:   time.Millisecond,
			Lacks: map[engine.Capability]string{
				engine.NeverEarly: "88 of 2000 timers of up to 100 ms fired early, by up to 1.8 ms: a deadline is so many ticks from the tick that has begun; " +
					"ticks that are missed are not made up for, so that a busy machine makes the timers late instead",
				engine.Results: "Stop has no result; the lab says true",
				engine.Resets:  replaced + "the library's Reset does so too, without a lock",
			},
		}, newRfyIamCool),
	}
}

// info completes i for a library.
func info(i engine.Info, open func() (library, error)) engine.Info {
	i.Lacks[engine.Counted] = "the library has no counters"
	i.Lacks = engine.LacksOver(i.Lacks)
	i.New = func(int) (engine.Engine, error) {
		lib, err := open()
		if err != nil {
			return nil, err
		}
		return over(i.Name, lib), nil
	}
	return i
}
