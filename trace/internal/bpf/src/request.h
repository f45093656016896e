/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What runs on request only: a profile, and the Go runtime's timers. */
#pragma once

#include "common.h"
#include "clock.h"

/* A profile of where a process's CPU time goes, as far as clocks are concerned. */
enum where {
	WHERE_USER,         /* in the program */
	WHERE_VDSO,         /* in the vDSO: it reads a clock */
	WHERE_CLOCK_KERNEL, /* in a system call that reads a clock */
	WHERE_KERNEL,       /* in the kernel otherwise */
	WHERES,
};

struct range {
	u64 from, to;
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1024);
	__type(key, u32); /* tgid */
	__type(value, struct range);
} vdsos SEC(".maps");

struct profile {
	u64 samples[WHERES];
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1024);
	__type(key, u32); /* tgid */
	__type(value, struct profile);
} profiles SEC(".maps");

struct profile_stack_key {
	u32 tgid;
	u32 where;
	s32 stack;
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__type(key, struct profile_stack_key);
	__type(value, u64);
} profile_stacks SEC(".maps");

static __always_inline void profile_stack(void *ctx, u32 tgid, u32 where)
{
	struct profile_stack_key key;
	u64 one = 1, *n;

	__builtin_memset(&key, 0, sizeof(key));
	key.tgid = tgid;
	key.where = where;
	key.stack = bpf_get_stackid(ctx, &stacks, BPF_F_USER_STACK);
	if (key.stack < 0) {
		drop(DROP_STACK);
		return;
	}
	n = bpf_map_lookup_elem(&profile_stacks, &key);
	if (n)
		add(n, 1);
	else if (bpf_map_update_elem(&profile_stacks, &key, &one, BPF_NOEXIST))
		drop(DROP_STACK);
}

SEC("perf_event")
int cpu_sample(struct bpf_perf_event_data *ctx)
{
	u32 tgid = bpf_get_current_pid_tgid() >> 32, where;
	struct profile none, *p;
	/* The context begins with the registers, which the kernel lets be read. */
	u64 at;
	struct range *vdso;

	if (!follows(tgid))
		return 0;
	p = bpf_map_lookup_elem(&profiles, &tgid);
	if (!p) {
		__builtin_memset(&none, 0, sizeof(none));
		bpf_map_update_elem(&profiles, &tgid, &none, BPF_NOEXIST);
		p = bpf_map_lookup_elem(&profiles, &tgid);
		if (!p) {
			drop(DROP_PROFILE);
			return 0;
		}
	}
#if defined(__TARGET_ARCH_x86)
	at = *(u64 *)((void *)ctx + 16 * 8); /* ip, the 17th of struct pt_regs */
#else
	at = *(u64 *)((void *)ctx + 32 * 8); /* pc, the 33rd of struct user_pt_regs */
#endif
	if ((s64)at < 0) { /* the kernel's half */
		where = call_of(current_syscall()) >= 0 ? WHERE_CLOCK_KERNEL : WHERE_KERNEL;
	} else {
		vdso = bpf_map_lookup_elem(&vdsos, &tgid);
		where = vdso && at >= vdso->from && at < vdso->to ? WHERE_VDSO : WHERE_USER;
	}
	add(&p->samples[where], 1);
	if (where == WHERE_VDSO || where == WHERE_CLOCK_KERNEL)
		profile_stack(ctx, tgid, where);
	return 0;
}

/* The functions that the Go runtime calls for a timer that is due have as their
 * fourth argument how late that is, by the runtime's own clock. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 256);
	__type(key, u32); /* tgid */
	__type(value, struct hist);
} go_timers SEC(".maps");

SEC("uprobe")
int go_timer(struct pt_regs *regs)
{
	u32 tgid = bpf_get_current_pid_tgid() >> 32;
	struct hist *h;
	s64 late;

	if (!follows(tgid))
		return 0;
#if defined(__TARGET_ARCH_x86)
	late = (s64)BPF_CORE_READ(regs, di);
#else
	late = (s64)BPF_CORE_READ(regs, user_regs.regs[3]);
#endif
	h = bpf_map_lookup_elem(&go_timers, &tgid);
	if (!h) {
		bpf_map_update_elem(&go_timers, &tgid, &no_hist, BPF_NOEXIST);
		h = bpf_map_lookup_elem(&go_timers, &tgid);
		if (!h) {
			drop(DROP_LATENESS);
			return 0;
		}
	}
	observe(h, late > 0 ? late : 0);
	return 0;
}
