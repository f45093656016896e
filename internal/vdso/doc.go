// Package vdso calls the kernel's clock_gettime in the vDSO, the code that
// Linux maps into every process so that reading a clock needs no system call,
// from Go, without cgo.
//
// [Find] looks the function up, once; [Now] calls it; [Syscall] is the system
// call for processes that have no vDSO. Where there is none to be had (other
// systems and architectures, the build tag detent_portable) Find says so and
// Now always reports false.
//
// # Ground rules
//
// The vDSO is C code that runs on the goroutine's own stack. That is safe for
// four reasons, and each of them is an obligation of the assembly:
//
//   - Stack. The assembly's frame is the function's stack, and the frame's size
//     is checked by the ordinary prologue. The stack cannot move during the
//     call: only the goroutine itself grows it, at a prologue.
//   - Preemption. A goroutine is preempted asynchronously only at instructions
//     that the runtime knows to be safe. In assembly there are none, and in the
//     vDSO there is no Go code at all.
//   - Profiling. A SIGPROF in the vDSO finds an address outside of Go code, which
//     the runtime books under runtime._VDSO, without a caller.
//   - Signals need the goroutine's g. On amd64 the handler has it from thread
//     local storage. On arm64 without cgo it takes it from a slot at the bottom
//     of the thread's signal stack whenever the signal arrived inside the vDSO,
//     and the caller of the vDSO must have put it there: see signal_arm64.go.
//
// The vDSO itself makes the system call when the clock's source has no vDSO
// mode, and for the clock ids that it does not serve. That is its own affair:
// Now still reports true, and only the time that a call takes tells.
package vdso
