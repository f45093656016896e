// This file is empty: its presence lets block_linkname_linux.go declare functions
// without a body.
