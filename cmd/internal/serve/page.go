package serve

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"html/template"
	"net/http"

	"github.com/detent-go/detent/cmd/internal/page"
)

//go:embed assets/serve.html
var liveHTML string

//go:embed assets/serve.css
var liveCSS string

var liveTemplate = template.Must(template.New("live").Parse(liveHTML))

// page shows the state, which a script then keeps up to date.
func (s *Server) page(w http.ResponseWriter, _ *http.Request) {
	state, _ := s.board.read()
	// json.Marshal escapes <, > and &: the text cannot end the element.
	text, err := json.Marshal(struct {
		State  State `json:"state"`
		Bounds any   `json:"bounds"`
	}{state, SleepBounds})
	if err == nil {
		var b bytes.Buffer
		err = liveTemplate.Execute(&b, map[string]any{
			"CSS": page.CSS() + template.CSS(liveCSS), "Script": pageScript().path,
			"State": template.JS(text), "S": state,
		})
		if err == nil {
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			w.Header().Set("Cache-Control", "no-store")
			_, _ = b.WriteTo(w) // fails only when the client has gone
			return
		}
	}
	s.o.Log.Error("page", "error", err)
	http.Error(w, "the page could not be made", http.StatusInternalServerError)
}
