package probe

// Checks returns every check, in the order in which a run makes them: first those
// that read files, then those that measure.
func Checks() []Check {
	return []Check{
		platformCheck,
		clocksourceCheck,
		tscCheck,
		frequencyCheck,
		idleCheck,
		tickCheck,
		schedulerCheck,
		processCheck,
		shiftsCheck,
		quotaCheck,
		devicesCheck,
		logCheck,
		disciplineCheck,
		runtimeCheck,
		contentionCheck,
		clocksCheck,
		counterCheck,
		stepsCheck,
		sleepCheck,
		pausesCheck,
	}
}
