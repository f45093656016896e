//go:build linux && !detent_portable

#include "textflag.h"

// RDTSC is not ordered against anything. LFENCE before it waits for all earlier
// instructions, on CPUs where it is dispatch serializing: all of Intel's, and
// AMD's by default since 2018, which say so. RDTSCP waits by itself, everywhere;
// which of the two costs less differs from one CPU to the next.

// func Ordered() uint64
TEXT ·Ordered(SB), NOSPLIT, $0-8
	CMPB	·useRDTSCP(SB), $0
	JNE	rdtscp
	LFENCE
	RDTSC
	SHLQ	$32, DX
	ORQ	DX, AX
	MOVQ	AX, ret+0(FP)
	RET

rdtscp:
	RDTSCP // and CX, the CPU's number
	SHLQ	$32, DX
	ORQ	DX, AX
	MOVQ	AX, ret+0(FP)
	RET

// func Unordered() uint64
TEXT ·Unordered(SB), NOSPLIT, $0-8
	RDTSC
	SHLQ	$32, DX
	ORQ	DX, AX
	MOVQ	AX, ret+0(FP)
	RET

// func Fence()
TEXT ·Fence(SB), NOSPLIT, $0-0
	LFENCE
	RET

// func cpuid(leaf, sub uint32) (a, b, c, d uint32)
TEXT ·cpuid(SB), NOSPLIT, $0-24
	MOVL	leaf+0(FP), AX
	MOVL	sub+4(FP), CX
	CPUID
	MOVL	AX, a+8(FP)
	MOVL	BX, b+12(FP)
	MOVL	CX, c+16(FP)
	MOVL	DX, d+20(FP)
	RET
