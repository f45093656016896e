package lab

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/detent-go/detent/lab/engine"
)

// What has millions of timers must not have the kernel kill the process, or
// another one: what the first of them take tells what all will take, and that has
// to fit into what is free.

// headroom is by how much the heap grows beyond what is alive: the collector lets it
// double before it collects, and arrays are copied when they grow.
const headroom = 2.5

var errNoRoom = errors.New("too little memory")

// A room is the memory that may still be taken, and who sets the bound.
type room struct {
	bytes float64
	by    string
}

// roomOf is what the machine and the control groups of this process leave, under the
// root of a file system; +Inf where nobody tells.
func roomOf(root fs.FS) room {
	least := room{math.Inf(1), ""}
	if v, ok := memAvailable(root); ok {
		least = room{v, "of the machine's memory"}
	}
	for _, g := range memoryGroups(root) {
		if v, ok := g.left(root); ok && v < least.bytes {
			least = room{v, "by the limit of the control group " + g.name}
		}
	}
	return least
}

// room is what the plan allows, or what there is.
func (p Plan) room() room {
	if p.Memory > 0 {
		return room{float64(p.Memory), "by the plan"}
	}
	return roomOf(os.DirFS("/"))
}

func memAvailable(root fs.FS) (float64, bool) {
	b, err := fs.ReadFile(root, "proc/meminfo")
	if err != nil {
		return 0, false
	}
	for line := range strings.Lines(string(b)) {
		if f := strings.Fields(line); len(f) >= 2 && f[0] == "MemAvailable:" {
			kb, err := strconv.ParseFloat(f[1], 64)
			return kb * 1024, err == nil
		}
	}
	return 0, false
}

// A memoryGroup is a directory of a control group, with the names of its files in
// version 2 or 1.
type memoryGroup struct{ dir, name, limit, used, file string }

// memoryGroups are those that this process is in, with all above them: each may have
// a limit.
func memoryGroups(root fs.FS) (list []memoryGroup) {
	b, err := fs.ReadFile(root, "proc/self/cgroup")
	if err != nil {
		return nil
	}
	for line := range strings.Lines(string(b)) {
		f := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(f) != 3 {
			continue
		}
		var g memoryGroup
		base := ""
		switch {
		case f[0] == "0" && f[1] == "":
			base, g = "sys/fs/cgroup", memoryGroup{limit: "memory.max", used: "memory.current", file: "inactive_file"}
		case f[1] == "memory":
			base, g = "sys/fs/cgroup/memory", memoryGroup{limit: "memory.limit_in_bytes", used: "memory.usage_in_bytes", file: "total_inactive_file"}
		default:
			continue
		}
		for name := path.Clean("/" + f[2]); ; name = path.Dir(name) {
			g.name, g.dir = name, path.Join(base, name)
			list = append(list, g)
			if name == "/" {
				break
			}
		}
	}
	return list
}

// left is the limit less what is in use, but for what the kernel can drop at once;
// false if there is no limit.
func (g memoryGroup) left(root fs.FS) (float64, bool) {
	limit, ok := g.number(root, g.limit)
	if !ok {
		return 0, false
	}
	used, ok := g.number(root, g.used)
	if !ok {
		return 0, false
	}
	if b, err := fs.ReadFile(root, g.dir+"/memory.stat"); err == nil {
		for line := range strings.Lines(string(b)) {
			if f := strings.Fields(line); len(f) == 2 && f[0] == g.file {
				if v, err := strconv.ParseFloat(f[1], 64); err == nil {
					used -= v
				}
			}
		}
	}
	return max(limit-max(used, 0), 0), true
}

// number reads a file; "max" is none.
func (g memoryGroup) number(root fs.FS, file string) (float64, bool) {
	b, err := fs.ReadFile(root, g.dir+"/"+file)
	if err != nil {
		return 0, false
	}
	v, err := strconv.ParseFloat(strings.TrimSpace(string(b)), 64)
	return v, err == nil
}

// A filling watches while many of something are made.
type filling struct {
	room   room
	n      int // to be made
	sample int // after so many it is known what one takes
	before uint64
}

// fill begins a filling of n.
func (p Plan) fill(n int) *filling {
	runtime.GC() // what is dead is not in the way
	return &filling{room: p.room(), n: n, sample: min(n/10, 100_000), before: heapNow()}
}

// made says that i have been made, and returns an error if there is no room for the
// rest.
func (f *filling) made(i int) error {
	if i != f.sample || i == 0 {
		return nil
	}
	now := heapNow()
	each := float64(now-min(f.before, now)) / float64(i)
	if need := each * float64(f.n) * headroom; need > f.room.bytes {
		return fmt.Errorf("%w: %d pending need about %s, and %s are left %s", errNoRoom, f.n, gigabytes(need), gigabytes(f.room.bytes), f.room.by)
	}
	return nil
}

func heapNow() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

func gigabytes(v float64) string {
	if v < 1e9 {
		return fmt.Sprintf("%.0f MB", v/1e6)
	}
	return fmt.Sprintf("%.1f GB", v/1e9)
}

// pendingTimers starts n timers that are due in an hour or more, in no order. It
// returns those that have to be stopped one by one, because Close of the engine does
// not end them.
func (p Plan) pendingTimers(info engine.Info, e engine.Engine, n int, stopped func() bool) (list []engine.Timer, err error) {
	keep := !info.Can(engine.Closes)
	if keep {
		list = make([]engine.Timer, 0, min(n, 1<<20))
	}
	f := p.fill(n)
	for i := range n {
		if i%100_000 == 0 && stopped() {
			return list, nil
		}
		if err := f.made(i); err != nil {
			return list, err
		}
		// Due in 60 to 96 minutes.
		t := e.AfterFunc(time.Hour+time.Duration(uint32(i)*2654435761)*time.Microsecond/2, nop)
		if keep {
			list = append(list, t)
		}
	}
	return list, nil
}
