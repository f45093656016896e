package probe

// Checks returns every check, in the order in which a run makes them: first those
// that read files, then those that measure.
func Checks() []Check {
	return []Check{
		clocksourceCheck,
		clocksCheck,
		counterCheck,
		stepsCheck,
		sleepCheck,
		pausesCheck,
	}
}
