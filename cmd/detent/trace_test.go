package main

import (
	"strings"
	"testing"
)

// TestTraceUsage: what is wrong is named, and nothing is watched.
func TestTraceUsage(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{nil, "what to watch"},
		{[]string{"--all", "1"}, "one of"},
		{[]string{"--all", "--", "true"}, "one of"},
		{[]string{"1", "--", "true"}, "one of"},
		{[]string{"--"}, "no command"},
		{[]string{"self"}, `"self"`},
		{[]string{"-5"}, "unknown shorthand flag"},
		{[]string{"0"}, `"0"`},
		{[]string{"--all", "--features", "dance"}, `"dance"`},
		{[]string{"--all", "--interval", "1ms"}, "--interval"},
		{[]string{"--all", "--late", "-1s"}, "--late"},
		{[]string{"--all", "--duration", "-1s"}, "--duration"},
		{[]string{"--all", "--output", "x"}, "--output"},
	} {
		code, stdout, stderr := run(append([]string{"trace"}, c.args...)...)
		if code != exitUsage || stdout != "" || !strings.Contains(stderr, c.want) {
			t.Errorf("%v: code %d, %q, %q; want %d and %q", c.args, code, stdout, stderr, exitUsage, c.want)
		}
	}
}
