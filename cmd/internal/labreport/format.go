package labreport

import (
	"fmt"
	"math"
	"strconv"

	"github.com/detent-go/detent/lab"
)

// value formats a figure, "" if there is none.
func value(v *float64, unit lab.Unit) string {
	switch {
	case v == nil:
		return ""
	case unit == lab.Nanoseconds:
		return scaled(*v, 1000, "ns", "µs", "ms", "s")
	case unit == "Hz":
		return scaled(*v, 1000, "Hz", "kHz", "MHz", "GHz")
	case unit == lab.PerSecond:
		return digits(*v) + "/s"
	case unit == lab.Count:
		return digits(*v)
	}
	return digits(*v) + " " + string(unit)
}

// scaled takes the largest unit of which there is one at least.
func scaled(v, step float64, units ...string) string {
	for _, unit := range units[:len(units)-1] {
		// 999.96 is 1000 when it is printed.
		if math.Abs(v) < step-0.5 {
			return digits(v) + " " + unit
		}
		v /= step
	}
	return digits(v) + " " + units[len(units)-1]
}

// digits are three, or as many as stand before the point.
func digits(v float64) string {
	a := math.Abs(v)
	switch {
	case a >= 99.95 || v == math.Trunc(v):
		return strconv.FormatFloat(v, 'f', 0, 64)
	case a >= 9.995:
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.2f", v)
}

// ratio says how many times as much is here.
func ratio(here, published *float64) string {
	if here == nil || published == nil || *published == 0 {
		return ""
	}
	q := *here / *published
	if q != 0 && q < 0.01 {
		return fmt.Sprintf("1/%.0f", 1/q)
	}
	return digits(q) + "×"
}

func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
