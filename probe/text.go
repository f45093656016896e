package probe

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

func containsAll(text string, parts []string) bool {
	for _, p := range parts {
		if !strings.Contains(text, p) {
			return false
		}
	}
	return true
}

// enclosed returns what stands between two parts of a text.
func enclosed(text, before, after string) (string, bool) {
	_, rest, ok := strings.Cut(text, before)
	if !ok {
		return "", false
	}
	found, _, ok := strings.Cut(rest, after)
	return found, ok
}

// number reads the decimal number that follows a part of a text.
func number(text, before string) (int64, bool) {
	_, rest, ok := strings.Cut(text, before)
	if !ok {
		return 0, false
	}
	rest = strings.TrimLeft(rest, " ")
	end := 0
	for end < len(rest) && (rest[end] >= '0' && rest[end] <= '9' || end == 0 && rest[0] == '-') {
		end++
	}
	n, err := strconv.ParseInt(rest[:end], 10, 64)
	return n, err == nil
}

// plural is "1 time", "2 times".
func plural[N int | int64](n N, word string) string {
	if n == 1 {
		return "1 " + word
	}
	return fmt.Sprintf("%d %ss", n, word)
}

// short is a duration for people: three digits, or hours, minutes and seconds.
func short(d time.Duration) string {
	switch a := max(d, -d); {
	case a >= time.Minute:
		text := d.Round(time.Second).String()
		if a >= time.Hour {
			text = d.Round(time.Minute).String()
		}
		for _, zero := range []string{"m0s", "h0m"} {
			if strings.HasSuffix(text, zero) {
				text = text[:len(text)-2]
			}
		}
		return text
	default:
		grain := time.Duration(1)
		for a >= 1000*grain {
			grain *= 10
		}
		return d.Round(grain).String()
	}
}

// percent has two digits that count.
func percent(part, whole float64) string {
	if whole == 0 {
		return "0 %"
	}
	p := 100 * part / whole
	switch {
	case p >= 10 || p == 0:
		return fmt.Sprintf("%.0f %%", p)
	case p >= 1:
		return fmt.Sprintf("%.1f %%", p)
	}
	return fmt.Sprintf("%.2g %%", p)
}

// ofCPUs is a number of CPUs that need not be whole.
func ofCPUs(n float64) string {
	if n == 1 {
		return "1 CPU"
	}
	return strconv.FormatFloat(n, 'g', 3, 64) + " CPUs"
}
