package timer

import "time"

// AfterFunc is [Service.AfterFunc] of the default service.
func AfterFunc(d time.Duration, f func()) *Timer { return std().AfterFunc(d, f) }

// NewTimer is [Service.NewTimer] of the default service.
func NewTimer(d time.Duration) *Timer { return std().NewTimer(d) }

// After is [Service.After] of the default service.
func After(d time.Duration) <-chan time.Time { return std().After(d) }

// Sleep is [Service.Sleep] of the default service.
func Sleep(d time.Duration) { std().Sleep(d) }

// NewTicker is [Service.NewTicker] of the default service.
func NewTicker(d time.Duration) *Ticker { return std().NewTicker(d) }

// Tick is [Service.Tick] of the default service.
func Tick(d time.Duration) <-chan time.Time { return std().Tick(d) }
