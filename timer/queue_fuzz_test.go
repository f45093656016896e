package timer

import "testing"

// FuzzQueue runs scripts of operations on a queue and on the model of it. The
// first byte picks the slack, the second whether the queue is polled; the rest
// is the script. The corpus is in testdata/fuzz/FuzzQueue.
func FuzzQueue(f *testing.F) {
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) < 2 || len(data) > 3000 {
			return
		}
		m := newQueueModel(t, modelSlacks[int(data[0])%len(modelSlacks)], 1, data[1]%2 == 1)
		m.run(data[2:])
		m.finish()
	})
}
