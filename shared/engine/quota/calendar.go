package quota

import (
	"cmp"
	"slices"
)

// whole is the quota of one minute in units. A call costs the larger of its shares of the minute's requests and tokens,
// so that one number holds for both limits.
const whole = 1_000_000

// Limits of a calendar.
const (
	bookable = whole / 10 * 9 // part of a minute that can be booked; the rest is for users who have booked nothing
	grace    = 2              // minutes that a booking outlives its own: a run can be woken late
	horizon  = 60             // minutes that can be booked
	maxTurns = 2_000          // bookings, which all instances read and write together
)

// A calendar is a model's quota in the present minute and the bookings of the runs that wait for it. All instances
// share it as one document. It knows users only by hashes of their IDs.
type calendar struct {
	Format int    `json:"format"`
	Minute int64  `json:"minute"`          // the present minute, counted from 1970 by the store's clock
	Taken  int64  `json:"taken"`           // units of the minute that calls and slices have
	Turns  []turn `json:"turns,omitempty"` // ordered by minute
}

// A turn is a booked call.
type turn struct {
	Minute int64  `json:"t"`
	User   uint32 `json:"u"`
	Cost   int64  `json:"c"`
	// Moved is set if the turn was moved here from an earlier minute. Its run still waits for that minute, and then
	// reads how much longer it must wait.
	Moved bool `json:"m,omitempty"`
}

// An ask is a call that asks for its part of the quota.
type ask struct {
	user   uint32
	cost   int64
	waited bool // the run has waited since its last answer, so it may have a turn
	books  bool // the run can wait for a turn
}

// advance moves the calendar on to the minute. Turns that no run has come for lapse.
func (c *calendar) advance(minute int64) {
	if minute <= c.Minute {
		return
	}
	c.Minute, c.Taken = minute, 0
	c.Turns = slices.DeleteFunc(c.Turns, func(t turn) bool { return t.Minute < minute-grace })
}

// answer gives the call its part of the present minute and returns 0, or returns the minute for which it must wait.
func (c *calendar) answer(a ask) (until int64) {
	if a.waited {
		granted, until := c.claim(a)
		if granted || until > 0 {
			return until
		}
	}
	most := int64(whole)
	if slices.ContainsFunc(c.Turns, func(t turn) bool { return t.User == a.user }) {
		most = bookable
	}
	switch used := c.Taken + c.due(); {
	case used == 0 || used+a.cost <= most:
		c.Taken += a.cost
		return 0
	case a.books:
		return c.book(a)
	}
	return c.Minute + 1
}

// due returns the cost of the turns whose runs can come now.
func (c *calendar) due() (cost int64) {
	for _, t := range c.Turns {
		if t.Minute <= c.Minute {
			cost += t.Cost
		}
	}
	return cost
}

// claim uses a turn of the user that is due. If none is due, it returns the minute of the turn for which the run must
// wait, or 0 if there is none.
func (c *calendar) claim(a ask) (granted bool, until int64) {
	for i, t := range c.Turns {
		switch {
		case t.User != a.user:
		case t.Minute <= c.Minute:
			c.Turns = slices.Delete(c.Turns, i, i+1)
			if granted = c.Taken == 0 || c.Taken+a.cost <= whole; granted {
				c.Taken += a.cost
			}
			return granted, 0
		case t.Moved:
			c.Turns[i].Moved = false
			return false, t.Minute
		case t.Minute == c.Minute+1:
			until = t.Minute // the clock that woke the run is early, unless a moved turn follows
		}
	}
	return false, until
}

// book returns the minute of a new turn for the call, or the minute after the calendar's end if no minute has room: the
// run must then ask again.
func (c *calendar) book(a ask) int64 {
	if len(c.Turns) >= maxTurns {
		return c.end()
	}
	own := a.cost
	for _, t := range c.Turns {
		if t.User == a.user {
			own += t.Cost
		}
	}
	return c.place(turn{Minute: c.Minute + 1, User: a.user, Cost: a.cost}, own)
}

// end returns the first minute that cannot be booked.
func (c *calendar) end() int64 { return c.Minute + horizon + 1 }

// place adds the turn in its minute or the next one that has room, and returns that minute. own is the cost of the
// user's turns until then. The room includes turns of users who have more until then; those move to a later minute. So
// users take turns, however many runs of one user wait. A turn that finds no room before the calendar's end lapses.
func (c *calendar) place(t turn, own int64) int64 {
	levels, until := make([]int64, len(c.Turns)), map[uint32]int64{}
	for i, u := range c.Turns {
		until[u.User] += u.Cost
		levels[i] = until[u.User]
	}
	for ; t.Minute < c.end(); t.Minute++ {
		moved, fits := c.room(t, own, levels)
		if !fits {
			continue
		}
		earlier := c.Turns
		c.Turns = make([]turn, 0, len(earlier)+1)
		for i, u := range earlier {
			if !slices.Contains(moved, i) {
				c.Turns = append(c.Turns, u)
			}
		}
		at, _ := slices.BinarySearchFunc(c.Turns, t.Minute+1, byMinute)
		c.Turns = slices.Insert(c.Turns, at, t)
		for _, i := range moved {
			u := earlier[i]
			u.Minute, u.Moved = t.Minute+1, true
			c.place(u, levels[i])
		}
		break
	}
	return t.Minute
}

func byMinute(t turn, minute int64) int { return cmp.Compare(t.Minute, minute) }

// room returns the turns that must leave t's minute to make room for t, if it has room. Only those of users who have
// more than own until then leave, and those of the users with the most leave first.
func (c *calendar) room(t turn, own int64, levels []int64) (moved []int, fits bool) {
	free := int64(bookable)
	first, _ := slices.BinarySearchFunc(c.Turns, t.Minute, byMinute)
	for i := first; i < len(c.Turns) && c.Turns[i].Minute == t.Minute; i++ {
		free -= c.Turns[i].Cost
		if levels[i] > own && c.Turns[i].User != t.User {
			moved = append(moved, i)
		}
	}
	if free >= t.Cost || free == bookable {
		return nil, true
	}
	slices.SortStableFunc(moved, func(i, j int) int { return cmp.Compare(levels[j], levels[i]) })
	for n, i := range moved {
		if free += c.Turns[i].Cost; free >= t.Cost || free == bookable {
			return moved[:n+1], true
		}
	}
	return nil, false
}

// slice takes units for calls that have not asked yet: multiples of the smallest call's cost, and at most an eighth
// of the rest. While runs wait, it takes none.
func (c *calendar) slice(want, smallest int64) int64 {
	if len(c.Turns) > 0 {
		return 0
	}
	got := max(0, min(want, (whole-c.Taken)/8))
	got -= got % smallest
	c.Taken += got
	return got
}
