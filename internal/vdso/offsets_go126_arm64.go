//go:build linux && !detent_portable && go1.26 && !go1.27

package vdso

//lint:file-ignore U1000 the assembly has the offsets by go_asm.h

// offsetsKnown says that the offsets below are those of the Go version.
const offsetsKnown = true

// Offsets into the runtime's g and m, from runtime/runtime2.go of Go 1.26.
const (
	gM       = 48 // g.m
	mGsignal = 72 // m.gsignal
	gStackLo = 0  // g.stack.lo
)
