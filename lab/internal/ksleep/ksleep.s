// This file is empty: its presence lets call_linkname_linux.go declare functions
// without a body.
