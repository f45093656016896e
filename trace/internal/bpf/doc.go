// Package bpf holds the programs of package trace, in C in src, and as they are
// compiled for amd64 and arm64, so that whoever builds detent needs no clang.
//
// After a change in src, with clang 14 and libbpf's headers (on Debian: clang,
// llvm and libbpf-dev):
//
//	go generate ./trace/...
//
// TestFresh fails where that has been forgotten.
package bpf
