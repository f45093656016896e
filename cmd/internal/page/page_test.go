package page

import (
	"bytes"
	"html/template"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/detent-go/detent/cmd/internal/browsertest"
)

// charts has one of each, with text that would break out of a page if it could.
func charts() []Chart {
	const evil = `</script><script>throw "evil"</script>"'&`
	return []Chart{
		{"bars", "bars " + evil, 200, Bars([]string{"a", "b " + evil}, []Series{{"one", []float64{20, 3000}}, {"two " + evil, []float64{0, 1e9}}}, true)},
		{"linear", "bars", 160, Bars([]string{"a"}, []Series{{"one", []float64{0}}}, false)},
		{"tails", "tails", 240, Distribution([]Curve{{"sleep " + evil, [][2]float64{{1e3, 100}, {2e3, 10}, {1e6, 0.1}}}}, "lateness")},
		{"shares", "shares", 240, Histogram([]Curve{{"sleep " + evil, [][2]float64{{1e3, 40}, {2e3, 60}, {4e3, 0}}}, {"other", [][2]float64{{1e6, 100}, {2e6, 0}}}})},
		{"numbers", "numbers", 160, BarsOf(Numbers, []string{"a"}, []Series{{"one", []float64{12}}, {"two", []float64{3e6}}}, true)},
		{"logs", "logs", 240, LogMatrix([]string{"0", "1"}, []string{"0"}, []Cell{{0, 0, 0, "0 ns"}, {1, 0, 2e7, "20 ms"}})},
		{"matrix", "matrix", 240, Matrix([]string{"0", "1"}, []string{"0", "1"}, []Cell{{1, 0, 35, "35 ns " + evil}, {0, 1, 0, "not distinguishable"}}, 40)},
	}
}

func example(t *testing.T) []byte {
	t.Helper()
	var body template.HTML
	for _, c := range charts() {
		html, err := c.HTML()
		if err != nil {
			t.Fatal(err)
		}
		body += html
	}
	var b bytes.Buffer
	if err := Write(&b, Page{Title: "A <page>", Lead: "lead & all", Body: body, Foot: "the end"}); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestSelfContained: nothing is loaded from elsewhere.
func TestSelfContained(t *testing.T) {
	html := example(t)
	for _, m := range regexp.MustCompile(`(?i)<(?:script|link|img|iframe)[^>]*\s(?:src|href)=["']?([^"'> ]+)`).FindAllSubmatch(html, -1) {
		if !bytes.HasPrefix(m[1], []byte("data:")) {
			t.Errorf("loads %s", m[1])
		}
	}
	if !bytes.Contains(html, []byte("A &lt;page&gt;")) {
		t.Error("the title is not escaped")
	}
}

// TestFunctions: what options name is there.
func TestFunctions(t *testing.T) {
	script := asset("page.js")
	html := string(example(t))
	found := 0
	for _, m := range regexp.MustCompile(`"fn:(\w+)"`).FindAllStringSubmatch(html, -1) {
		found++
		if !strings.Contains(script, "\n    "+m[1]+": ") {
			t.Errorf("page.js has no function %s", m[1])
		}
	}
	if found == 0 {
		t.Error("no option names a function")
	}
}

func TestVersion(t *testing.T) {
	if !strings.Contains(asset("echarts.min.js"), `"`+EChartsVersion+`"`) {
		t.Errorf("the library is not of version %s", EChartsVersion)
	}
}

// TestDrawn: a real browser draws every chart, in both dresses, and complains of
// nothing.
func TestDrawn(t *testing.T) {
	tab := browsertest.Open(t, 1000, 800)
	file := filepath.Join(t.TempDir(), "page.html")
	if err := os.WriteFile(file, example(t), 0o644); err != nil {
		t.Fatal(err)
	}
	tab.Run(chromedp.Navigate("file://" + file))
	for _, dark := range []bool{false, true} {
		tab.Dark(dark)
		for _, c := range charts() {
			tab.Until(c.ID+" is drawn", `document.querySelectorAll("#`+c.ID+` svg path").length > 3`)
		}
	}
	tab.Shoot("page")
	if p := tab.Problems(); len(p) > 0 {
		t.Errorf("the console complains: %q", p)
	}
}
