//go:build amd64 || arm64

package trace

import "time"

// withDefaults fills in what 0 stands for.
func (o *Options) withDefaults() Options {
	var c Options
	if o != nil {
		c = *o
		c.PIDs = append([]int(nil), o.PIDs...)
	}
	if c.Features == 0 {
		c.Features = DefaultFeatures
	}
	if c.Interval <= 0 {
		c.Interval = time.Second
	}
	if c.MaxProcesses <= 0 {
		c.MaxProcesses = 1024
	}
	if c.ProfileHz <= 0 {
		c.ProfileHz = 99
	}
	return c
}

// everyone says that no process is left out.
func (o *Options) everyone() bool { return len(o.PIDs) == 0 && o.Cgroup == "" }

// The numbers of the system calls that sleep, by architecture.
var sleepingCalls = map[string]map[uint32]TimerKind{
	"amd64": {
		35: KindNanosleep, 230: KindNanosleep,
		232: KindEpoll, 281: KindEpoll, 441: KindEpoll,
		7: KindPoll, 271: KindPoll, 23: KindPoll, 270: KindPoll,
		202: KindFutex, 449: KindFutex, 455: KindFutex,
	},
	"arm64": {
		101: KindNanosleep, 115: KindNanosleep,
		22: KindEpoll, 441: KindEpoll,
		73: KindPoll, 72: KindPoll,
		98: KindFutex, 449: KindFutex, 455: KindFutex,
	},
}
