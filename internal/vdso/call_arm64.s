//go:build linux && !detent_portable

#include "go_asm.h"
#include "textflag.h"
#include "funcdata.h"

// func call(fn uintptr, id int32) (ns int64, errno int32)
//
// As on amd64: the frame is the called function's stack, SP is moved up within
// it by a constant, and the prologue checks its size. Go keeps SP aligned to 16
// here. Our own return address stays at the bottom of the frame, out of the
// function's reach unless it needs more than 4,032 bytes of stack.
//
// C preserves R19-R29; g is R28. While C runs it may use R28 for something else,
// so a signal handler cannot take g from there: it is parked (signal_arm64.go).
TEXT ·call(SB), 0, $4064-28
	NO_LOCAL_POINTERS
	MOVD	fn+0(FP), R9
	MOVW	id+8(FP), R0
	ADD	$4032, RSP
	MOVD	RSP, R1
	ADD	$8, R1 // struct timespec

	MOVD	ZR, R19
	MOVBU	·parkG(SB), R2
	CBZ	R2, parked
	MOVD	const_gM(g), R2
	MOVD	const_mGsignal(R2), R2
	CBZ	R2, parked
	MOVD	const_gStackLo(R2), R19
	MOVD	g, (R19)

parked:
	BL	(R9)
	CBZ	R19, done
	MOVD	ZR, (R19)

done:
	MOVD	8(RSP), R1  // seconds
	MOVD	16(RSP), R2 // nanoseconds
	SUB	$4032, RSP
	MOVD	$1000000000, R3
	MADD	R3, R2, R1, R1
	MOVD	R1, ns+16(FP)
	MOVW	R0, errno+24(FP)
	RET

// func signalSlot() uintptr
TEXT ·signalSlot(SB), NOSPLIT, $0-8
	MOVD	ZR, R3
	MOVD	const_gM(g), R2
	MOVD	const_mGsignal(R2), R2
	CBZ	R2, none
	MOVD	const_gStackLo(R2), R3

none:
	MOVD	R3, ret+0(FP)
	RET
