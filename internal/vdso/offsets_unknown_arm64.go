//go:build linux && !detent_portable && (!go1.26 || go1.27)

package vdso

//lint:file-ignore U1000 the assembly has the offsets by go_asm.h

// offsetsKnown says that nobody has read the runtime of this Go version.
const offsetsKnown = false

// The assembly needs constants to be assembled; it does not get to use these.
const (
	gM       = 0
	mGsignal = 0
	gStackLo = 0
)
