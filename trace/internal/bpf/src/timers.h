/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Who arms timers, which of them expire, and whom they wake. */
#pragma once

#include "common.h"

/* A kind of timer is the number of the system call that its owner sleeps in, or
 * one of these. */
enum kind {
	KIND_SYSCALL_UNKNOWN = 0xffff, /* sleeps in one that this kernel does not tell */
	KIND_TIMERFD = 0x10000,
	KIND_POSIX,        /* timer_create */
	KIND_ITIMER,       /* setitimer, alarm */
	KIND_KTHREAD,      /* a kernel thread that sleeps */
	KIND_KERNEL,       /* any other; its function tells */
	KIND_WHEEL_SLEEP,  /* of the kernel's coarse timers: a thread that sleeps */
	KIND_WHEEL,        /* the others; its function tells */
	KIND_ANY = 0xfffff, /* of histograms: all waits for a CPU, whatever woke the thread */
};

/* The addresses of these functions, from /proc/kallsyms; 0 where they are hidden,
 * and then such timers are KIND_KERNEL. */
const volatile u64 fn_hrtimer_wakeup = 0;
const volatile u64 fn_timerfd = 0;
const volatile u64 fn_posix = 0;
const volatile u64 fn_itimer = 0;
const volatile u64 fn_process_timeout = 0;

struct timer_key {
	u32 tgid; /* 0: the kernel's own */
	u32 kind;
	u64 fn; /* for KIND_KERNEL and KIND_WHEEL only */
};

struct timer_use {
	u64 armed;
	u64 expired;
	u64 expired_idle; /* on a CPU that was idle */
	u64 woken;        /* threads woken */
	u64 asked;        /* sum of ns from arming to what was asked for */
	char comm[16];
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 8192);
	__type(key, struct timer_key);
	__type(value, struct timer_use);
} timer_uses SEC(".maps");

/* Who armed a timer. The address of one that is gone may be another's later, so
 * an entry holds only while fn is still the timer's. */
struct armed {
	u64 fn;
	u32 tgid;
	u32 kind;
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 16384);
	__type(key, u64); /* address of the hrtimer */
	__type(value, struct armed);
} armed_timers SEC(".maps");

/* The timer whose function a CPU is running, fn being 0 while there is none. */
struct expiring {
	u64 fn;
	u64 soft; /* what was asked for; CLOCK_MONOTONIC ns */
	u64 hard; /* with the slack */
	u64 at;   /* now */
	struct timer_key key;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct expiring);
} expirings SEC(".maps");

static __always_inline struct expiring *this_cpus_timer(void)
{
	u32 zero = 0;

	return bpf_map_lookup_elem(&expirings, &zero);
}

static __always_inline struct timer_use *use_of_timer(struct timer_key *key)
{
	struct timer_use *use = bpf_map_lookup_elem(&timer_uses, key), new;

	if (use)
		return use;
	__builtin_memset(&new, 0, sizeof(new));
	if (key->tgid && (u32)(bpf_get_current_pid_tgid() >> 32) == key->tgid)
		bpf_get_current_comm(new.comm, sizeof(new.comm));
	bpf_map_update_elem(&timer_uses, key, &new, BPF_NOEXIST);
	use = bpf_map_lookup_elem(&timer_uses, key);
	if (!use)
		drop(DROP_TIMER);
	return use;
}

/* Timers of the kernel, and of nobody known, count where all processes do. */
static __always_inline bool is_counted(struct timer_key *key)
{
	return key->tgid || follow_mode == FOLLOW_ALL;
}

static __always_inline u32 sleeper_kind(struct task_struct *task)
{
	s32 nr;

	if (BPF_CORE_READ(task, flags) & PF_KTHREAD)
		return KIND_KTHREAD;
	nr = current_syscall();
	return nr < 0 || nr >= KIND_SYSCALL_UNKNOWN ? KIND_SYSCALL_UNKNOWN : nr;
}

/* The kind of a timer that no thread sleeps on. */
static __always_inline u32 process_kind(u64 fn)
{
	if (fn && fn == fn_timerfd)
		return KIND_TIMERFD;
	if (fn && fn == fn_posix)
		return KIND_POSIX;
	if (fn && fn == fn_itimer)
		return KIND_ITIMER;
	return KIND_KERNEL;
}

/* What a timer belongs to, when the current thread arms it. */
static __always_inline void owner_at_start(struct timer_key *key, u64 fn)
{
	struct task_struct *task = (struct task_struct *)bpf_get_current_task();

	__builtin_memset(key, 0, sizeof(*key));
	key->tgid = bpf_get_current_pid_tgid() >> 32;
	key->kind = fn && fn == fn_hrtimer_wakeup ? sleeper_kind(task) : process_kind(fn);
	if (key->kind == KIND_KERNEL) {
		key->tgid = 0;
		key->fn = fn;
	}
}

