//go:build !linux

package ksleep

const sysFutex = ""
