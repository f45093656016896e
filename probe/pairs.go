package probe

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/detent-go/detent/internal/hostfs"
)

// A Relation is how near two CPUs are to each other.
type Relation string

const (
	SameCore    Relation = "threads of a core"
	SameNode    Relation = "cores of a node" // or of the machine, where it has no NUMA nodes
	SameSocket  Relation = "nodes of a socket"
	OtherSocket Relation = "sockets"
)

// relations are in the order of distance.
var relations = []Relation{SameCore, SameNode, SameSocket, OtherSocket}

// relationOf takes what is not known for the same.
func relationOf(a, b hostfs.Place) Relation {
	switch {
	case a.Socket != b.Socket:
		return OtherSocket
	case a.Node != b.Node:
		return SameSocket
	case a.Core == b.Core && a.Core >= 0:
		return SameCore
	}
	return SameNode
}

// A pair is two CPUs, by their indices in a list of places.
type pair struct{ from, to int }

// planPairs chooses which CPUs are compared, at most so many pairs, those first
// that tell most: the first CPU with every other, then samples of the rest, from
// each relation equally many. It says what it has chosen.
func planPairs(places []hostfs.Place, most int) (chosen []pair, plan string) {
	n := len(places)
	if n < 2 {
		return nil, "there is one CPU only"
	}
	for i := 1; i < n; i++ {
		chosen = append(chosen, pair{0, i})
	}
	rest := map[Relation][]pair{}
	for i := 1; i < n; i++ {
		for j := i + 1; j < n; j++ {
			r := relationOf(places[i], places[j])
			rest[r] = append(rest[r], pair{i, j})
		}
	}
	// The seed is fixed: what is compared does not change from run to run.
	rnd := rand.New(rand.NewPCG(uint64(n), 0))
	all := n * (n - 1) / 2
	first := places[0].CPU
	if n-1 > most {
		rnd.Shuffle(len(chosen), func(i, j int) { chosen[i], chosen[j] = chosen[j], chosen[i] })
		chosen = chosen[:max(most, 1)]
		return chosen, fmt.Sprintf("CPU %d with %d of the %d others, sampled", first, len(chosen), n-1)
	}
	for _, r := range relations {
		pairs := rest[r]
		rnd.Shuffle(len(pairs), func(i, j int) { pairs[i], pairs[j] = pairs[j], pairs[i] })
	}
	for more := true; more && len(chosen) < most; {
		more = false
		for _, r := range relations {
			if len(rest[r]) > 0 && len(chosen) < most {
				chosen = append(chosen, rest[r][0])
				rest[r] = rest[r][1:]
				more = true
			}
		}
	}
	switch {
	case len(chosen) == all && n == 2:
		return chosen, "the two CPUs"
	case len(chosen) == all:
		return chosen, fmt.Sprintf("all %d pairs of %d CPUs", all, n)
	case len(chosen) == n-1:
		return chosen, fmt.Sprintf("CPU %d with each of the %d others", first, n-1)
	}
	return chosen, fmt.Sprintf("CPU %d with each of the %d others, and %d of the %d other pairs, sampled evenly by distance",
		first, n-1, len(chosen)-(n-1), all-(n-1))
}

// placesOf returns those of the pairs of CPUs that the process may use.
func placesOf(e *Env, cpus []int) []hostfs.Place {
	places := hostfs.Topology(e.Root, cpus)
	slices.SortFunc(places, func(a, b hostfs.Place) int { return a.CPU - b.CPU })
	return places
}
