package serve

import (
	"net"
	"net/http"
	"net/netip"
	"os"
	"strings"
	"sync"
)

// guarded adds what keeps a browser from being led astray. Where the server answers
// on the loopback interface alone, a page elsewhere must not read it through a name
// that it makes lead there: then only to addresses and the host's own names.
func guarded(h http.Handler, at net.Addr) http.Handler {
	a, ok := at.(*net.TCPAddr)
	loopback := ok && a.IP.IsLoopback()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if loopback && !hostAllowed(r.Host) {
			http.Error(w, "only addresses and this host's own names are answered to", http.StatusMisdirectedRequest)
			return
		}
		header := w.Header()
		header.Set("X-Content-Type-Options", "nosniff")
		header.Set("X-Frame-Options", "DENY")
		header.Set("Referrer-Policy", "no-referrer")
		header.Set("Content-Security-Policy", "default-src 'none'; script-src 'self'; style-src 'unsafe-inline'; img-src data:; connect-src 'self'; base-uri 'none'; form-action 'none'")
		h.ServeHTTP(w, r)
	})
}

func hostAllowed(hostport string) bool {
	host := hostport
	if h, _, err := net.SplitHostPort(hostport); err == nil {
		host = h
	}
	host = strings.Trim(host, "[]")
	if _, err := netip.ParseAddr(host); err == nil {
		return true
	}
	return strings.EqualFold(host, "localhost") || host != "" && strings.EqualFold(host, ownName())
}

// ownName is the host's.
var ownName = sync.OnceValue(func() string {
	name, _ := os.Hostname()
	return name
})
