//go:build ignore
// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause

/* The programs of package trace. vmlinux.h says how they fit every kernel. */

#include "common.h"
#include "clock.h"
#include "timers.h"
#include "lateness.h"
#include "request.h"

char _license[] SEC("license") = "Dual BSD/GPL";

/* So that Go gets these too. */
const struct event *event_ __attribute__((unused));
const enum call *call_constants_ __attribute__((unused));
const enum drop *drop_constants_ __attribute__((unused));
const enum event_type *event_type_constants_ __attribute__((unused));
const enum kind *kind_constants_ __attribute__((unused));
const enum part *part_constants_ __attribute__((unused));
const enum where *where_constants_ __attribute__((unused));