SEC("tp_btf/hrtimer_start")
int BPF_PROG(hrtimer_start, struct hrtimer *timer)
{
	u64 address = (u64)timer, fn = (u64)BPF_CORE_READ(timer, function), now, soft;
	struct expiring *cur = this_cpus_timer();
	struct timer_use *use;
	struct timer_key key;
	struct armed armed, *old;

	old = bpf_map_lookup_elem(&armed_timers, &address);
	if (cur && cur->fn == fn && old && old->fn == fn) {
		/* A periodic timer that goes on: whoever is interrupted is not its
		 * owner. */
		__builtin_memset(&key, 0, sizeof(key));
		key.tgid = old->tgid;
		key.kind = old->kind;
		key.fn = key.tgid ? 0 : fn;
	} else {
		owner_at_start(&key, fn);
	}
	if (follow_mode != FOLLOW_ALL && !(key.tgid && follows(key.tgid)))
		return 0;
	if (!old || old->fn != fn || old->tgid != key.tgid || old->kind != key.kind) {
		armed.fn = fn;
		armed.tgid = key.tgid;
		armed.kind = key.kind;
		bpf_map_update_elem(&armed_timers, &address, &armed, BPF_ANY);
	}
	use = use_of_timer(&key);
	if (!use)
		return 0;
	add(&use->armed, 1);
	now = bpf_ktime_get_ns();
	soft = BPF_CORE_READ(timer, _softexpires) - BPF_CORE_READ(timer, base, offset);
	if ((s64)(soft - now) > 0)
		add(&use->asked, soft - now);
	return 0;
}

/* What a timer that expires belongs to. A sleeping thread's timer tells itself
 * whose it is, also if it was armed before the programs were here. */
static __always_inline void owner_at_expiry(struct timer_key *key, struct hrtimer *timer, u64 fn)
{
	u64 address = (u64)timer;
	struct armed *armed = bpf_map_lookup_elem(&armed_timers, &address);

	__builtin_memset(key, 0, sizeof(*key));
	if (armed && armed->fn == fn) {
		key->tgid = armed->tgid;
		key->kind = armed->kind;
	} else {
		/* Armed before the programs were here. */
		key->kind = process_kind(fn);
	}
	if (fn && fn == fn_hrtimer_wakeup) {
		struct task_struct *task = BPF_CORE_READ((struct hrtimer_sleeper *)timer, task);
		u32 tgid = BPF_CORE_READ(task, tgid);

		if (key->tgid != tgid || key->kind == KIND_KERNEL) {
			key->tgid = tgid;
			key->kind = BPF_CORE_READ(task, flags) & PF_KTHREAD ? KIND_KTHREAD : KIND_SYSCALL_UNKNOWN;
		}
	}
	if (!key->tgid)
		key->fn = fn;
}

SEC("tp_btf/hrtimer_expire_entry")
int BPF_PROG(hrtimer_expire_entry, struct hrtimer *timer)
{
	struct expiring *cur = this_cpus_timer();
	struct timer_use *use;
	s64 offset;

	if (!cur)
		return 0;
	cur->at = bpf_ktime_get_ns();
	cur->fn = (u64)BPF_CORE_READ(timer, function);
	owner_at_expiry(&cur->key, timer, cur->fn);
	if (follow_mode != FOLLOW_ALL) {
		/* One whose owner is unknown may be of a followed process: whom it
		 * wakes will tell. */
		if (cur->key.tgid ? !follows(cur->key.tgid) : cur->key.kind == KIND_KERNEL) {
			cur->fn = 0;
			return 0;
		}
	}
	offset = BPF_CORE_READ(timer, base, offset);
	cur->soft = BPF_CORE_READ(timer, _softexpires) - offset;
	cur->hard = BPF_CORE_READ(timer, node.expires) - offset;
	if (!is_counted(&cur->key))
		return 0;
	use = use_of_timer(&cur->key);
	if (!use)
		return 0;
	add(&use->expired, 1);
	if ((u32)bpf_get_current_pid_tgid() == 0)
		add(&use->expired_idle, 1);
	return 0;
}

SEC("tp_btf/hrtimer_expire_exit")
int BPF_PROG(hrtimer_expire_exit, struct hrtimer *timer)
{
	struct expiring *cur = this_cpus_timer();

	if (cur)
		cur->fn = 0;
	return 0;
}

/* The kernel's coarse timers, for all processes only: nearly all are its own. */
SEC("tp_btf/timer_expire_entry")
int BPF_PROG(timer_expire_entry, struct timer_list *timer)
{
	u64 fn = (u64)BPF_CORE_READ(timer, function);
	struct timer_use *use;
	struct timer_key key;

	__builtin_memset(&key, 0, sizeof(key));
	if (fn && fn == fn_process_timeout) {
		key.kind = KIND_WHEEL_SLEEP;
		key.tgid = BPF_CORE_READ((struct process_timer *)timer, task, tgid);
	} else {
		key.kind = KIND_WHEEL;
		key.fn = fn;
	}
	if (follow_mode != FOLLOW_ALL && !(key.tgid && follows(key.tgid)))
		return 0;
	use = use_of_timer(&key);
	if (!use)
		return 0;
	add(&use->expired, 1);
	if ((u32)bpf_get_current_pid_tgid() == 0)
		add(&use->expired_idle, 1);
	return 0;
}
