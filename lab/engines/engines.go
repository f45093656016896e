// Package engines has every timer engine of the lab by name, in the order in which
// the tables show them: those of the Go runtime by age, those that the articles set
// against them, libraries of other people, package time, detent.
package engines

import (
	"github.com/detent-go/detent/lab/engine"
	"github.com/detent-go/detent/lab/engine/buckets64"
	"github.com/detent-go/detent/lab/engine/detent"
	"github.com/detent-go/detent/lab/engine/heap1"
	"github.com/detent-go/detent/lab/engine/netpoll114"
	"github.com/detent-go/detent/lab/engine/peers"
	"github.com/detent-go/detent/lab/engine/pool"
	"github.com/detent-go/detent/lab/engine/std"
	"github.com/detent-go/detent/lab/engine/wheel"
)

// All returns all engines, also those that this system does not support: their New
// says so.
func All() []engine.Info {
	all := []engine.Info{
		heap1.Info(), buckets64.Info(), netpoll114.Info(),
		wheel.Info(), pool.Info(), pool.OneInfo(),
	}
	all = append(all, peers.Infos()...)
	return append(all, std.Info(), detent.Info())
}

// Find returns the engine with the given name.
func Find(name string) (engine.Info, bool) {
	for _, i := range All() {
		if i.Name == name {
			return i, true
		}
	}
	return engine.Info{}, false
}
