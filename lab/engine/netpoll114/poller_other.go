//go:build !linux

package netpoll114

// poller is what other systems lack: open is never called.
type poller struct{}

func (p *poller) open() error     { return nil }
func (p *poller) acquire() bool   { return false }
func (p *poller) release()        {}
func (p *poller) wait(int) int    { return 0 }
func (p *poller) interrupt() bool { return false }
