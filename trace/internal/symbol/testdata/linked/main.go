// A program that tells where one of its functions is, and waits.
package main

import (
	"fmt"
	"io"
	"os"
	"runtime"
)

//go:noinline
func place() (uintptr, int) {
	pc, _, line, _ := runtime.Caller(0)
	return pc, line
}

func main() {
	fmt.Println(place())
	io.Copy(io.Discard, os.Stdin)
}
