//go:build linux && !detent_portable

#include "textflag.h"
#include "funcdata.h"

// func call(fn uintptr, id int32) (ns int64, errno int32)
//
// The frame is the stack of the called function: it is C, knows nothing of
// goroutine stacks, and grows down from the SP that it is given. So SP is moved
// up to the top of the frame, less 32 bytes for the result, before the call. The
// 4,032 bytes below are forty times what clock_gettime needs. Kernels compiled
// with stack probes write one page below its frame (golang/go#20427), which is
// within the 800 bytes that every prologue keeps free below the frame. Not
// NOSPLIT: the prologue sees to it that the goroutine has that much.
//
// SP moves only by constants, which the assembler enters into the table by
// which profiler and traceback unwind. That is why it is aligned to 16, as C
// wants it, by one of two calls and not by masking: to Go it is aligned to 8.
//
// C preserves BX, BP and R12-R15. What else Go code relies on, zero in X15 and
// g in R14, the wrapper sets again through which Go calls assembly.
TEXT ·call(SB), 0, $4064-28
	NO_LOCAL_POINTERS
	MOVQ	fn+0(FP), AX
	MOVL	id+8(FP), DI
	ADJSP	$-4032
	LEAQ	8(SP), SI // struct timespec
	MOVQ	SP, CX
	TESTB	$8, CX
	JNE	odd
	CALL	AX
	JMP	done

odd:
	PUSHQ	CX
	CALL	AX
	POPQ	CX

done:
	MOVQ	8(SP), CX  // seconds
	MOVQ	16(SP), DX // nanoseconds
	ADJSP	$4032
	IMULQ	$1000000000, CX
	ADDQ	DX, CX
	MOVQ	CX, ns+16(FP)
	MOVL	AX, errno+24(FP)
	RET
