package records_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/engine/records"
	"github.com/countersign-run/countersign/shared/store/document"
	"github.com/countersign-run/countersign/shared/testkit/faulty"
)

// TestFind finds conversations by words, state and time in every store, behind any number of newer ones.
func TestFind(t *testing.T) {
	onEachStore(t, func(t *testing.T, open func(testing.TB) *recorder) {
		w := open(t)
		r := w.records()
		const newer = 320
		id := func(i int) string { return fmt.Sprintf("thread-%010d", i) }
		thread := func(i int, uid, title string, last run.Message, terms ...string) {
			at := began.Add(time.Duration(i) * time.Minute)
			th := &run.Thread{ID: id(i), UID: uid, Title: title, CreatedAt: at, Terms: terms}
			last.At = at
			if _, err := th.Add(run.Message{Role: run.RoleUser, Text: "wish " + title, At: at}, last); err != nil {
				t.Fatal(err)
			}
			put(t, w, document.ThreadPath(th.ID), document.ThreadFields{UID: uid, UpdatedAt: at}.Map(th.ID), th)
		}
		ends := func(outcome string) run.Message { return run.Message{Role: run.RoleAssistant, Outcome: outcome} }
		waits := run.Message{Role: run.RoleAssistant, ApprovalID: "run-0000000000001-1"}
		thread(0, "ana", "Old", waits, "zoe@example.com", "gmail send")
		thread(1, "eve", "Old too", waits, "zoe@example.com")
		for i := range newer {
			thread(2+i, "ana", fmt.Sprintf("Number %d", i), ends("completed: Nothing was sent."))
		}
		thread(2+newer, "ana", "Broken", ends("failed (denied): Not done."))
		thread(3+newer, "ana", "Under way", run.Message{Role: run.RoleUser, Text: "go on"})
		open1 := run.Approval{ID: "run-0000000000001-1", UID: "ana", RunID: "run-0000000000001", ThreadID: id(0),
			Status: run.ApprovalOpen, RequestedAt: began, ExpiresAt: time.Now().Add(time.Hour)}
		put(t, w, document.ApprovalPath(open1.ID), document.ApprovalFields{UID: "ana", Status: string(open1.Status),
			RequestedAt: began}.Map(), open1)
		for name, c := range map[string]struct {
			search records.Search
			want   []int
		}{
			"an old one by its recipient": {records.Search{Words: "ZOË@exam"}, []int{0}},
			"by its tool and title":       {records.Search{Words: "old gmail"}, []int{0}},
			"by own words":                {records.Search{Words: "wish 317"}, []int{319}},
			"by nothing":                  {records.Search{Words: "nobody said"}, nil},
			"what waits":                  {records.Search{State: records.Waiting}, []int{0}},
			"what failed":                 {records.Search{State: records.Failed}, []int{2 + newer}},
			"what is under way":           {records.Search{State: records.Running}, []int{3 + newer}},
			"done, and of a time": {records.Search{State: records.Completed, From: began.Add(4 * time.Minute),
				To: began.Add(5 * time.Minute)}, []int{5, 4}},
		} {
			t.Run(name, func(t *testing.T) {
				var got []string
				for cursor, more := "", true; more; more = cursor != "" {
					page, next, err := r.Find(t.Context(), "ana", c.search, cursor, 1)
					if err != nil {
						t.Fatal(err)
					}
					for _, v := range page {
						got = append(got, v.ThreadID)
						if v.ThreadID == id(0) && next != "" {
							t.Error("a page follows the oldest conversation")
						}
					}
					cursor = next
				}
				var want []string
				for _, i := range c.want {
					want = append(want, id(i))
				}
				if !slices.Equal(got, want) {
					t.Errorf("found %v, want %v", got, want)
				}
			})
		}
	})
}

// TestFindReads searches by state while sixty approvals wait. It reads only one whole approval, from an earlier
// release.
func TestFindReads(t *testing.T) {
	onEachStore(t, func(t *testing.T, open func(testing.TB) *recorder) {
		w := open(t)
		const waiting = 60
		for i := range waiting {
			id := fmt.Sprintf("thread-%010d", i)
			at := began.Add(time.Duration(i) * time.Minute)
			put(t, w, document.ThreadPath(id), document.ThreadFields{UID: "ana", UpdatedAt: at}.Map(id),
				&run.Thread{ID: id, UID: "ana", CreatedAt: at})
			ap := run.Approval{ID: fmt.Sprintf("run-%013d-1", i), UID: "ana", ThreadID: id, Status: run.ApprovalOpen,
				RequestedAt: at, ExpiresAt: time.Now().Add(time.Hour), Reason: strings.Repeat("x", 4000)}
			f := document.ApprovalFields{UID: "ana", ThreadID: id, Status: string(ap.Status), RequestedAt: at,
				ExpiresAt: ap.ExpiresAt}
			switch i {
			case 0: // from an earlier release
				f.ThreadID, f.ExpiresAt = "", time.Time{}
			case 1:
				f.ExpiresAt = time.Now().Add(-time.Hour)
			}
			put(t, w, document.ApprovalPath(ap.ID), f.Map(), ap)
		}
		docs, bytes := 0, 0
		counted := faulty.Wrap(w, faulty.After(func(c *faulty.Call) {
			for _, d := range c.Docs {
				if c.Query.Collection == document.Approvals {
					docs, bytes = docs+1, bytes+len(d.Data)
				}
			}
		}))
		r := &records.Records{Store: counted, Now: time.Now}
		found, _, err := r.Find(t.Context(), "ana", records.Search{State: records.Waiting}, "", 100)
		if err != nil || len(found) != waiting-1 {
			t.Fatalf("found %d: %v", len(found), err)
		}
		if bytes != 0 || docs > waiting+1 {
			t.Errorf("%d documents were read, with %d bytes of cards", docs, bytes)
		}
	})
}
