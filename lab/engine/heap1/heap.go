package heap1

// heap is a binary heap in the order of deadlines: no node is due before the one
// at half its index. Each node knows its index, so that it can be taken out.
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
		parent := (i - 1) / 2
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
		child := 2*i + 1
		if child >= len(h) {
			break
		}
		if right := child + 1; right < len(h) && h[right].when < h[child].when {
			child = right
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
