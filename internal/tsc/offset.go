package tsc

import "fmt"

// An Exchange is a message from one CPU to another, and the answer: the one's
// counter was Sent before the message left, the other's was Here when it had
// arrived, and the one's was Received when the answer was back.
type Exchange struct{ Sent, Here, Received uint64 }

// An Offset is what is known of how many ticks one CPU's counter is ahead of
// another's: no less than Low and no more than High.
type Offset struct {
	CPU       int // the one; the other is the same for all offsets of a comparison
	Low, High int64
}

// Apart tells whether the counters are out of step for certain: a message was
// seen to arrive before it was sent. Where it is false, the offset is too small
// for anybody to see time step back from one CPU to the other.
func (o Offset) Apart() bool { return o.Low > 0 || o.High < 0 }

// Largest returns the largest distance from zero that the offset may have.
func (o Offset) Largest() int64 { return max(o.High, -o.Low, 0) }

func (o Offset) String() string { return fmt.Sprintf("CPU %d: %d to %d ticks", o.CPU, o.Low, o.High) }

// add narrows the offset by an exchange.
func (o *Offset) add(x Exchange) {
	o.High = min(o.High, int64(x.Here-x.Sent))
	o.Low = max(o.Low, int64(x.Here-x.Received))
}
