package lab

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"
	"testing/fstest"
)

// TestRoom: the least of what the machine and its control groups leave counts, and
// what the kernel can drop at once is not in use.
func TestRoom(t *testing.T) {
	const gb = 1 << 30
	meminfo := "MemTotal: 99999999 kB\nMemFree: 1 kB\nMemAvailable: 8388608 kB\n"
	for _, c := range []struct {
		name  string
		files map[string]string
		want  float64
		by    string
	}{
		{"nobody tells", nil, math.Inf(1), ""},
		{"no limit", map[string]string{"proc/meminfo": meminfo, "proc/self/cgroup": "0::/a/b\n", "sys/fs/cgroup/a/memory.max": "max\n", "sys/fs/cgroup/a/memory.current": "5\n"}, 8 * gb, "machine"},
		{"version 2, of the group above", map[string]string{
			"proc/meminfo": meminfo, "proc/self/cgroup": "0::/a/b\n",
			"sys/fs/cgroup/a/memory.max": "3221225472\n", "sys/fs/cgroup/a/memory.current": "2147483648\n",
			"sys/fs/cgroup/a/memory.stat": "anon 1\ninactive_file 1073741824\n",
		}, 2 * gb, "/a"},
		{"version 1", map[string]string{
			"proc/meminfo": meminfo, "proc/self/cgroup": "9:cpu:/x\n4:memory:/job\n0::/\n",
			"sys/fs/cgroup/memory/job/memory.limit_in_bytes": "1073741824\n", "sys/fs/cgroup/memory/job/memory.usage_in_bytes": "2147483648\n",
		}, 0, "/job"},
		{"what is no number", map[string]string{"proc/meminfo": "MemAvailable: much kB\n", "proc/self/cgroup": "nonsense\n"}, math.Inf(1), ""},
	} {
		root := fstest.MapFS{}
		for name, text := range c.files {
			root[name] = &fstest.MapFile{Data: []byte(text)}
		}
		if got := roomOf(root); got.bytes != c.want || !strings.Contains(got.by, c.by) {
			t.Errorf("%s: %v %s, want %v by %s", c.name, got.bytes, got.by, c.want, c.by)
		}
	}
}

// TestNoRoom: what does not fit is left out for that reason, and what fits is
// measured.
func TestNoRoom(t *testing.T) {
	p := tiny()
	p.Pending, p.Memory = []int{1000, 400_000}, 4<<20
	r := &Result{}
	if err := runWheel(context.Background(), p, r); err != nil {
		t.Fatal(err)
	}
	small, large := 0, 0
	for _, f := range r.Figures {
		switch f.Case {
		case pendingCase(1000):
			small++
		case pendingCase(400_000):
			large++
		}
	}
	if small == 0 || large != 0 || !strings.Contains(strings.Join(r.Skipped, "\n"), errNoRoom.Error()) {
		t.Errorf("%d figures of 1000, %d of 400000; skipped %q", small, large, r.Skipped)
	}
	if f := (&filling{room: room{bytes: 1}, n: 10, sample: 1}); !errors.Is(f.made(1), errNoRoom) || f.made(2) != nil {
		t.Error("a filling looks once, after its sample")
	}
}
