package probe_test

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/detent-go/detent/probe"
)

// What is the matter with this machine, worst first.
func ExampleRun() {
	report, err := probe.Run(context.Background(), probe.Options{Effort: probe.Quick})
	if err != nil {
		log.Fatal(err)
	}
	for _, f := range report.Findings() {
		fmt.Println(f.Severity, f.ID, f.Title)
		for _, step := range f.Remedy {
			fmt.Println("   ", step)
		}
	}
}

// One check, at a program's start: is the clock as cheap as it should be?
func ExampleRun_oneCheck() {
	report, err := probe.Run(context.Background(), probe.Options{Checks: []string{"clocksource"}})
	if err != nil {
		log.Fatal(err)
	}
	for _, r := range report.Results {
		if d, ok := r.Data.(*probe.ClocksourceData); ok && d.VDSO == probe.ServedNo {
			log.Printf("reading the time is slow on this machine: clocksource %s", d.Current)
		}
	}
}

// Another machine, of which somebody has sent the files.
func ExampleOptions_root() {
	report, err := probe.Run(context.Background(), probe.Options{Root: os.DirFS("sent/by/somebody")})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(report.Machine.Kernel, report.Worst())
}
