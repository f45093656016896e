// Package machine describes the machine that figures were measured on, and reads
// what this process has used of it.
package machine
