package doctor

import "time"

// duration formats one that may be unknown.
func duration(d time.Duration) string {
	if d == 0 {
		return ""
	}
	return nanos(float64(d))
}
