package peers

import (
	"time"

	russellluo "github.com/RussellLuo/timingwheel"
	antlabs "github.com/antlabs/timer"
)

// russellLuo is RussellLuo/timingwheel, with a tick of 1 ms and 20 slots: the
// hierarchical wheel of Kafka, whose slots wait in a delay queue, so that nothing
// ticks while nothing is due.
type russellLuo struct{ tw *russellluo.TimingWheel }

func newRussellLuo() library {
	tw := russellluo.NewTimingWheel(time.Millisecond, 20)
	tw.Start()
	return russellLuo{tw}
}

func (l russellLuo) afterFunc(d time.Duration, f func()) func() bool {
	return l.tw.AfterFunc(d, f).Stop
}

func (l russellLuo) close() { l.tw.Stop() }

// antLabs is antlabs/timer with its wheel: five rings, as Linux had until 4.8, a lock
// a slot, and a tick of 10 ms.
type antLabs struct{ t antlabs.Timer }

func newAntLabs() library {
	t := antlabs.NewTimer(antlabs.WithTimeWheel())
	go t.Run()
	return antLabs{t}
}

func (l antLabs) afterFunc(d time.Duration, f func()) func() bool { return l.t.AfterFunc(d, f).Stop }

func (l antLabs) close() { l.t.Stop() }
