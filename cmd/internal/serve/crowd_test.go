package serve

import (
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"
)

// someConn is a connection from somewhere.
type someConn struct {
	net.Conn
	from net.Addr
}

func (c *someConn) RemoteAddr() net.Addr { return c.from }

func connFrom(ip string) *someConn {
	return &someConn{from: &net.TCPAddr{IP: net.ParseIP(ip), Port: 1}}
}

// TestCrowd: the newcomer is served; who has to go is of the address with most
// connections, one that nothing is asked on, and the oldest of those.
func TestCrowd(t *testing.T) {
	c, now := newCrowd(), time.Now()
	enter := func(conn net.Conn, s http.ConnState) net.Conn {
		now = now.Add(time.Second)
		return c.enter(conn, s, now)
	}
	quiet := connFrom("10.0.0.1")
	enter(quiet, http.StateNew)
	var many []*someConn
	for range maxConns - 1 {
		conn := connFrom("10.0.0.2")
		many = append(many, conn)
		if out := enter(conn, http.StateNew); out != nil {
			t.Fatal("there is room")
		}
		enter(conn, http.StateActive)
	}
	enter(many[7], http.StateIdle)
	enter(many[5], http.StateIdle)
	for i, want := range []net.Conn{many[7], many[5], many[0], many[1]} {
		if out := enter(connFrom("10.0.0.3"), http.StateNew); out != want {
			t.Fatalf("newcomer %d: another one has to go", i)
		}
	}
	if enter(many[0], http.StateIdle) != nil || len(c.members) != maxConns {
		t.Errorf("one that has gone is back: %d members", len(c.members))
	}
	if c.members[quiet] == nil {
		t.Error("the one that is alone at its address had to go")
	}
	enter(quiet, http.StateClosed)
	if out := enter(connFrom("10.0.0.3"), http.StateNew); out != nil || len(c.members) != maxConns {
		t.Errorf("there was room: %d members", len(c.members))
	}
}

// TestManyConnections: whoever holds all connections keeps out nobody, be it that
// they ask nothing any more, or have not asked to the end, or take no answer.
func TestManyConnections(t *testing.T) {
	for name, ask := range map[string]string{
		"idle": "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n", "half": "GET / HT", "slow": "GET /api/state HTTP/1.1\r\nHost: localhost\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			r := start(t)
			r.probed(t)
			var held []net.Conn
			defer func() {
				for _, c := range held {
					c.Close()
				}
			}()
			for range maxConns + 50 {
				c, err := net.Dial("tcp", strings.TrimPrefix(r.url, "http://"))
				if err != nil {
					t.Fatal(err)
				}
				held = append(held, c)
				if name == "idle" {
					fmt.Fprint(c, ask)
					io.ReadFull(c, make([]byte, 12)) // so that it has been served, if it still is
					continue
				}
				fmt.Fprint(c, ask)
			}
			// A server that lets the newcomer wait for one to end waits for a minute.
			client := &http.Client{Timeout: 45 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
			for range 3 {
				res, err := client.Get(r.url + "/healthz")
				if err != nil {
					t.Fatal(err)
				}
				res.Body.Close()
				if res.StatusCode != http.StatusOK {
					t.Error(res.Status)
				}
			}
			eventually(t, "no more than maxConns are kept", func() bool {
				kept := 0
				for _, c := range held {
					_ = c.SetReadDeadline(time.Now().Add(time.Millisecond))
					if _, err := io.Copy(io.Discard, c); errors.Is(err, os.ErrDeadlineExceeded) {
						kept++
					}
				}
				return kept <= maxConns
			})
		})
	}
}

// TestScript: the page is small, and its script is one that browsers keep.
func TestScript(t *testing.T) {
	r := start(t)
	r.probed(t)
	_, body := r.get(t, "/")
	if len(body) > 100_000 {
		t.Errorf("the page has %d bytes", len(body))
	}
	m := regexp.MustCompile(`<script src="([^"]+)"`).FindStringSubmatch(body)
	if m == nil {
		t.Fatal("the page has no script")
	}
	for _, encoding := range []string{"identity", "gzip"} {
		req, err := http.NewRequest("GET", r.url+m[1], nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Accept-Encoding", encoding)
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		var from io.Reader = res.Body
		if encoding == "gzip" {
			if from, err = gzip.NewReader(res.Body); err != nil {
				t.Fatal(err)
			}
		}
		text, err := io.ReadAll(from)
		res.Body.Close()
		if err != nil || string(text) != string(pageScript().plain) || !strings.Contains(res.Header.Get("Cache-Control"), "immutable") {
			t.Errorf("%s: %v, %d bytes, %v", encoding, err, len(text), res.Header)
		}
	}
	if code, _ := r.get(t, "/assets/0123456789abcdef.js"); code != http.StatusNotFound {
		t.Errorf("a script that there is not: %d", code)
	}
}
