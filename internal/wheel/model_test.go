package wheel

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"
)

// script is a sequence of operations in bytes, for the fuzzer as well as for
// the random test. After its end all bytes are 0.
type script []byte

func (s *script) byte() int64 {
	if len(*s) == 0 {
		return 0
	}
	b := (*s)[0]
	*s = (*s)[1:]
	return int64(b)
}

func (s *script) word() int64 { return s.byte()<<8 | s.byte() }

// entry is a timer in the model.
type entry struct {
	tick int64
	i    uint32
}

// run is a wheel next to the model, a slice in order of tick.
type run struct {
	*bench
	in    script
	order []entry
}

const mostTimers = 1000

// tick takes a tick from the script: near, at borders of slots and levels, years
// ahead, that of another timer, or one that has passed.
func (r *run) tick() int64 {
	var t int64
	switch kind := r.in.byte(); kind % 8 {
	case 0:
		t = r.now + r.in.byte()
	case 1:
		t = r.now + r.in.word()
	case 2, 3: // a border of level kind/8, counted from now
		shift := digitBits * (kind / 8 % Levels)
		t = (r.now>>shift+1+r.in.byte()%66)<<shift + r.in.byte()%3 - 1
	case 4: // a distance of any magnitude
		t = r.now + (r.in.word()<<16|r.in.word())<<(kind/8)
	case 5: // one that has passed, or nearly
		t = r.now - r.in.byte() + 1
	case 6: // next to another timer
		if len(r.order) > 0 {
			t = r.order[r.in.word()%int64(len(r.order))].tick + r.in.byte()%3 - 1
		}
	case 7:
		t = MaxTick - r.in.byte()
	}
	return max(0, min(t, MaxTick))
}

func (r *run) add() {
	if len(r.order) >= mostTimers {
		return
	}
	tick := r.tick()
	how := r.in.byte()
	now := r.now
	if how&1 != 0 {
		now = max(0, now-how) // read before others moved the wheel on
	}
	r.put(r.insertAt(tick, now, how&2 != 0), tick)
}

func compare(a, b entry) int {
	return cmp.Or(cmp.Compare(a.tick, b.tick), cmp.Compare(a.i, b.i))
}

func (r *run) put(i uint32, tick int64) {
	at, _ := slices.BinarySearchFunc(r.order, entry{tick, i}, compare)
	r.order = slices.Insert(r.order, at, entry{tick, i})
}

// find returns where node i stands in the model.
func (r *run) find(i uint32) int {
	at, ok := slices.BinarySearchFunc(r.order, entry{r.live[i].tick, i}, compare)
	if !ok {
		r.t.Fatalf("node %d is not in the model", i)
	}
	return at
}

func (r *run) drop(at int) {
	r.remove(r.order[at].i)
	r.order = slices.Delete(r.order, at, at+1)
}

// due calls Due until it finds nothing, or the script has had enough; others
// have their turn in between.
func (r *run) due(now int64) {
	now = min(now, MaxTick)
	how := r.in.byte()
	calls := 0
	for {
		if calls++; calls > 4*(Levels+1)*(mostTimers+1) {
			r.t.Fatalf("no end of Due at tick %d", now)
		}
		i, state := r.step(now)
		if state == None {
			if len(r.order) > 0 && r.order[0].tick <= now {
				r.t.Fatalf("at tick %d none is due, the model has %+v", now, r.order[0])
			}
			if next, _, ok := r.w.Next(); ok && next <= now {
				r.t.Fatalf("nothing was due at tick %d, and Next is %d", now, next)
			}
			return
		}
		if state == Due {
			at := r.find(i)
			if tick := now + 1 + how; how&7 == 7 && tick <= MaxTick { // pushed back: filed anew
				n := r.s.Node(i)
				r.w.Remove(n)
				n.Tick = tick
				r.w.Insert(i, n, now, false)
				r.live[i] = pending{tick, false}
				r.order = slices.Delete(r.order, at, at+1)
				r.put(i, tick)
			} else {
				r.drop(at)
			}
		}
		if how&0x10 != 0 && len(r.in) > 0 {
			r.op(false)
		}
		if how&0x80 != 0 && r.in.byte() == 1 {
			return // the owner has lost interest; what is due stays so
		}
	}
}

func (r *run) op(outer bool) {
	switch op := r.in.byte() % 16; {
	case op < 7:
		r.add()
	case op < 10:
		if len(r.order) > 0 {
			r.drop(int(r.in.word()) % len(r.order))
		}
	case op == 10: // a crowd, about one tick or all over a slot
		tick, spread := r.tick(), int64(1)<<(r.in.byte()%20)
		for k := range min(r.in.byte()*2, int64(mostTimers-len(r.order))) {
			t := min(tick+k*7919%spread, MaxTick)
			r.put(r.insert(t), t)
		}
	case op == 11:
		r.checkNext()
	case !outer:
	case op == 12:
		if next, _, ok := r.w.Next(); ok {
			r.due(max(r.now, next+r.in.byte()%3-1))
		}
	default:
		r.due(max(r.now, r.tick()))
	}
}

// play runs a script, and at the end everything that is left.
func play(t testing.TB, data []byte) {
	in := script(data)
	start := in.word() << (in.byte() % 32)
	r := &run{bench: newBench(t, start), in: in}
	for ops := 0; len(r.in) > 0; ops++ {
		r.op(true)
		if len(r.order) < 200 || ops%32 == 0 {
			checkInvariants(t, r.w, r.live)
			r.checkNext()
		}
	}
	for wakes := 0; len(r.order) > 0; wakes++ {
		if wakes > (Levels+2)*mostTimers {
			t.Fatalf("%d wake-ups, and %d timers left", wakes, len(r.order))
		}
		r.checkNext()
		next, _, _ := r.w.Next()
		r.due(max(r.now, next))
	}
	checkInvariants(t, r.w, r.live)
}

func TestModel(t *testing.T) {
	seed := seed(t)
	scripts := 120
	if testing.Short() {
		scripts = 40
	}
	for k := range scripts {
		rng := rand.New(rand.NewPCG(seed, uint64(k)))
		data := make([]byte, 1<<(6+k%7))
		for i := range data {
			data[i] = byte(rng.Uint32())
		}
		play(t, data)
	}
}

func FuzzWheel(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte{0, 0, 0, 0, 2, 63, 0, 0, 0, 10, 64, 1, 0, 12, 1, 0})
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 4096 {
			t.Skip("long scripts are the random test's")
		}
		play(t, data)
	})
}
