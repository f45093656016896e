// Package browsertest opens pages in a real headless Chromium, for tests.
package browsertest

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// A Tab is one page in a browser of its own, which ends with the test.
type Tab struct {
	t   testing.TB
	ctx context.Context

	mu       sync.Mutex
	problems []string // what the console complained about
}

// names are what Chromium is called.
var names = []string{"chromium", "chromium-browser", "google-chrome", "chrome"}

// patience is for a machine that is busy with everything else; a page takes a
// second.
const patience = 3 * time.Minute

// Open starts a browser of the given size in pixels. It skips the test where there
// is none.
func Open(t testing.TB, width, height int) *Tab {
	t.Helper()
	var program string
	for _, name := range names {
		if path, err := exec.LookPath(name); err == nil {
			program = path
			break
		}
	}
	if program == "" {
		t.Skipf("no browser: none of %q is installed", names)
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(program),
		chromedp.WindowSize(width, height),
		chromedp.WSURLReadTimeout(patience),
	)
	if os.Geteuid() == 0 {
		options = append(options, chromedp.NoSandbox) // Chromium has no sandbox for root.
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewExecAllocator(ctx, options...)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	t.Cleanup(cancel)
	b := &Tab{t: t, ctx: ctx}
	chromedp.ListenTarget(ctx, b.event)
	b.Run(emulation.SetDeviceMetricsOverride(int64(width), int64(height), 1, width < 600))
	return b
}

// event notes errors: exceptions, console.error, and what fails to load.
func (b *Tab) event(event any) {
	problem := ""
	switch e := event.(type) {
	case *runtime.EventExceptionThrown:
		problem = e.ExceptionDetails.Error()
	case *runtime.EventConsoleAPICalled:
		if e.Type == runtime.APITypeError || e.Type == runtime.APITypeWarning {
			for _, a := range e.Args {
				problem += fmt.Sprintf("%s %s ", a.Value, a.Description)
			}
		}
	case *log.EventEntryAdded:
		if e.Entry.Level == log.LevelError {
			problem = e.Entry.Text + " " + e.Entry.URL
		}
	}
	if problem != "" {
		b.mu.Lock()
		b.problems = append(b.problems, problem)
		b.mu.Unlock()
	}
}

// Run makes the actions, and fails the test if one fails.
func (b *Tab) Run(actions ...chromedp.Action) {
	b.t.Helper()
	if err := chromedp.Run(b.ctx, actions...); err != nil {
		b.t.Fatalf("browser: %v; console: %q", err, b.Problems())
	}
}

// Eval runs a script and stores what it returns in result.
func (b *Tab) Eval(script string, result any) {
	b.t.Helper()
	b.Run(chromedp.Evaluate(script, result))
}

// Until waits until the script returns true.
func (b *Tab) Until(what, script string) {
	b.t.Helper()
	if err := chromedp.Run(b.ctx, chromedp.Poll(script, nil, chromedp.WithPollingTimeout(patience))); err != nil {
		b.t.Fatalf("browser: waiting until %s: %v; console: %q", what, err, b.Problems())
	}
}

// Problems returns what the console has complained about so far.
func (b *Tab) Problems() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]string(nil), b.problems...)
}

// Dark chooses the dark dress, or the light one.
func (b *Tab) Dark(dark bool) {
	b.t.Helper()
	scheme := "light"
	if dark {
		scheme = "dark"
	}
	b.Run(emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}))
}

// Shoot writes a picture of the whole page to the directory that the environment
// variable DETENT_SCREENSHOTS names, for somebody to look at; without it, nothing.
func (b *Tab) Shoot(name string) {
	b.t.Helper()
	dir := os.Getenv("DETENT_SCREENSHOTS")
	if dir == "" {
		return
	}
	var picture []byte
	b.Run(chromedp.FullScreenshot(&picture, 100))
	if err := os.WriteFile(dir+"/"+name+".png", picture, 0o644); err != nil {
		b.t.Fatal(err)
	}
}

// Print writes the page as PDF likewise.
func (b *Tab) Print(name string) {
	b.t.Helper()
	dir := os.Getenv("DETENT_SCREENSHOTS")
	if dir == "" {
		return
	}
	var paper []byte
	b.Run(chromedp.ActionFunc(func(ctx context.Context) (err error) {
		paper, _, err = page.PrintToPDF().WithPrintBackground(true).Do(ctx)
		return err
	}))
	if err := os.WriteFile(dir+"/"+name+".pdf", paper, 0o644); err != nil {
		b.t.Fatal(err)
	}
}
