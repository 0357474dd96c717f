package unit

import "time"

// clock is the time of the store, as far as this process knows it from the store's answers. A lease of another process
// must not count as lapsed too soon, and an own lease must not count as valid too long. So the clock has two readings:
// [clock.earliest] for the leases of others, and [clock.latest] for own ones.
type clock struct {
	local func() time.Time // the clock of this process

	stored, received time.Time // the same moment by both clocks, or the store's is earlier
	sent             time.Time // local time of the request; not later than stored
}

// observe sets the clock from the time of a store's answer. sent is the local time of the request.
func (c *clock) observe(t, sent time.Time) {
	if t.After(c.stored) {
		c.stored, c.received, c.sent = t, c.local(), sent
	}
}

// earliest returns the time by the store's clock, or an earlier time if the store's last answer took long.
func (c *clock) earliest() time.Time {
	return c.stored.Add(max(0, c.local().Sub(c.received))).UTC().Truncate(time.Microsecond)
}

// latest returns the time by the store's clock, or a later time if the store's last answer took long.
func (c *clock) latest() time.Time { return c.stored.Add(max(0, c.local().Sub(c.sent))) }
