package hostfs

import (
	"io/fs"
	"strconv"
	"strings"
)

// A Place is where a CPU is. What the kernel does not tell is -1.
type Place struct {
	CPU    int `json:"cpu"`
	Core   int `json:"core"`   // the lowest CPU of those that share the core with it
	Node   int `json:"node"`   // NUMA
	Socket int `json:"socket"` // physical package
}

const nodeDir = "sys/devices/system/node"

// Topology returns the places of CPUs, in their order. Kernels that know nothing of
// a CPU's place (arm64 without firmware tables, containers without sysfs) leave it
// at -1.
func Topology(root fs.FS, cpus []int) []Place {
	nodes := nodesOf(root)
	places := make([]Place, len(cpus))
	for i, cpu := range cpus {
		p := Place{CPU: cpu, Core: -1, Node: -1, Socket: -1}
		// The older of the two names.
		if siblings, err := CPUs(root, perCPU(cpu, "topology/thread_siblings_list")); err == nil && len(siblings) > 0 {
			p.Core = siblings[0]
		} else if siblings, err := CPUs(root, perCPU(cpu, "topology/core_cpus_list")); err == nil && len(siblings) > 0 {
			p.Core = siblings[0]
		}
		if socket, err := Int(root, perCPU(cpu, "topology/physical_package_id")); err == nil && socket >= 0 {
			p.Socket = int(socket)
		}
		if node, ok := nodes[cpu]; ok {
			p.Node = node
		}
		places[i] = p
	}
	return places
}

// nodesOf returns the NUMA node of each CPU that is in one.
func nodesOf(root fs.FS) map[int]int {
	nodes := map[int]int{}
	entries, err := fs.ReadDir(root, nodeDir)
	if err != nil {
		return nodes
	}
	for _, entry := range entries {
		number, ok := strings.CutPrefix(entry.Name(), "node")
		if !ok {
			continue
		}
		node, err := strconv.Atoi(number)
		if err != nil {
			continue
		}
		cpus, err := CPUs(root, nodeDir+"/"+entry.Name()+"/cpulist")
		if err != nil {
			continue
		}
		for _, cpu := range cpus {
			nodes[cpu] = node
		}
	}
	return nodes
}
