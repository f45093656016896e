/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Where the time between a timer's deadline and its thread goes. */
#pragma once

#include "common.h"
#include "timers.h"

/* A thread that is followed. Each stage of its way is written under the run
 * queue's lock or before the thread is queued, one CPU at a time. */
struct waiting {
	u64 runnable; /* since when it waits for a CPU; 0: it does not */
	u64 expired;  /* when the timer that has woken it expired; 0: no timer has */
	u64 soft, hard;
	u64 fn;
	u32 kind;
	u32 tgid;
	/* Of its run queue, when it began to wait. */
	u64 queue;
	u64 throttled_time;
	u32 throttled;
	u32 pad;
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16384);
	__type(key, u32); /* tid */
	__type(value, struct waiting);
} threads SEC(".maps");

struct lateness_key {
	u32 tgid;
	u32 kind; /* KIND_ANY: all waits for a CPU; PART_RUNQUEUE and PART_THROTTLED only */
};

struct lateness {
	struct hist part[PARTS];
	char comm[16];
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 2048);
	__type(key, struct lateness_key);
	__type(value, struct lateness);
} latenesses SEC(".maps");

/* A wake-up later than this is told at once; 0: none. */
const volatile u64 late_threshold = 0;

/* An unmodified zero value for maps whose values are too big for the stack. */
static const struct lateness no_lateness;

static __always_inline struct waiting *thread_of(struct task_struct *p)
{
	u32 tid = p->pid;
	struct waiting *w = bpf_map_lookup_elem(&threads, &tid), new;

	if (w || !follows(p->tgid))
		return w;
	__builtin_memset(&new, 0, sizeof(new));
	new.tgid = p->tgid;
	bpf_map_update_elem(&threads, &tid, &new, BPF_NOEXIST);
	w = bpf_map_lookup_elem(&threads, &tid);
	if (!w)
		drop(DROP_THREAD);
	return w;
}

static __always_inline struct lateness *lateness_of(struct task_struct *p, u32 kind)
{
	struct lateness_key key = { .tgid = p->tgid, .kind = kind };
	struct lateness *l = bpf_map_lookup_elem(&latenesses, &key);

	if (l)
		return l;
	bpf_map_update_elem(&latenesses, &key, &no_lateness, BPF_NOEXIST);
	l = bpf_map_lookup_elem(&latenesses, &key);
	if (!l) {
		drop(DROP_LATENESS);
		return 0;
	}
	BPF_CORE_READ_STR_INTO(&l->comm, p, comm);
	return l;
}

/* Throttling is told by the run queue of the thread's cgroup on its CPU: by the
 * time that the kernel counts there, or, where it does not yet, by whether the
 * thread began to wait while the queue was throttled. */
static __always_inline void note_queue(struct waiting *w, struct task_struct *p)
{
	struct cfs_rq *queue = 0;

	w->queue = 0;
	w->throttled = 0;
	if (!bpf_core_field_exists(p->se.cfs_rq) || !bpf_core_field_exists(queue->throttle_count))
		return;
	queue = BPF_CORE_READ(p, se.cfs_rq);
	if (!queue)
		return;
	w->queue = (u64)queue;
	w->throttled = BPF_CORE_READ(queue, throttle_count) > 0;
	if (bpf_core_field_exists(queue->throttled_clock_self_time))
		w->throttled_time = BPF_CORE_READ(queue, throttled_clock_self_time);
}

static __always_inline u64 throttled_since(struct waiting *w, struct task_struct *p, u64 wait)
{
	struct cfs_rq *queue = 0;
	u64 t = 0;

	if (!w->queue)
		return 0;
	queue = BPF_CORE_READ(p, se.cfs_rq);
	if ((u64)queue == w->queue && bpf_core_field_exists(queue->throttled_clock_self_time))
		t = BPF_CORE_READ(queue, throttled_clock_self_time) - w->throttled_time;
	else if (w->throttled)
		t = wait;
	return t < wait ? t : wait;
}

/* A timer's function wakes a thread. */
SEC("tp_btf/sched_waking")
int BPF_PROG(sched_waking, struct task_struct *p)
{
	struct expiring *cur = this_cpus_timer();
	struct timer_use *use;
	struct waiting *w;

	if (!cur || !cur->fn)
		return 0;
	use = is_counted(&cur->key) ? use_of_timer(&cur->key) : 0;
	if (use)
		add(&use->woken, 1);
	w = thread_of(p);
	/* Woken already, and not yet running: the first timer counts. */
	if (!w || w->expired)
		return 0;
	w->soft = cur->soft;
	w->hard = cur->hard;
	w->fn = cur->key.fn;
	w->kind = cur->key.kind;
	w->expired = cur->at;
	return 0;
}

static __always_inline u64 from_to(u64 from, u64 to)
{
	return (s64)(to - from) > 0 ? to - from : 0;
}

