/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* System calls that read a clock: a process on the vDSO makes none. */
#pragma once

#include "common.h"

enum call {
	CALL_CLOCK_GETTIME = 0,
	CALL_GETTIMEOFDAY = 1,
	CALL_TIME = 2,
};

#if defined(__TARGET_ARCH_x86)
enum { NR_CLOCK_GETTIME = 228, NR_GETTIMEOFDAY = 96, NR_TIME = 201 };
#else
enum { NR_CLOCK_GETTIME = 113, NR_GETTIMEOFDAY = 169, NR_TIME = -1 };
#endif

static __always_inline s32 call_of(s32 nr)
{
	if (nr == NR_CLOCK_GETTIME)
		return CALL_CLOCK_GETTIME;
	if (nr == NR_GETTIMEOFDAY)
		return CALL_GETTIMEOFDAY;
	if (nr == NR_TIME && NR_TIME >= 0)
		return CALL_TIME;
	return -1;
}

/* Above the last of the kernel's, which are the auxiliary ones from 16 on. */
enum { NO_CLOCK = 24 };

struct clock_key {
	u32 tgid;
	/* The clock's id. The ids that name a process, thread or file are one
	 * for each: only their low three bits, which say of what kind they are,
	 * are kept, as -8 to -1. Those that the kernel does not know are all
	 * NO_CLOCK, lest a process fill the map with them. */
	s32 clock;
	u32 call;
};

struct clock_use {
	u64 count;
	u64 sampled;
	u64 first, last; /* CLOCK_MONOTONIC ns */
	u64 next_sample;
	/* At the last sample: whose instruction made the call, and where that would
	 * return to if it is in a function without a frame of its own, as system
	 * calls are wrapped. */
	u64 ip, ret;
	char comm[16];
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__type(key, struct clock_key);
	__type(value, struct clock_use);
} clock_uses SEC(".maps");

enum { STACK_DEPTH = 40 };

struct {
	__uint(type, BPF_MAP_TYPE_STACK_TRACE);
	__uint(max_entries, 4096);
	__uint(key_size, sizeof(u32));
	__uint(value_size, STACK_DEPTH * sizeof(u64));
} stacks SEC(".maps");

struct clock_stack_key {
	struct clock_key use;
	s32 stack;
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__type(key, struct clock_stack_key);
	__type(value, u64);
} clock_stacks SEC(".maps");

/* At most one stack in so many ns is taken of a process's readings of one clock,
 * at times that no loop is in step with. */
const volatile u64 stack_spacing = 5000000;

static __always_inline void take_stack(void *ctx, struct clock_key *key, struct clock_use *use)
{
	struct clock_stack_key sk;
	u64 one = 1, *n;

	__builtin_memset(&sk, 0, sizeof(sk));
	sk.use = *key;
	sk.stack = bpf_get_stackid(ctx, &stacks, BPF_F_USER_STACK);
	if (sk.stack < 0) {
		drop(DROP_STACK);
		return;
	}
	n = bpf_map_lookup_elem(&clock_stacks, &sk);
	if (n) {
		add(n, 1);
	} else if (bpf_map_update_elem(&clock_stacks, &sk, &one, BPF_NOEXIST)) {
		drop(DROP_STACK);
		return;
	}
	add(&use->sampled, 1);
}

static __always_inline u64 first_argument(struct pt_regs *regs)
{
#if defined(__TARGET_ARCH_x86)
	return BPF_CORE_READ(regs, di);
#else
	return BPF_CORE_READ(regs, user_regs.regs[0]);
#endif
}

static __always_inline u64 instruction(struct pt_regs *regs)
{
#if defined(__TARGET_ARCH_x86)
	return BPF_CORE_READ(regs, ip);
#else
	return BPF_CORE_READ(regs, user_regs.pc);
#endif
}

static __always_inline u64 return_address(struct pt_regs *regs)
{
	u64 ret = 0;

#if defined(__TARGET_ARCH_x86)
	bpf_probe_read_user(&ret, sizeof(ret), (void *)BPF_CORE_READ(regs, sp));
#else
	ret = BPF_CORE_READ(regs, user_regs.regs[30]);
#endif
	return ret;
}

