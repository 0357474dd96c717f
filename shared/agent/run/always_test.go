package run_test

import (
	"testing"
	"time"

	"github.com/countersign-run/countersign/shared/agent/policy"
	"github.com/countersign-run/countersign/shared/agent/run"
)

// TestTakeBack checks that an undo restores the earlier permission with today's use count, and nothing else.
func TestTakeBack(t *testing.T) {
	now := time.Date(2026, 3, 2, 10, 0, 0, 0, time.UTC)
	until := now.Add(10 * time.Second)
	entry := func(id, approval string, from time.Time) policy.Entry {
		return policy.Entry{ID: id, CreatedAt: now, ExpiresAt: now.Add(policy.EntryLife), From: from,
			Approval: approval}
	}
	var u run.User
	u.AlwaysAllow([]policy.Entry{entry("ana", "", time.Time{})}, now)
	u.AlwaysAllow([]policy.Entry{entry("ana", "a1", until), entry("bob", "a1", until)}, now)
	u.AlwaysAllow([]policy.Entry{entry("bob", "a2", until.Add(time.Second))}, now)
	u.UseAllowed([]string{"ana"}, now)
	u.TakeBack("a1", now)
	if len(u.Allow) != 2 || u.Allow[0].ID != "ana" || u.Allow[0].Approval != "" || u.Allow[0].UsedOn(now) != 1 {
		t.Errorf("entries after one undo: %+v", u.Allow)
	}
	u.TakeBack("a2", now)
	if len(u.Allow) != 1 || u.Allow[0].ID != "ana" {
		t.Errorf("entries after both undos: %+v", u.Allow)
	}
	u.AlwaysAllow([]policy.Entry{entry("ana", "a3", until)}, now)
	u.TakeBack("a3", until)
	if len(u.Allow) != 1 || u.Allow[0].Approval != "a3" || u.Allow[0].Counting(until) == nil {
		t.Errorf("entries after an undo that came too late: %+v", u.Allow)
	}
}
