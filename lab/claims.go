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

// A key names one figure of a report.
type key struct{ experiment, what, who, in string }

// needAll returns the figures of all keys, or what is missing: half of what a claim is
// about decides nothing.
func needAll(r *Report, keys ...key) (values []float64, why string, ok bool) {
	for _, k := range keys {
		v, why, ok := need(r, k.experiment, k.what, k.who, k.in)
		if !ok {
			return nil, why, false
		}
		values = append(values, v)
	}
	return values, "", true
}

// undecided is why figures that are too near to each other decide nothing.
const undecided = "not decided within the noise of this run: "

// ns formats nanoseconds.
func ns(v float64) string {
	switch {
	case v < 100:
		return fmt.Sprintf("%.1f ns", v)
	case v < 1000:
		return fmt.Sprintf("%.0f ns", v)
	case v < 1e6:
		return fmt.Sprintf("%.1f µs", v/1e3)
	case v < 1e9:
		return fmt.Sprintf("%.2f ms", v/1e6)
	}
	return time.Duration(v).Round(time.Millisecond).String()
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

// A relation is how far apart the counters of CPUs so related may be.
type relation struct {
	name  string
	bound float64 // in nanoseconds: no pair's offset is greater
	apart float64 // pairs whose bounds exclude zero
}

// related returns the first of the relations that this machine has CPUs of.
func related(r *Report, names ...string) (g relation, ok bool) {
	x := r.result("offsets")
	if x == nil {
		return g, false
	}
	for _, name := range names {
		for _, f := range x.Figures {
			if f.What == "offset bound" && f.Who == name && f.Here != nil {
				apart, _ := x.here("pairs certainly apart", name, f.Case)
				return relation{name, *f.Here, apart}, true
			}
		}
	}
	return g, false
}

// apart decides whether CPUs so related are as far apart as an article says, in
// nanoseconds. A bound is what an offset may be at the most, and grows with the way
// between the CPUs: it refutes, and does not confirm.
func apart(r *Report, says float64, needs string, names ...string) (Verdict, string) {
	if r.result("offsets") == nil {
		return NotRun, `needs the experiment "offsets"`
	}
	g, ok := related(r, names...)
	if !ok {
		return NotTestable, "needs " + needs
	}
	because := fmt.Sprintf("%s: offsets of at most %s, %.0f pairs certainly apart", g.name, ns(g.bound), g.apart)
	switch {
	case g.apart > 0:
		return Confirmed, because
	case g.bound < says:
		return Refuted, because
	}
	return NotTestable, because + ": no smaller offset can be told from none here"
}

// jumpsOf returns how often the counter was seen to jump.
func jumpsOf(r *Report) (float64, bool) {
	if x := r.result("offsets"); x != nil {
		for _, f := range x.Figures {
			if f.What == "jumps" && f.Here != nil {
				return *f.Here, true
			}
		}
	}
	return 0, false
}
