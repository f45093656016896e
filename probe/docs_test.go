package probe

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

var idForm = regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*\.[a-z0-9]+(-[a-z0-9]+)*$`)

// docs/findings.md has a heading for each finding that the package can make, and
// no other. IDs stand in the source as string literals, beside the field's name.
func TestFindingsDocumented(t *testing.T) {
	made := map[string]bool{}
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			field, ok := n.(*ast.KeyValueExpr)
			if !ok {
				return true
			}
			if key, ok := field.Key.(*ast.Ident); !ok || key.Name != "ID" {
				return true
			}
			literal, ok := field.Value.(*ast.BasicLit)
			if !ok {
				t.Errorf("%s: an ID that is not a literal", file)
				return true
			}
			id, err := strconv.Unquote(literal.Value)
			if err != nil || !idForm.MatchString(id) {
				t.Errorf("%s: ID %s is not of the form check.fault", file, literal.Value)
			}
			made[id] = true
			return true
		})
	}
	if len(made) == 0 {
		t.Fatal("no finding in the source")
	}
	text, err := os.ReadFile("../docs/findings.md")
	if err != nil {
		t.Fatal(err)
	}
	told := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^### (\S+)$`).FindAllStringSubmatch(string(text), -1) {
		if told[m[1]] {
			t.Errorf("docs/findings.md explains %s twice", m[1])
		}
		told[m[1]] = true
	}
	for _, id := range slices.Sorted(maps.Keys(made)) {
		if !told[id] {
			t.Errorf("docs/findings.md does not explain %s", id)
		}
	}
	for id := range made {
		for _, cause := range causesOf(id) {
			if !made[cause] {
				t.Errorf("%s is explained by %s, which nothing makes", id, cause)
			}
		}
	}
	for _, id := range slices.Sorted(maps.Keys(told)) {
		if !made[id] {
			t.Errorf("docs/findings.md explains %s, which nothing makes", id)
		}
	}
}
