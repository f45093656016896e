//go:build linux && !detent_portable

package vdso

// hostile is machine code of a clock_gettime(id, ts) that does what the ABI
// allows and a vDSO might do: it returns id+1 seconds and 5 ns, or -EINVAL if it
// finds the stack misaligned.
//
//	lea 8(%rsp),%rax; test $15,%al; jnz bad
//	push %rbx; push %rbp; push %r12; push %r13; push %r14; push %r15
//	orq $0,-4136(%rsp)              a stack probe one page down
//	mov %edi,%r8d; mov %rsi,%r9
//	lea -3920(%rsp),%rdi; mov $490,%ecx; mov $-1,%rax; rep stosq
//	                                overwrites everything below its frame
//	mov %rax to %rbx %rbp %r12-%r15; pcmpeqd %xmm0; pcmpeqd %xmm15
//	inc %r8; mov %r8,(%r9); movq $5,8(%r9)
//	mov %rax to %rcx %rdx %rsi %r8-%r11
//	pop %r15; pop %r14; pop %r13; pop %r12; pop %rbp; pop %rbx
//	xor %eax,%eax; ret
//	bad: mov $-22,%eax; ret
const hostile = "488d442408a80f757b5355415441554156415748838c24d8efffff004189f84989f1488dbc24b0f0ffff" +
	"b9ea01000048c7c0fffffffff348ab4889c34889c54989c44989c54989c64989c7660f76c066450f76ff" +
	"49ffc04d890149c74108050000004889c14889c24889c64989c04989c14989c24989c3" +
	"415f415e415d415c5d5b31c0c3b8eaffffffc3"
