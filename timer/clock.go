package timer

import "time"

// Now returns the current time of the service's clock: that of time.Now, but for
// a [Manual] service, whose virtual time it is.
func (s *Service) Now() time.Time { return s.e.group.Time() }
