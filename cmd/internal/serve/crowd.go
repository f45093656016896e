package serve

import (
	"net"
	"net/http"
	"sync"
	"time"
)

// maxConns is how many connections are kept at a time.
const maxConns = 256

// A crowd keeps the connections of a server at maxConns: where one more comes,
// another has to go. That is one of the address that has most, lest whoever holds
// many keep out the others; of those one that nothing is asked on, if there is one;
// and the one that has been so for longest. The newcomer is always served.
type crowd struct {
	mu      sync.Mutex
	members map[net.Conn]*member
}

type member struct {
	from  string // the address without the port
	state http.ConnState
	since time.Time // it is in that state
}

func newCrowd() *crowd { return &crowd{members: map[net.Conn]*member{}} }

// changed is http.Server.ConnState.
func (c *crowd) changed(conn net.Conn, state http.ConnState) {
	if out := c.enter(conn, state, time.Now()); out != nil {
		_ = out.Close() // Its goroutine finds that out and ends.
	}
}

// enter takes over a state, and returns the connection that has to go, or nil.
func (c *crowd) enter(conn net.Conn, state http.ConnState, now time.Time) net.Conn {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch state {
	case http.StateClosed, http.StateHijacked:
		delete(c.members, conn)
		return nil
	case http.StateNew:
		c.members[conn] = &member{from: host(conn.RemoteAddr())}
	}
	m := c.members[conn]
	if m == nil {
		return nil // It has to go already.
	}
	m.state, m.since = state, now
	if state != http.StateNew || len(c.members) <= maxConns {
		return nil
	}
	out := c.worstLocked(conn)
	delete(c.members, out)
	return out
}

// worstLocked returns which connection has to go; not the newcomer.
func (c *crowd) worstLocked(newcomer net.Conn) (worst net.Conn) {
	held := map[string]int{}
	for _, m := range c.members {
		held[m.from]++
	}
	// less says whether a has to go before b.
	less := func(a, b *member) bool {
		if held[a.from] != held[b.from] {
			return held[a.from] > held[b.from]
		}
		if waits(a) != waits(b) {
			return waits(a)
		}
		return a.since.Before(b.since)
	}
	for conn, m := range c.members {
		if conn != newcomer && (worst == nil || less(m, c.members[worst])) {
			worst = conn
		}
	}
	return worst
}

// waits says that nothing is asked on a connection, or not yet all of it.
func waits(m *member) bool { return m.state != http.StateActive }

func host(a net.Addr) string {
	if h, _, err := net.SplitHostPort(a.String()); err == nil {
		return h
	}
	return a.String()
}
