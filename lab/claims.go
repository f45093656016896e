package lab

import (
	"fmt"
	"time"
)

// A Claim is what an article says, and what became of it here.
type Claim struct {
	ID      string  `json:"id"`
	Says    string  `json:"says"`
	Verdict Verdict `json:"verdict"`
	// Because says by which figures of this run; or what a test would need.
	Because string `json:"because"`
}

// A Verdict is what became of a claim.
type Verdict string

// The verdicts. NotRun is of a claim whose experiment was not part of the run, or
// could not be made.
const (
	Confirmed   Verdict = "confirmed"
	Refuted     Verdict = "refuted"
	NotTestable Verdict = "not testable here"
	NotRun      Verdict = "not run"
)

// claim is one with the rule that decides it.
type claim struct {
	id, says string
	decide   func(r *Report) (Verdict, string)
}

// judge decides all claims by the figures of a report.
func judge(r *Report) []Claim {
	var list []Claim
	for _, c := range claims {
		v, because := c.decide(r)
		list = append(list, Claim{c.id, c.says, v, because})
	}
	return list
}

// need returns what was measured, or the verdict of a claim that needs it.
func need(r *Report, experiment, what, who, in string) (float64, string, bool) {
	v, ok := r.result(experiment).here(what, who, in)
	if !ok {
		return 0, fmt.Sprintf("needs the experiment %q with %s of %s", experiment, what, who), false
	}
	return v, "", true
}

func verdict(holds bool) Verdict {
	if holds {
		return Confirmed
	}
	return Refuted
}

func notTestable(why string) func(*Report) (Verdict, string) {
	return func(*Report) (Verdict, string) { return NotTestable, why }
}

// ns formats nanoseconds.
func ns(v float64) string {
	if v < 100 {
		return fmt.Sprintf("%.1f ns", v)
	}
	return time.Duration(v).Round(100 * time.Nanosecond).String()
}

// lessThan decides by two figures, in nanoseconds: the first is less than so many
// times the second.
func lessThan(experiment, what, in, less, more string, times float64) func(*Report) (Verdict, string) {
	return func(r *Report) (Verdict, string) {
		a, why, ok := need(r, experiment, what, less, in)
		if !ok {
			return NotRun, why
		}
		b, why, ok := need(r, experiment, what, more, in)
		if !ok {
			return NotRun, why
		}
		return verdict(a < times*b), fmt.Sprintf("%s, %s: %s %s, %s %s", what, in, less, ns(a), more, ns(b))
	}
}

// steps decides whether a clock was seen to step back by any method.
func stepsBack(r *Report, clock string) (back, readings float64, ok bool) {
	x := r.result("steps")
	if x == nil {
		return 0, 0, false
	}
	for _, f := range x.Figures {
		if f.Who != clock || f.Here == nil {
			continue
		}
		switch f.What {
		case "steps back in a million":
			n, _ := x.here("readings", clock, f.Case)
			back += *f.Here * n / 1e6
		case "readings":
			readings += *f.Here
			ok = true
		}
	}
	return back, readings, ok
}

// relation returns the offset bound of CPUs so related, if there are any.
func relation(r *Report, names ...string) (bound float64, who string, ok bool) {
	x := r.result("offsets")
	if x == nil {
		return 0, "", false
	}
	for _, f := range x.Figures {
		for _, name := range names {
			if f.What == "offset bound" && f.Who == name && f.Here != nil {
				return *f.Here, f.Who, true
			}
		}
	}
	return 0, "", false
}
