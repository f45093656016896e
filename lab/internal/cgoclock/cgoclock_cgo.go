//go:build cgo && linux

package cgoclock

/*
#include <stdint.h>
#include <time.h>

static int64_t detent_raw(void) {
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC_RAW, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static int64_t detent_raws(int64_t n) {
	int64_t last = 0;
	while (n-- > 0)
		last = detent_raw();
	return last;
}
*/
import "C"

func available() error { return nil }

func raw() int64 { return int64(C.detent_raw()) }

func raws(n int) int64 { return int64(C.detent_raws(C.int64_t(n))) }
