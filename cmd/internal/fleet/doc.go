// Package fleet holds the tests of what deploy/ gives to those who watch many hosts:
// rules, dashboard, service unit and manifest. There is nothing in it but tests.
//
// They ask the programs that will read these files, Prometheus, promtool, amtool,
// systemd-analyze and kubectl, and are skipped for those that are not installed. All
// that they start answers on the loopback interface alone, and ends with the test.
//
// The go command does not notice that a file of deploy/ has changed, since they are
// outside of the module: run them with -count=1.
package fleet
