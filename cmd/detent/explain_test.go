package main

import (
	"strings"
	"testing"
)

// TestExplainUsage: what is wrong is named, and nothing is watched.
func TestExplainUsage(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{nil, "accepts 1 arg"},
		{[]string{"1", "2"}, "accepts 1 arg"},
		{[]string{"self"}, `"self"`},
		{[]string{"1", "--duration", "1ms"}, "--duration"},
	} {
		code, stdout, stderr := run(append([]string{"explain"}, c.args...)...)
		if code != exitUsage || stdout != "" || !strings.Contains(stderr, c.want) {
			t.Errorf("%v: code %d, %q, %q; want %d and %q", c.args, code, stdout, stderr, exitUsage, c.want)
		}
	}
}
