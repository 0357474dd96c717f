package process

import "time"

// SetDrain replaces drain, and returns a function that restores it.
func SetDrain(d time.Duration) (restore func()) {
	was := drain
	drain = d
	return func() { drain = was }
}
