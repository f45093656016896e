/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What all programs share: whom they follow, what they could not keep, the
 * events they send, histograms. */
#pragma once

#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>

/* Whom to follow; set before the programs are loaded. */
enum {
	FOLLOW_ALL = 0,
	FOLLOW_ONE = 1, /* follow_one */
	FOLLOW_SET = 2, /* the map followed */
};
const volatile u32 follow_mode = FOLLOW_ALL;
const volatile u32 follow_one = 0;
const volatile bool follow_children = false;

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__type(key, u32); /* tgid */
	__type(value, u32);
} followed SEC(".maps");

static __always_inline bool follows(u32 tgid)
{
	if (follow_mode == FOLLOW_ALL)
		return true;
	if (follow_mode == FOLLOW_ONE)
		return tgid == follow_one;
	return bpf_map_lookup_elem(&followed, &tgid) != 0;
}

/* What was dropped because a map was full, by what was to be kept. */
enum drop {
	DROP_CLOCK,    /* a process's use of a clock */
	DROP_STACK,    /* the stack of one reading */
	DROP_TIMER,    /* a process's use of a kind of timer */
	DROP_THREAD,   /* a thread that waits for a CPU */
	DROP_LATENESS, /* a process's histograms */
	DROP_EVENT,    /* an event, the reader being too slow */
	DROP_FOLLOWED, /* a child */
	DROP_PROFILE,  /* a sample of the profile */
	DROPS,
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, DROPS);
	__type(key, u32);
	__type(value, u64);
} dropped SEC(".maps");

static __always_inline void drop(u32 what)
{
	u64 *n = bpf_map_lookup_elem(&dropped, &what);
	if (n)
		(*n)++;
}

static __always_inline void add(u64 *to, u64 n)
{
	__sync_fetch_and_add(to, n);
}

/* Bucket i counts the values of i bits: 0, 1, 2-3, 4-7 ... The last has the rest,
 * from 2^38 ns (275 s) on. */
enum { BUCKETS = 40 };

/* The largest may be missed where two CPUs write at the same moment; counts and
 * sums never are. */
struct hist {
	u64 count;
	u64 sum;
	u64 max;
	u64 buckets[BUCKETS];
};

/* One step of bits: whether v has more than n bits, times n; v is below 2^63. */
static __always_inline u64 more_than(u64 v, u32 n)
{
	u64 beyond = ((1ULL << n) - 1) - v;

	asm volatile("" : "+r"(beyond)); /* no comparison of it, please */
	return (beyond >> 63) * n;
}

/* The bits of v. Without a branch: the verifier follows every way through a program,
 * and would have 64 through each bucket. */
static __always_inline u32 bits(u64 v)
{
	u64 n = 0, step;

	v &= ~(1ULL << 63);
	step = more_than(v, 32), v >>= step, n += step;
	step = more_than(v, 16), v >>= step, n += step;
	step = more_than(v, 8), v >>= step, n += step;
	step = more_than(v, 4), v >>= step, n += step;
	step = more_than(v, 2), v >>= step, n += step;
	step = more_than(v, 1), v >>= step, n += step;
	return n + v;
}

static __noinline void observe(struct hist *h, u64 v)
{
	u32 i = bits(v);

	if (i >= BUCKETS)
		i = BUCKETS - 1;
	add(&h->buckets[i], 1);
	add(&h->count, 1);
	add(&h->sum, v);
	if (v > h->max)
		h->max = v;
}

/* The parts of a timer's lateness, in the order in which they pass. */
enum part {
	PART_SLACK,     /* the kernel was allowed to wait that long: timer slack */
	PART_INTERRUPT, /* from there until the interrupt ran the timer */
	PART_WAKE,      /* until the thread was runnable */
	PART_THROTTLED, /* runnable, its cgroup's CPU quota used up */
	PART_RUNQUEUE,  /* runnable, another thread on the CPU */
	PART_TOTAL,     /* from what was asked for until the thread ran */
	PARTS,
};

/* Events. */
enum event_type {
	EVENT_CLOCK_USER = 1, /* a process has made a system call for a clock */
	EVENT_LATE = 2,
	EVENT_EXEC = 3,
	EVENT_EXIT = 4,
};

struct event {
	u32 type;
	u32 tgid;
	u32 tid;
	u32 cpu;
	u64 at; /* CLOCK_MONOTONIC ns */
	/* EVENT_LATE; of EVENT_CLOCK_USER fn is the clock's id, and kind the call. */
	u64 fn;
	u32 kind;
	u32 before_tgid; /* what had the CPU until the thread ran */
	u64 part[PARTS];
	char comm[16];
	char before_comm[16];
};

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 256 * 1024);
} events SEC(".maps");

static __always_inline void tell(u32 type, u32 tgid, u64 fn, u32 kind)
{
	struct event *e = bpf_ringbuf_reserve(&events, sizeof(*e), 0);

	if (!e) {
		drop(DROP_EVENT);
		return;
	}
	__builtin_memset(e, 0, sizeof(*e));
	e->type = type;
	e->tgid = tgid;
	e->cpu = bpf_get_smp_processor_id();
	e->at = bpf_ktime_get_ns();
	e->fn = fn;
	e->kind = kind;
	bpf_ringbuf_submit(e, 0);
}

/* The number of the system call that a thread in the kernel is in. */
static __always_inline s32 syscall_of(struct pt_regs *regs)
{
#if defined(__TARGET_ARCH_x86)
	return (s32)BPF_CORE_READ(regs, orig_ax);
#else
	return BPF_CORE_READ(regs, syscallno);
#endif
}

static __always_inline s32 current_syscall(void)
{
	if (!bpf_core_enum_value_exists(enum bpf_func_id, BPF_FUNC_task_pt_regs))
		return -1;
	return syscall_of((struct pt_regs *)bpf_task_pt_regs(bpf_get_current_task_btf()));
}

/* Numbers of system calls mean something else to a 32-bit program. */
static __always_inline bool is_compat(struct task_struct *task)
{
#if defined(__TARGET_ARCH_x86)
	return BPF_CORE_READ(task, thread_info.status) & 2; /* TS_COMPAT */
#else
	return BPF_CORE_READ(task, thread_info.flags) & (1UL << 22); /* TIF_32BIT */
#endif
}
