package serve

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/detent-go/detent/cmd/internal/page"
)

//go:embed assets/serve.js
var liveScript string

// A script is the page's: the library that draws, and what keeps the page up to date.
type script struct {
	plain, zipped []byte
	path          string // says what is in it, so that browsers keep it for good
}

// pageScript is made once: clients share it, however many and slow they are.
var pageScript = sync.OnceValue(func() script {
	s := script{plain: []byte(string(page.Script()) + "\n" + liveScript)}
	sum := sha256.Sum256(s.plain)
	s.path = "/assets/" + hex.EncodeToString(sum[:8]) + ".js"
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := z.Write(s.plain); err == nil && z.Close() == nil {
		s.zipped = b.Bytes()
	}
	return s
})

// script answers with the page's script.
func (s *Server) script(w http.ResponseWriter, r *http.Request) {
	script := pageScript()
	if r.URL.Path != script.path {
		http.NotFound(w, r)
		return
	}
	header := w.Header()
	header.Set("Content-Type", "text/javascript; charset=utf-8")
	header.Set("Cache-Control", "public, max-age=31536000, immutable")
	header.Set("Vary", "Accept-Encoding")
	text := script.plain
	if script.zipped != nil && strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		header.Set("Content-Encoding", "gzip")
		text = script.zipped
	}
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(text))
}
