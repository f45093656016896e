//go:build !lab_rfyiamcool

package peers

import (
	"errors"
	"fmt"
)

// newRfyIamCool has nothing to open: a program that links the library has a goroutine
// of it ticking, whether it uses it or not, and the library has no licence that would
// let such a program be passed on.
func newRfyIamCool() (library, error) {
	return nil, fmt.Errorf("rfyiamcool/go-timewheel, which has no licence, is left out unless built with -tags lab_rfyiamcool: %w", errors.ErrUnsupported)
}
