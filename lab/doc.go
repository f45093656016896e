// Package lab runs the experiments of the public articles about Go's timers and
// clocks on this machine, and puts what they printed and what is measured here side
// by side.
//
// Every claim of theirs ends with a verdict: confirmed, refuted, or not testable on
// this machine, with the figures of the same run that say so. Figures of other
// machines are not comparable as such; ratios and orders are, and verdicts rest on
// those.
//
// The engines that are measured are in lab/engine, each in a package that explains
// how it works; [Experiments] lists what there is, and [Run] runs it.
package lab
