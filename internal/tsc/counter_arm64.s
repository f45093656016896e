//go:build linux && !detent_portable

#include "textflag.h"

// The counter may be read speculatively, before earlier instructions. ISB
// before it prevents that, as in the kernel's arch_timer_read_cntvct_el0.

// func Ordered() uint64
TEXT ·Ordered(SB), NOSPLIT, $0-8
	ISB	$15
	MRS	CNTVCT_EL0, R0
	MOVD	R0, ret+0(FP)
	RET

// func Unordered() uint64
TEXT ·Unordered(SB), NOSPLIT, $0-8
	MRS	CNTVCT_EL0, R0
	MOVD	R0, ret+0(FP)
	RET

// func Fence()
TEXT ·Fence(SB), NOSPLIT, $0-0
	ISB	$15
	RET

// func frequency() uint64
TEXT ·frequency(SB), NOSPLIT, $0-8
	MRS	CNTFRQ_EL0, R0
	MOVD	R0, ret+0(FP)
	RET
