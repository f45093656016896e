package wheel

const (
	nearBits  = 8 // ring 0
	farBits   = 6 // each of the others
	rings     = 5
	nearSlots = 1 << nearBits
	farSlots  = 1 << farBits
	reach     = 1 << (nearBits + (rings-1)*farBits) // in ticks
)

// list is a ring of nodes, of which one is no timer.
type list struct{ head node }

func (l *list) init() { l.head.next, l.head.prev = &l.head, &l.head }

// first returns the first node, or nil.
func (l *list) first() *node {
	if n := l.head.next; n != &l.head {
		return n
	}
	return nil
}

func (l *list) push(n *node) {
	n.prev, n.next = l.head.prev, &l.head
	n.prev.next, n.next.prev = n, n
}

// take makes l hold what from held, and empties from.
func (l *list) take(from *list) {
	l.init()
	if from.first() == nil {
		return
	}
	l.head.next, l.head.prev = from.head.next, from.head.prev
	l.head.next.prev, l.head.prev.next = &l.head, &l.head
	from.init()
}

func (n *node) unlink() {
	n.prev.next, n.next.prev = n.next, n.prev
	n.next, n.prev = nil, nil
}

func (n *node) linked() bool { return n.next != nil }

// wheel is the data structure. It knows ticks, and no clock.
type wheel struct {
	cur  int64 // the next tick to come up; all before it have
	near [nearSlots]list
	far  [rings - 1][farSlots]list
	n    int // nodes filed
}

func (w *wheel) init(now int64) {
	w.cur = now
	for i := range w.near {
		w.near[i].init()
	}
	for r := range w.far {
		for i := range w.far[r] {
			w.far[r][i].init()
		}
	}
}

// file files a node that is not filed, for its tick. What should have come up
// already comes up next.
func (w *wheel) file(n *node) {
	w.n++
	w.slot(n.tick).push(n)
}

func (w *wheel) slot(tick int64) *list {
	tick = max(tick, w.cur)
	distance := tick - w.cur
	if distance < nearSlots {
		return &w.near[tick%nearSlots]
	}
	if distance >= reach {
		distance, tick = reach-1, w.cur+reach-1
	}
	shift := nearBits
	for r := range w.far {
		if distance < 1<<(shift+farBits) {
			return &w.far[r][tick>>shift%farSlots]
		}
		shift += farBits
	}
	panic("unreachable")
}

// remove takes out a node that is filed.
func (w *wheel) remove(n *node) {
	w.n--
	n.unlink()
}

// turn moves on by a tick, and hands over what comes up with it: the nodes are
// filed still, until they are removed from due.
func (w *wheel) turn(due *list) {
	if w.cur%nearSlots == 0 {
		w.cascade()
	}
	due.take(&w.near[w.cur%nearSlots])
	w.cur++
}

// cascade files anew, nearer, the slots whose time has come: one of ring 1, and
// one of the next ring as well whenever a ring has come to its beginning.
func (w *wheel) cascade() {
	shift := nearBits
	for r := range w.far {
		i := w.cur >> shift % farSlots
		var old list
		old.take(&w.far[r][i])
		for n := old.first(); n != nil; n = old.first() {
			n.unlink()
			w.slot(n.tick).push(n)
		}
		if i != 0 {
			return
		}
		shift += farBits
	}
}

// clear removes all nodes but those that turn has handed over.
func (w *wheel) clear() {
	for i := range w.near {
		w.clearSlot(&w.near[i])
	}
	for r := range w.far {
		for i := range w.far[r] {
			w.clearSlot(&w.far[r][i])
		}
	}
}

func (w *wheel) clearSlot(l *list) {
	for n := l.first(); n != nil; n = l.first() {
		w.remove(n)
	}
}
