/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The kernel's types that the programs here read, each with the fields used and
 * no others: at load time every access is moved to where the running kernel has
 * the field (preserve_access_index), so neither offsets nor the rest matter. A
 * field that some kernels do not have is asked for with bpf_core_field_exists
 * before it is read. */
#pragma once

typedef unsigned char __u8;
typedef short int __s16;
typedef unsigned short __u16;
typedef int __s32;
typedef unsigned int __u32;
typedef long long int __s64;
typedef unsigned long long __u64;
typedef __u8 u8;
typedef __s32 s32;
typedef __u32 u32;
typedef __s64 s64;
typedef __u64 u64;
typedef __u16 __be16;
typedef __u32 __be32;
typedef __u32 __wsum;
typedef __s64 ktime_t;
typedef _Bool bool;
enum { false = 0, true = 1 };

enum bpf_map_type {
	BPF_MAP_TYPE_HASH = 1,
	BPF_MAP_TYPE_ARRAY = 2,
	BPF_MAP_TYPE_PERCPU_ARRAY = 6,
	BPF_MAP_TYPE_STACK_TRACE = 7,
	BPF_MAP_TYPE_LRU_HASH = 9,
	BPF_MAP_TYPE_RINGBUF = 27,
};

enum {
	BPF_ANY = 0,
	BPF_NOEXIST = 1,
};

enum { BPF_F_USER_STACK = 1 << 8 };

/* Which helpers the running kernel has is read from its own enum of this name. */
enum bpf_func_id {
	BPF_FUNC_get_current_task_btf = 158,
	BPF_FUNC_task_pt_regs = 175,
};

/* include/linux/sched.h */
#define PF_KTHREAD 0x00200000

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

#if defined(__TARGET_ARCH_x86)
struct pt_regs {
	unsigned long ax;
	unsigned long orig_ax;
	unsigned long ip;
	unsigned long sp;
	unsigned long bp;
	/* Go's fourth integer argument is passed here. */
	unsigned long di;
};
#elif defined(__TARGET_ARCH_arm64)
struct user_pt_regs {
	__u64 regs[31];
	__u64 sp;
	__u64 pc;
};
struct pt_regs {
	struct user_pt_regs user_regs;
	s32 syscallno;
};
#endif

struct thread_info {
	unsigned long flags;
	u32 status; /* x86 */
};

typedef struct {
	int counter;
} atomic_t;

struct signal_struct {
	atomic_t live;
};

struct cfs_rq {
	int throttle_count;
	u64 throttled_clock_self_time;
};

struct sched_entity {
	struct cfs_rq *cfs_rq;
};

struct task_struct {
	struct thread_info thread_info;
	unsigned int __state;
	unsigned int flags;
	int on_cpu;
	struct sched_entity se;
	int pid;
	int tgid;
	char comm[16];
	struct signal_struct *signal;
};

/* Before Linux 5.14. */
struct task_struct___before_5_14 {
	long state;
};

struct hrtimer_clock_base {
	ktime_t offset; /* of the base's clock against CLOCK_MONOTONIC */
};

struct timerqueue_node {
	ktime_t expires;
};

struct hrtimer {
	struct timerqueue_node node;
	ktime_t _softexpires;
	void *function;
	struct hrtimer_clock_base *base;
};

struct hrtimer_sleeper {
	struct hrtimer timer;
	struct task_struct *task;
};

struct timer_list {
	void *function;
};

struct process_timer {
	struct timer_list timer;
	struct task_struct *task;
};

struct bpf_perf_event_data;

#pragma clang attribute pop
