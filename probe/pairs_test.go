package probe

import (
	"slices"
	"strings"
	"testing"

	"github.com/detent-go/detent/internal/hostfs"
)

// placesLike lays out CPUs as Linux numbers an EPYC's: first one thread of every
// core, then the other.
func placesLike(sockets, nodes, cores int) []hostfs.Place {
	var places []hostfs.Place
	n := sockets * nodes * cores
	for cpu := range 2 * n {
		core := cpu % n
		places = append(places, hostfs.Place{CPU: cpu, Core: core, Node: core / cores, Socket: core / cores / nodes})
	}
	return places
}

func unknownPlace(cpu int) hostfs.Place {
	return hostfs.Place{CPU: cpu, Core: -1, Node: -1, Socket: -1}
}

func TestPlanPairs(t *testing.T) {
	for _, test := range []struct {
		name   string
		places []hostfs.Place
		most   int
		want   int
		plan   string
	}{
		{"one CPU", placesLike(1, 1, 1)[:1], 100, 0, "one CPU"},
		{"two", placesLike(1, 1, 1), 100, 1, "the two CPUs"},
		{"all", placesLike(1, 1, 4), 28, 28, "all 28 pairs of 8 CPUs"},
		{"one against all", placesLike(1, 1, 4), 7, 7, "CPU 0 with each of the 7 others"},
		{"some of the rest", placesLike(2, 4, 16), 1000, 1000, "CPU 0 with each of the 255 others, and 745 of the 32385 other pairs, sampled evenly by distance"},
		{"not even that", placesLike(2, 4, 16), 100, 100, "CPU 0 with 100 of the 255 others, sampled"},
		{"no time at all", placesLike(1, 1, 4), 0, 1, "CPU 0 with 1 of the 7 others"},
		{"nothing known of the places", []hostfs.Place{unknownPlace(0), unknownPlace(1), unknownPlace(2)}, 100, 3, "all 3 pairs"},
	} {
		t.Run(test.name, func(t *testing.T) {
			pairs, plan := planPairs(test.places, test.most)
			if len(pairs) != test.want || !strings.Contains(plan, test.plan) {
				t.Errorf("%d pairs: %s", len(pairs), plan)
			}
			again, _ := planPairs(test.places, test.most)
			if !slices.Equal(pairs, again) {
				t.Error("another plan the second time")
			}
			seen := map[pair]bool{}
			for _, p := range pairs {
				if p.from >= p.to || seen[p] {
					t.Errorf("pair %v, or twice", p)
				}
				seen[p] = true
			}
		})
	}
}

// The nearest and the farthest are among the samples, not only what there is most of.
func TestPlanPairsEvenly(t *testing.T) {
	places := placesLike(2, 4, 16)
	pairs, _ := planPairs(places, 255+400)
	count := map[Relation]int{}
	for _, p := range pairs[255:] {
		count[relationOf(places[p.from], places[p.to])]++
	}
	for _, r := range relations {
		if count[r] < 90 || count[r] > 110 {
			t.Errorf("%s: %d of 400", r, count[r])
		}
	}
}

func TestRelationOf(t *testing.T) {
	at := func(core, node, socket int) hostfs.Place { return hostfs.Place{Core: core, Node: node, Socket: socket} }
	for _, test := range []struct {
		a, b hostfs.Place
		want Relation
	}{
		{at(0, 0, 0), at(0, 0, 0), SameCore},
		{at(0, 0, 0), at(1, 0, 0), SameNode},
		{at(0, 0, 0), at(1, 1, 0), SameSocket},
		{at(0, 0, 0), at(0, 1, 1), OtherSocket},
		{at(-1, -1, -1), at(-1, -1, -1), SameNode},
		{at(0, -1, 0), at(1, -1, 1), OtherSocket},
	} {
		if got := relationOf(test.a, test.b); got != test.want {
			t.Errorf("%v, %v: %s, want %s", test.a, test.b, got, test.want)
		}
	}
}
