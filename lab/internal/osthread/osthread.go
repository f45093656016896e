// Package osthread gives engines threads of their own.
package osthread

import "runtime"

// Go calls f on a goroutine that is locked to a thread, which is named for ps -T,
// perf and the tests (15 bytes at the most). When f returns, the runtime ends
// the thread, so that nobody inherits what f has set for it.
//
// The thread is never the program's first. That one the runtime cannot end: it
// would stay asleep for good.
func Go(name string, f func()) {
	go func() {
		runtime.LockOSThread()
		if isFirst() {
			// As long as this goroutine holds the thread another one gets
			// another thread.
			locked := make(chan struct{})
			go func() {
				runtime.LockOSThread()
				close(locked)
				setName(name)
				f()
			}()
			<-locked
			runtime.UnlockOSThread()
			return
		}
		setName(name)
		f()
	}()
}
