package lab

// Experiments returns all of them, in the order in which they are best read.
func Experiments() []Experiment {
	return []Experiment{
		timeBenchmarks, contextBenchmarks, timeFunctions, wheelAgainstStandard,
		systemCalls, whoSleeps, sleepPrecision, sleeperThreads,
		clockReadings, rawClock, counterClock, clocksources, backwardSteps, counterOffsets,
		poolAgainstLock, preemption, monitor, latenessByLoad,
	}
}
