package bench

import (
	"math"
	"strconv"
	"time"
)

// unit is what a metric's figures are in; format writes them for a person.
type unit int

const (
	unitNs unit = iota
	unitUs
	unitMs
	unitS
	unitBytes
	unitCount
	unitRatio
)

// format writes v in the unit that suits its size.
func (u unit) format(v float64) string {
	if math.IsInf(v, 0) || math.IsNaN(v) {
		return "-"
	}
	switch u {
	case unitNs:
		return formatSpan(v * float64(time.Nanosecond))
	case unitUs:
		return formatSpan(v * float64(time.Microsecond))
	case unitMs:
		return formatSpan(v * float64(time.Millisecond))
	case unitS:
		return formatSpan(v * float64(time.Second))
	case unitBytes:
		return digits(v) + " B"
	case unitRatio:
		return digits(v) + "x"
	}
	if math.Abs(v) < 0.005 { // a share of a count
		return "0"
	}
	return digits(v)
}

// formatSpan writes ns nanoseconds.
func formatSpan(ns float64) string {
	switch a := math.Abs(ns); {
	case a == 0:
		return "0"
	case a < 1e3:
		return digits(ns) + " ns"
	case a < 1e6:
		return digits(ns/1e3) + " us"
	case a < 1e9:
		return digits(ns/1e6) + " ms"
	}
	return digits(ns/1e9) + " s"
}

// digits writes v, which is finite, with three significant ones.
func digits(v float64) string {
	switch a := math.Abs(v); {
	case a == 0:
		return "0"
	case a < 0.005:
		return strconv.FormatFloat(v, 'g', 2, 64)
	case a < 9.995:
		return trimZeros(strconv.FormatFloat(v, 'f', 2, 64))
	case a < 99.95:
		return trimZeros(strconv.FormatFloat(v, 'f', 1, 64))
	}
	return strconv.FormatFloat(v, 'f', 0, 64)
}

// trimZeros takes the zeros behind the point away, and the point with them.
func trimZeros(s string) string {
	for s[len(s)-1] == '0' {
		s = s[:len(s)-1]
	}
	if s[len(s)-1] == '.' {
		s = s[:len(s)-1]
	}
	return s
}

// count writes a number of timers: 1M, 250k.
func count(n int) string {
	switch {
	case n >= 1_000_000 && n%100_000 == 0:
		return strconv.FormatFloat(float64(n)/1e6, 'f', -1, 64) + "M"
	case n >= 1000 && n%100 == 0:
		return strconv.FormatFloat(float64(n)/1e3, 'f', -1, 64) + "k"
	}
	return strconv.Itoa(n)
}

// formatSpread writes the middle and the interval of a comparison.
func formatSpread(r *Row) (middle, spread string) {
	m, low, high := float64(r.Compare.Median), float64(r.Compare.Low), float64(r.Compare.High)
	if r.Compare.Kind == ByRatio {
		return ratio(m) + "x", ratio(low) + " .. " + ratio(high)
	}
	signed := func(v float64) string {
		s := r.spec.unit.format(v)
		if v > 0 && s != "0" {
			s = "+" + s
		}
		return s
	}
	return signed(m), signed(low) + " .. " + signed(high)
}

// ratio writes how many times better.
func ratio(v float64) string {
	if v >= 1000 { // infinite too
		return ">999"
	}
	return digits(v)
}
