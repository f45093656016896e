package hostfs

import (
	"fmt"
	"slices"
	"testing"
	"testing/fstest"
)

// bigMachine is a tree of two sockets with 64 cores of two threads each, in four
// NUMA nodes a socket, numbered as Linux numbers an EPYC: first one thread of every
// core, then the other.
func bigMachine() fstest.MapFS {
	const cores, perNode = 128, 16
	tree := fstest.MapFS{}
	for cpu := range 2 * cores {
		core := cpu % cores
		dir := fmt.Sprintf("%s/cpu%d/topology/", cpuDir, cpu)
		tree[dir+"thread_siblings_list"] = &fstest.MapFile{Data: fmt.Appendf(nil, "%d,%d\n", core, core+cores)}
		tree[dir+"core_id"] = &fstest.MapFile{Data: fmt.Appendf(nil, "%d\n", core%64)}
		tree[dir+"physical_package_id"] = &fstest.MapFile{Data: fmt.Appendf(nil, "%d\n", core/64)}
	}
	for node := range cores / perNode {
		low := node * perNode
		list := fmt.Sprintf("%d-%d,%d-%d\n", low, low+perNode-1, low+cores, low+cores+perNode-1)
		tree[fmt.Sprintf("%s/node%d/cpulist", nodeDir, node)] = &fstest.MapFile{Data: []byte(list)}
	}
	tree[nodeDir+"/possible"] = &fstest.MapFile{Data: []byte("0-7\n")}
	return tree
}

func TestTopology(t *testing.T) {
	for _, test := range []struct {
		name string
		root fstest.MapFS
		cpus []int
		want []Place
	}{
		{"big", bigMachine(), []int{0, 128, 17, 200, 255}, []Place{
			{0, 0, 0, 0}, {128, 0, 0, 0}, {17, 17, 1, 0}, {200, 72, 4, 1}, {255, 127, 7, 1},
		}},
		{"one thread a core, no NUMA", fstest.MapFS{
			cpuDir + "/cpu1/topology/core_cpus_list":      {Data: []byte("1\n")},
			cpuDir + "/cpu1/topology/physical_package_id": {Data: []byte("0\n")},
		}, []int{1}, []Place{{1, 1, -1, 0}}},
		{"arm64 without tables", fstest.MapFS{
			cpuDir + "/cpu0/topology/core_siblings_list":  {Data: []byte("0\n")},
			cpuDir + "/cpu0/topology/physical_package_id": {Data: []byte("-1\n")},
			nodeDir + "/node0/cpulist":                    {Data: []byte("\n")},
		}, []int{0}, []Place{{0, -1, -1, -1}}},
		{"nonsense", fstest.MapFS{
			cpuDir + "/cpu0/topology/thread_siblings_list": {Data: []byte("all\n")},
			nodeDir + "/nodeX/cpulist":                     {Data: []byte("0\n")},
		}, []int{0}, []Place{{0, -1, -1, -1}}},
		{"nothing", fstest.MapFS{}, []int{3}, []Place{{3, -1, -1, -1}}},
	} {
		if got := Topology(test.root, test.cpus); !slices.Equal(got, test.want) {
			t.Errorf("%s: %v, want %v", test.name, got, test.want)
		}
	}
}
