package audit_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/countersign-run/countersign/shared/store/audit"
)

// TestVerifyExpiredEntries removes entries of a chain before and after they may expire, and checks that a removal that
// is not allowed is found.
func TestVerifyExpiredEntries(t *testing.T) {
	began := time.Date(2027, 3, 1, 9, 0, 0, 0, time.UTC)
	chain := func(keep func(n int) int) (all []audit.Entry, head audit.Head) {
		for n := range 6 { // one entry a day
			var e audit.Entry
			e, head = audit.Seal(head, audit.Entry{RunID: "run-1", UID: "ana", Kind: audit.Requested,
				At: began.AddDate(0, 0, n), KeepDays: keep(n)})
			all = append(all, e)
		}
		return all, head
	}
	thirty := func(int) int { return 30 }
	for name, c := range map[string]struct {
		keep  func(n int) int
		gone  []int // the numbers of the removed entries
		after int   // days since the first entry
		want  string
	}{
		"none":                {thirty, nil, 40, "[]"},
		"the first too early": {thirty, []int{1}, 29, "[entry 1 was removed]"},
		"the first":           {thirty, []int{1}, 30, "[]"},
		"one more":            {thirty, []int{1, 2}, 30, "[entries 1 to 2 were removed]"},
		"in no order":         {thirty, []int{2}, 31, "[]"},
		"all but the last":    {thirty, []int{1, 2, 3, 4, 5}, 34, "[]"},
		"the last too early":  {thirty, []int{6}, 34, "[entry 6 was cut off]"},
		"all":                 {thirty, []int{1, 2, 3, 4, 5, 6}, 35, "[]"},
		"kept for good":       {func(int) int { return 0 }, []int{1}, 4000, "[entry 1 was removed]"},
		"begun before it was set": {func(n int) int { return 30 * min(n, 1) }, []int{1}, 4000,
			"[entry 1 was removed]"},
		"in such a chain": {func(n int) int { return 30 * min(n, 1) }, []int{3}, 4000,
			"[entry 3 was removed]"},
		"shortened": {func(n int) int { return 100 - 50*min(n, 1) }, []int{1, 2}, 60,
			"[entries 1 to 2 were removed]"},
		"shortened, in time":        {func(n int) int { return 100 - 50*min(n, 1) }, []int{1, 2}, 100, "[]"},
		"by one that does not know": {func(n int) int { return 30 * (1 - min(n, 1)) }, []int{1, 2, 3}, 32, "[]"},
		"and of it, one more": {func(n int) int { return 30 * (1 - min(n, 1)) }, []int{1, 2, 3, 4}, 32,
			"[entries 1 to 4 were removed]"},
	} {
		t.Run(name, func(t *testing.T) {
			all, head := chain(c.keep)
			left := slices.DeleteFunc(all, func(e audit.Entry) bool { return slices.Contains(c.gone, int(e.Seq)) })
			if got := fmt.Sprint(audit.VerifyAt(began.AddDate(0, 0, c.after), left, head)); got != c.want {
				t.Errorf("found %s, want %s", got, c.want)
			}
			if len(c.gone) > 0 && len(audit.Verify(left, head)) == 0 {
				t.Error("without a time nothing has expired")
			}
		})
	}
	all, head := chain(thirty)
	all[3].PrevExpires = began // an attacker makes the third entry expire, and removes it
	if got := audit.VerifyAt(began.AddDate(0, 0, 20), slices.Delete(all, 2, 3), head); fmt.Sprint(got) !=
		"[entry 3 was removed entry 4 was changed]" {
		t.Errorf("found %v", got)
	}
}