static __always_inline void key_of(struct clock_key *key, u32 tgid, s32 call, struct pt_regs *regs)
{
	__builtin_memset(key, 0, sizeof(*key));
	key->tgid = tgid;
	key->call = call;
	if (call == CALL_CLOCK_GETTIME) {
		s32 clock = (s32)first_argument(regs);
		if (clock < 0)
			key->clock = -8 | (clock & 7);
		else
			key->clock = clock < NO_CLOCK ? clock : NO_CLOCK;
	}
}

SEC("tp_btf/sys_enter")
int BPF_PROG(sys_enter, struct pt_regs *regs, long nr)
{
	s32 call = call_of((s32)nr);
	struct clock_use *use, new;
	struct clock_key key;
	bool first = false;
	u64 now;
	u32 tgid;

	if (call < 0)
		return 0;
	tgid = bpf_get_current_pid_tgid() >> 32;
	if (!follows(tgid) || is_compat((struct task_struct *)bpf_get_current_task()))
		return 0;
	key_of(&key, tgid, call, regs);
	now = bpf_ktime_get_ns();
	use = bpf_map_lookup_elem(&clock_uses, &key);
	if (!use) {
		__builtin_memset(&new, 0, sizeof(new));
		new.first = now;
		bpf_get_current_comm(new.comm, sizeof(new.comm));
		first = !bpf_map_update_elem(&clock_uses, &key, &new, BPF_NOEXIST);
		use = bpf_map_lookup_elem(&clock_uses, &key);
		if (!use) {
			drop(DROP_CLOCK);
			return 0;
		}
	}
	add(&use->count, 1);
	use->last = now;
	if (now >= use->next_sample) {
		use->next_sample = now + stack_spacing / 2 + bpf_get_prandom_u32() % (stack_spacing | 1);
		use->ip = instruction(regs);
		use->ret = return_address(regs);
		take_stack(ctx, &key, use);
	}
	if (first)
		tell(EVENT_CLOCK_USER, tgid, (u64)key.clock, key.call);
	return 0;
}

/* How long the kernel takes for such a call, on request: its end is one more
 * program on every system call of the machine. */
struct in_call {
	u64 since;
	struct clock_key key;
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 4096);
	__type(key, u32); /* tid */
	__type(value, struct in_call);
} in_calls SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1024);
	__type(key, struct clock_key);
	__type(value, struct hist);
} clock_times SEC(".maps");

SEC("tp_btf/sys_enter")
int BPF_PROG(sys_enter_time, struct pt_regs *regs, long nr)
{
	s32 call = call_of((s32)nr);
	struct in_call in;
	u64 id;
	u32 tid;

	if (call < 0)
		return 0;
	id = bpf_get_current_pid_tgid();
	tid = (u32)id;
	if (!follows(id >> 32) || is_compat((struct task_struct *)bpf_get_current_task()))
		return 0;
	__builtin_memset(&in, 0, sizeof(in));
	key_of(&in.key, id >> 32, call, regs);
	in.since = bpf_ktime_get_ns();
	bpf_map_update_elem(&in_calls, &tid, &in, BPF_ANY);
	return 0;
}

/* An unmodified zero value for maps whose values are too big for the stack. */
static const struct hist no_hist;

SEC("tp_btf/sys_exit")
int BPF_PROG(sys_exit_time, struct pt_regs *regs, long ret)
{
	u64 now = bpf_ktime_get_ns(), id;
	struct in_call *in;
	struct clock_key key;
	struct hist *h;
	u32 tid;

	if (call_of(syscall_of(regs)) < 0)
		return 0;
	id = bpf_get_current_pid_tgid();
	tid = (u32)id;
	if (!follows(id >> 32))
		return 0;
	in = bpf_map_lookup_elem(&in_calls, &tid);
	if (!in || !in->since)
		return 0;
	now -= in->since;
	key = in->key;
	in->since = 0;
	h = bpf_map_lookup_elem(&clock_times, &key);
	if (!h) {
		bpf_map_update_elem(&clock_times, &key, &no_hist, BPF_NOEXIST);
		h = bpf_map_lookup_elem(&clock_times, &key);
		if (!h) {
			drop(DROP_CLOCK);
			return 0;
		}
	}
	observe(h, now);
	return 0;
}
