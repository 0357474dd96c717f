package quota

import (
	"math/rand"
	"testing"
)

// call asks for one of 100 requests a minute.
func call(user uint32, waited bool) ask {
	return ask{user: user, cost: whole / 100, waited: waited, books: true}
}

// queue lets runs of users ask in this order, and wakes each at the minute that it was given. It returns the minute in
// which each run was granted its call, and how often runs asked. It fails the test if a minute has more than its quota.
func queue(t *testing.T, c *calendar, users []uint32) (granted []int64, asks int) {
	t.Helper()
	granted = make([]int64, len(users))
	due := make([]int64, len(users))
	for left := len(users); left > 0; c.advance(c.Minute + 1) {
		for i, user := range users {
			if granted[i] > 0 || due[i] > c.Minute {
				continue
			}
			asks++
			if due[i] = c.answer(call(user, due[i] > 0)); due[i] == 0 {
				granted[i] = c.Minute
				left--
			} else if due[i] <= c.Minute {
				t.Fatalf("in minute %d, run %d must wait until %d", c.Minute, i, due[i])
			}
		}
		if c.Taken > whole {
			t.Fatalf("minute %d has %d units", c.Minute, c.Taken)
		}
	}
	return granted, asks
}

// TestCalendarOfThousandRuns lets a thousand runs ask at once for a quota of 100 a minute: 100 are answered at once and
// 90 in each later minute, and every run wakes once.
func TestCalendarOfThousandRuns(t *testing.T) {
	for name, user := range map[string]func(i int) uint32{
		"one user":      func(int) uint32 { return 1 },
		"a user a run":  func(i int) uint32 { return uint32(i) },
		"users in turn": func(i int) uint32 { return uint32(i % 50) },
	} {
		c := &calendar{Minute: 100}
		var users []uint32
		for i := range 1000 {
			users = append(users, user(i))
		}
		granted, asks := queue(t, c, users)
		in := map[int64]int{}
		for _, minute := range granted {
			in[minute-100]++
		}
		if in[0] < 90 || in[0] > 100 || in[5] != 90 || in[10]+in[11] == 0 || in[12] > 0 || asks > 2000 {
			t.Errorf("%s: %d asks, granted by minute %v", name, asks, in)
		}
	}
}

// TestCalendarOneRunAmongHundreds lets a user ask whose one run comes after five hundred of another user. It is
// answered in the next minute at the latest, and only one run of the other user waits longer for it.
func TestCalendarOneRunAmongHundreds(t *testing.T) {
	c := &calendar{Minute: 100}
	for range 500 {
		c.answer(call(1, false))
	}
	before := len(c.Turns)
	if until := c.answer(call(2, false)); until > 0 { // from the tenth that cannot be booked
		t.Logf("the first waits until %d", until)
	}
	c.Taken = whole
	if until := c.answer(call(3, false)); until != 101 {
		t.Errorf("one run waits until %d", until)
	}
	moved := 0
	for _, turn := range c.Turns {
		if turn.Moved {
			moved++
		}
	}
	if moved > 2 || len(c.Turns) > before+2 {
		t.Errorf("%d turns were moved, %d before, %d now", moved, before, len(c.Turns))
	}
}

// TestCalendarOfUsers compares the waits of users with many and with few runs, in any order of their asks: a user's
// n-th run is answered no later than if each user before it had n runs.
func TestCalendarOfUsers(t *testing.T) {
	random := rand.New(rand.NewSource(1))
	for range 30 {
		var users []uint32
		runs := map[uint32]int{}
		for user := range uint32(1 + random.Intn(12)) {
			runs[user] = 1 + random.Intn(100)
			for range runs[user] {
				users = append(users, user)
			}
		}
		random.Shuffle(len(users), func(i, j int) { users[i], users[j] = users[j], users[i] })
		c := &calendar{Minute: 100}
		granted, asks := queue(t, c, users)
		last := map[uint32]int64{}
		for i, minute := range granted {
			last[users[i]] = max(last[users[i]], minute-100)
		}
		for user, n := range runs {
			ahead := 0
			for _, m := range runs {
				ahead += min(n, m)
			}
			if most := int64(ahead/90) + 2; last[user] > most {
				t.Errorf("%v: user %d with %d runs waits %d minutes instead of %d", runs, user, n, last[user], most)
			}
		}
		if asks > 4*len(users) {
			t.Errorf("%d runs asked %d times", len(users), asks)
		}
	}
}

// TestCalendarOfCancelledRuns checks that turns of runs that were cancelled do not hold up others for longer than the
// grace.
func TestCalendarOfCancelledRuns(t *testing.T) {
	c := &calendar{Minute: 100}
	for range 1000 {
		c.answer(call(1, false))
	}
	if len(c.Turns) != 900 {
		t.Fatalf("%d turns", len(c.Turns))
	}
	c.advance(101 + 10 + grace)
	if len(c.Turns) != 0 || c.answer(call(2, false)) != 0 {
		t.Errorf("%d turns are left", len(c.Turns))
	}
}

// TestCalendarOtherClocks checks runs that are woken by processes with other clocks.
func TestCalendarOtherClocks(t *testing.T) {
	c := &calendar{Minute: 100, Taken: whole}
	until := c.answer(call(1, false))
	if again := c.answer(call(1, true)); until != 101 || again != 101 || len(c.Turns) != 1 {
		t.Errorf("it waits until %d, and is early: %d, %d turns", until, again, len(c.Turns))
	}
	c.advance(103)
	if c.answer(call(1, true)) != 0 || len(c.Turns) != 0 || c.Taken != whole/100 {
		t.Errorf("late: %+v", c)
	}
	c.advance(90)
	if c.Minute != 103 {
		t.Errorf("the calendar went back to %d", c.Minute)
	}
}

// TestCalendarFull checks the bounds of the document: a run that finds no place asks again later and stores nothing.
func TestCalendarFull(t *testing.T) {
	c := &calendar{Minute: 100, Taken: whole}
	for range 3 * maxTurns {
		if until := c.answer(ask{user: 1, cost: 1, books: true}); until <= 100 || until > 100+horizon+1 {
			t.Fatalf("it waits until %d", until)
		}
	}
	if len(c.Turns) != maxTurns {
		t.Errorf("%d turns", len(c.Turns))
	}
	c = &calendar{Minute: 100, Taken: whole}
	for range 100 {
		c.answer(ask{user: 1, cost: whole, books: true})
	}
	if len(c.Turns) != horizon {
		t.Errorf("%d turns of a minute each", len(c.Turns))
	}
	if c.answer(ask{user: 2, cost: 1}); len(c.Turns) != horizon {
		t.Errorf("a call that cannot wait has a turn")
	}
}
