// Package patient starts programs that have a known fault with time, so that
// what finds faults can be tested on real ones, and a healthy program to be left
// in peace.
//
// A patient is the test's own executable, started anew: the test's TestMain calls
// [Main] first, which plays the patient if this process is to be one.
//
//	func TestMain(m *testing.M) {
//		patient.Main()
//		os.Exit(m.Run())
//	}
//
//	func TestFinds(t *testing.T) {
//		p := patient.Run(t, patient.NoVDSO)
//		... p.PID() ...
//	}
//
// Patients touch nothing but themselves and, for [Throttled], a cgroup of their
// own, which they take away. They keep at most one CPU busy each, and end with the
// test, or with the process that started them however that ends.
package patient

// A Fault is what is the matter with a patient.
type Fault string

// The faults.
const (
	// Healthy is a program that reads the clock and sleeps as programs do.
	Healthy Fault = "healthy"
	// NoVDSO reads the clock a good deal, and found no vDSO in its auxiliary
	// vector: each reading is a system call of the Go runtime.
	NoVDSO Fault = "no-vdso"
	// Direct makes system calls to read the clock, by x/sys/unix.ClockGettime,
	// although it has a vDSO. Its loop is [HotLoop].
	Direct Fault = "direct"
	// Throttled wants two CPUs and more, and its cgroup allows a fifth of one.
	Throttled Fault = "throttled"
	// Saturated has more goroutines that compute than Ps, all the time.
	Saturated Fault = "saturated"
)

// Faults returns all of them, the healthy one first.
func Faults() []Fault { return []Fault{Healthy, NoVDSO, Direct, Throttled, Saturated} }
