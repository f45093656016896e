//go:build linux && !detent_portable

package vdso

// hostile is machine code of a clock_gettime(id, ts) that does what the ABI
// allows and a vDSO might do: it returns id+1 seconds and 5 ns, or -EINVAL if it
// finds the stack misaligned.
//
//	mov x9,sp; and x10,x9,#15; cbnz x10,bad
//	sub sp,sp,#96; stp x19,x20 ... x25,x26, x29,x30
//	mov x2,#-1; mov x27,#4000; sub x10,x9,x27; mov x11,sp
//	fill: str x2,[x10]; add x10,x10,#8; cmp x10,x11; b.lo fill
//	                                overwrites everything below its frame
//	add x0,x0,#1; str x0,[x1]; mov x3,#5; str x3,[x1,#8]
//	mov x2 to x0-x17, x19-x26, x29, x30
//	ldp x19,x20 ... x25,x26, x29,x30; add sp,sp,#96
//	mov x0,#0; ret
//	bad: mov x0,#-22; ret
//
// It leaves x28, Go's g, alone: for a signal that arrives here the runtime does
// not look into the parking slot, because this is not the real vDSO.
const hostile = "e90300912a0d4092ca0600b5ff8301d1f35300a9f55b01a9f76302a9f96b03a9fd7b04a9020080921bf4" +
	"81d22a011bcbeb030091420100f94a2100915f010beba3ffff5400040091200000f9a30080d2230400f9" +
	"e00302aae10302aae30302aae40302aae50302aae60302aae70302aae80302aae90302aaea0302aaeb03" +
	"02aaec0302aaed0302aaee0302aaef0302aaf00302aaf10302aaf30302aaf40302aaf50302aaf60302aa" +
	"f70302aaf80302aaf90302aafa0302aafd0302aafe0302aaf35340a9f55b41a9f76342a9f96b43a9fd7b" +
	"44a9ff830191e0031faac0035fd6a0028092c0035fd6"
