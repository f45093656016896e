package lab

// Experiments returns all of them, in the order in which they are best read.
func Experiments() []Experiment {
	return []Experiment{
		timeBenchmarks, contextBenchmarks, timeFunctions, wheelAgainstStandard,
		systemCalls, sleepPrecision, sleeperThreads,
		clockReadings, backwardSteps, counterOffsets,
		poolAgainstLock, preemption, monitor, latenessByLoad,
	}
}
