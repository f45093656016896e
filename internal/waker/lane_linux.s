//go:build linux && !detent_portable

// This file is empty: its presence lets lane_linux.go and witness_linux.go
// declare functions without a body.
