package pool

// arity is the number of children of a node.
const arity = 4

// heap is a 4-ary heap in the order of deadlines. Each node knows its index, so
// that it can be taken out.
type heap []*node

func (h *heap) push(n *node) {
	n.at = len(*h)
	*h = append(*h, n)
	h.up(n.at)
}

// remove takes out the node at index i.
func (h *heap) remove(i int) {
	old := *h
	last := len(old) - 1
	old[i].at = -1
	moved := old[last]
	old[last] = nil
	*h = old[:last]
	if i == last {
		return
	}
	old[i], moved.at = moved, i
	h.up(i)
	h.down(moved.at)
}

func (h heap) up(i int) {
	n := h[i]
	for i > 0 {
		parent := (i - 1) / arity
		if h[parent].when <= n.when {
			break
		}
		h[i] = h[parent]
		h[i].at = i
		i = parent
	}
	h[i] = n
	n.at = i
}

func (h heap) down(i int) {
	n := h[i]
	for {
		first := arity*i + 1
		if first >= len(h) {
			break
		}
		child := first
		for c := first + 1; c < min(first+arity, len(h)); c++ {
			if h[c].when < h[child].when {
				child = c
			}
		}
		if n.when <= h[child].when {
			break
		}
		h[i] = h[child]
		h[i].at = i
		i = child
	}
	h[i] = n
	n.at = i
}
