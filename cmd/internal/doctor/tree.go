package doctor

import "github.com/detent-go/detent/probe"

// A cause is a finding with those that it explains, which say because of what they
// are. What is to be done about them begins with the cause.
type cause struct {
	probe.Finding
	Explains []cause
}

// tree puts findings, which are in order, under those that explain them. Each comes
// where the worst of what it explains would stand: a mere fact may be the cause of a
// fault.
func tree(findings []probe.Finding) []cause {
	first := map[string]int{} // of each ID
	for i, f := range findings {
		if _, known := first[f.ID]; !known {
			first[f.ID] = i
		}
	}
	parent := func(i int) (int, bool) {
		p, ok := first[findings[i].Because]
		return p, ok && p != i
	}
	root := func(i int) int {
		at := i
		for range findings {
			p, ok := parent(at)
			if !ok {
				return at
			}
			at = p
		}
		return i // in a circle, or led to one
	}
	var build func(i int) cause
	build = func(i int) cause {
		c := cause{Finding: findings[i]}
		for j := range findings {
			if p, ok := parent(j); ok && p == i && root(j) != j {
				c.Explains = append(c.Explains, build(j))
			}
		}
		return c
	}
	var list []cause
	done := map[int]bool{}
	for i := range findings {
		if r := root(i); !done[r] {
			done[r] = true
			list = append(list, build(r))
		}
	}
	return list
}

// firstOfAll returns the title of what is to be dealt with first: the cause of the
// worst. Where that is less of a fault than what it explains, it says what that is.
func firstOfAll(findings []probe.Finding) string {
	c := tree(findings)[0]
	title := sentence(c.Title)
	if worst := findings[0]; worst.Severity > c.Severity {
		title += " Because of that: " + sentence(worst.Title)
	}
	return title
}
