// This file is empty: its presence lets pin_linkname.go declare functions
// without a body.