static __always_inline void tell_late(struct waiting *w, struct task_struct *p, struct task_struct *before, u64 now,
				      u64 part[PARTS])
{
	struct event *e = bpf_ringbuf_reserve(&events, sizeof(*e), 0);

	if (!e) {
		drop(DROP_EVENT);
		return;
	}
	__builtin_memset(e, 0, sizeof(*e));
	e->type = EVENT_LATE;
	e->tgid = p->tgid;
	e->tid = p->pid;
	e->cpu = bpf_get_smp_processor_id();
	e->at = now;
	e->fn = w->fn;
	e->kind = w->kind;
	__builtin_memcpy(e->part, part, sizeof(e->part));
	BPF_CORE_READ_STR_INTO(&e->comm, p, comm);
	if (before) {
		e->before_tgid = before->tgid;
		BPF_CORE_READ_STR_INTO(&e->before_comm, before, comm);
	}
	bpf_ringbuf_submit(e, 0);
}

/* A followed thread gets its CPU, from before if that is not null. */
static __always_inline void running(struct waiting *w, struct task_struct *p, struct task_struct *before, u64 now)
{
	u64 part[PARTS], wait = from_to(w->runnable, now), held = throttled_since(w, p, wait);
	struct lateness *l = lateness_of(p, KIND_ANY);
	u64 expired = w->expired, soft = w->soft, hard = w->hard, runnable = w->runnable;
	int i;

	w->runnable = 0;
	w->expired = 0;
	if (l) {
		observe(&l->part[PART_THROTTLED], held);
		observe(&l->part[PART_RUNQUEUE], wait - held);
	}
	if (!expired)
		return;
	part[PART_SLACK] = from_to(soft, expired < hard ? expired : hard);
	part[PART_INTERRUPT] = from_to(hard, expired);
	part[PART_WAKE] = from_to(expired, runnable);
	part[PART_THROTTLED] = held;
	part[PART_RUNQUEUE] = wait - held;
	part[PART_TOTAL] = from_to(soft, now);
	l = lateness_of(p, w->kind);
	if (l) {
		/* Unrolled, as the verifier of older kernels wants it. */
#pragma unroll
		for (i = 0; i < PARTS; i++)
			observe(&l->part[i], part[i]);
	}
	if (late_threshold && part[PART_TOTAL] >= late_threshold)
		tell_late(w, p, before, now, part);
}

static __always_inline int runnable(struct task_struct *p)
{
	struct waiting *w = thread_of(p);

	if (!w)
		return 0;
	w->runnable = bpf_ktime_get_ns();
	note_queue(w, p);
	/* Woken before it had given up its CPU: it goes on at once, and no switch
	 * will tell. */
	if (p->on_cpu) {
		if (w->expired)
			running(w, p, 0, w->runnable);
		w->runnable = 0;
	}
	return 0;
}

SEC("tp_btf/sched_wakeup")
int BPF_PROG(sched_wakeup, struct task_struct *p)
{
	return runnable(p);
}

SEC("tp_btf/sched_wakeup_new")
int BPF_PROG(sched_wakeup_new, struct task_struct *p)
{
	return runnable(p);
}

static __always_inline bool stays_runnable(struct task_struct *p)
{
	if (bpf_core_field_exists(p->__state))
		return p->__state == 0;
	return BPF_CORE_READ((struct task_struct___before_5_14 *)p, state) == 0;
}

SEC("tp_btf/sched_switch")
int BPF_PROG(sched_switch, bool preempt, struct task_struct *prev, struct task_struct *next)
{
	u64 now = bpf_ktime_get_ns();
	struct waiting *w;
	u32 tid;

	tid = next->pid;
	if (tid && (follow_mode == FOLLOW_ALL || follows(next->tgid))) {
		w = bpf_map_lookup_elem(&threads, &tid);
		if (w && w->runnable)
			running(w, next, prev, now);
	}
	tid = prev->pid;
	if (!tid || (follow_mode != FOLLOW_ALL && !follows(prev->tgid)))
		return 0;
	if (preempt || stays_runnable(prev)) {
		w = thread_of(prev);
		if (w) {
			w->runnable = now;
			note_queue(w, prev);
		}
		return 0;
	}
	/* It sleeps. What is left of an earlier wake-up is void. */
	w = bpf_map_lookup_elem(&threads, &tid);
	if (w) {
		w->runnable = 0;
		w->expired = 0;
	}
	return 0;
}

SEC("tp_btf/sched_process_exit")
int BPF_PROG(sched_process_exit, struct task_struct *p)
{
	u32 tid = p->pid, tgid = p->tgid;

	bpf_map_delete_elem(&threads, &tid);
	if (BPF_CORE_READ(p, signal, live.counter) > 0 || !follows(tgid))
		return 0;
	if (follow_mode == FOLLOW_SET)
		bpf_map_delete_elem(&followed, &tgid);
	if (follow_mode != FOLLOW_ALL)
		tell(EVENT_EXIT, tgid, 0, 0);
	return 0;
}

SEC("tp_btf/sched_process_fork")
int BPF_PROG(sched_process_fork, struct task_struct *parent, struct task_struct *child)
{
	u32 tgid = child->tgid, one = 1;

	if (!follow_children || tgid == parent->tgid || !follows(parent->tgid))
		return 0;
	if (bpf_map_update_elem(&followed, &tgid, &one, BPF_ANY))
		drop(DROP_FOLLOWED);
	return 0;
}

SEC("tp_btf/sched_process_exec")
int BPF_PROG(sched_process_exec, struct task_struct *p)
{
	if (follow_mode != FOLLOW_ALL && follows(p->tgid))
		tell(EVENT_EXEC, p->tgid, 0, 0);
	return 0;
}
