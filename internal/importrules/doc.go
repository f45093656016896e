// Package importrules holds the test that keeps the repository's import rules
// and no code of its own.
//
// The rules stand once, as a table in rules_test.go; docs/architecture.md
// gives the reasons. The test parses every Go file of every module, whatever
// its build constraints say, so that a rule broken on one GOOS or behind one
// tag is found on any machine, without a build and without a network.
package importrules
