//go:build cgo

package main

import _ "runtime/cgo" // C code before Go's in the file
