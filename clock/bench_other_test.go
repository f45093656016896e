//go:build !linux || detent_portable

package clock

var otherReadings []reading
