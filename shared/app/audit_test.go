package app_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/store/audit"
	"github.com/countersign-run/countersign/shared/testkit"
	"github.com/countersign-run/countersign/shared/tools/gmail"
)

// auditPage is an answer of GET /audit.
type auditPage struct {
	Entries    []audit.Entry
	About      map[string]run.About
	NextCursor string
	Error      struct{ Field string }
}

func (w *proved) audit(uid string, query url.Values) (page auditPage, status int) {
	w.t.Helper()
	a, err := w.Call(w.t.Context(), uid, "GET", "/api/agent/audit?"+query.Encode(), "")
	if err == nil {
		err = json.Unmarshal(a.Body, &page)
	}
	if err != nil {
		w.t.Fatal(err, string(a.Body))
	}
	return page, a.HTTP
}

// e-mails requests an e-mail, decides it, and sends it if approved.
func (w *proved) mails(uid, to, subject, decision string) {
	w.t.Helper()
	w.waits(uid, gmail.Name, testkit.Mail(to, subject, "CANARY-body"))
	c, err := w.As(w.t.Context(), uid)
	if err != nil {
		w.t.Fatal(err)
	}
	pending, err := c.Pending(w.t.Context())
	if err != nil || len(pending.Approvals) != 1 {
		w.t.Fatalf("%v %s; want len(pending.Approvals) 1", err, pending.Body)
	}
	if decision == "" {
		return
	}
	if a, err := c.Resolve(w.t.Context(), pending.Approvals[0], decision); err != nil || a.HTTP != http.StatusOK {
		w.t.Fatalf("%v %s; want a.HTTP %v", err, a.Body, http.StatusOK)
	}
	w.deliver()
}

// TestAuditSearch writes more than sixty entries of two users, and searches ana's page by page by recipient, subject,
// state and time. The entries themselves contain no search terms.
func TestAuditSearch(t *testing.T) {
	w := deploy(t)
	for i := range 14 {
		w.mails("ana", fmt.Sprintf("guest%d@example.com", i), fmt.Sprintf("Invitation %d", i), "approve_once")
	}
	w.mails("ben", "bens-friend@example.com", "Grüße an Müller", "approve_once")
	w.mails("ana", "mueller@example.com", "Grüße an Frau Müller", "approve_once")
	all, _ := w.audit("ana", url.Values{"limit": {"1"}})
	since := all.Entries[0].At.Add(time.Microsecond).In(time.FixedZone("", 9*3600)).Format(time.RFC3339Nano)
	w.mails("ana", "carol@example.com", "東京のこと", "reject")
	w.mails("ana", "dan@example.com", "Open", "")
	for name, c := range map[string]struct {
		query url.Values
		want  string // subjects of the actions
	}{
		"a name without its dots": {url.Values{"q": {"muller"}}, "Grüße an Frau Müller"},
		"another script":          {url.Values{"q": {"東京"}}, "東京のこと"},
		"a recipient":             {url.Values{"q": {"GUEST7@"}}, "Invitation 7"},
		"words of two places":     {url.Values{"q": {"invitation guest13"}}, "Invitation 13"},
		"the tool and an account": {url.Values{"q": {"gmail ana@ 東京"}}, "東京のこと"},
		"another user's":          {url.Values{"q": {"bens-friend"}}, ""},
		"a body":                  {url.Values{"q": {"canary"}}, ""},
		"waiting":                 {url.Values{"state": {"waiting"}}, "Open"},
		"rejected":                {url.Values{"state": {"rejected"}}, "東京のこと"},
		"failed":                  {url.Values{"state": {"failed"}}, ""},
		"done, and words":         {url.Values{"state": {"done"}, "q": {"frau"}}, "Grüße an Frau Müller"},
		"from":                    {url.Values{"from": {since}}, "Open, 東京のこと"},
		"to":                      {url.Values{"to": {since}, "q": {"carol"}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			var found []string
			for cursor, more := "", true; more; more = cursor != "" {
				c.query.Set("cursor", cursor)
				c.query.Set("limit", "2")
				page, status := w.audit("ana", c.query)
				if status != http.StatusOK {
					t.Fatalf("%d %+v; want status %v", status, page, http.StatusOK)
				}
				for _, e := range page.Entries {
					if what := page.About[e.ActionID].What; !slices.Contains(found, what) {
						found = append(found, what)
					}
				}
				cursor = page.NextCursor
			}
			if got := strings.Join(found, ", "); got != c.want {
				t.Errorf("found %q, want %q", got, c.want)
			}
		})
	}
}

// TestAuditDescriptions checks that the audit describes each action from its run until the conversation is deleted, and
// that the entries stay.
func TestAuditDescriptions(t *testing.T) {
	w := deploy(t)
	w.mails("ana", "bob@example.com", "Lunch on Friday", "approve_once")
	page, _ := w.audit("ana", url.Values{"about": {"true"}})
	about := slices.Collect(maps.Values(page.About))
	if len(about) != 1 || !slices.Equal(about[0].To, []string{"bob@example.com"}) ||
		about[0].What != "Lunch on Friday" || about[0].Where != testkit.Address("ana") ||
		about[0].State != run.CameDone {
		t.Fatalf("%+v", page.About)
	}
	entries, err := json.Marshal(page.Entries)
	if err != nil || strings.Contains(string(entries), "bob@") || strings.Contains(string(entries), "Lunch") {
		t.Errorf("%v: the entries are %s", err, entries)
	}
	one, _ := w.audit("ana", url.Values{"about": {"true"}, "runId": {page.Entries[0].RunID}})
	plain, _ := w.audit("ana", nil)
	if len(one.About) != 1 || one.Entries[0].Seq != 1 || plain.About != nil {
		t.Errorf("of the run %+v, without a wish %+v", one.About, plain.About)
	}
	if bens, _ := w.audit("ben", url.Values{"about": {"true"}, "q": {"bob"}}); len(bens.Entries)+len(bens.About) != 0 {
		t.Errorf("ben reads %+v", bens)
	}
	for query, field := range map[string]string{"state=sent": "state", "about=1": "about", "from=today": "from",
		"q=a&runId=" + page.Entries[0].RunID: "runId", "q=" + strings.Repeat("x", 201): "q"} {
		values, err := url.ParseQuery(query)
		if err != nil {
			t.Fatal(err)
		}
		if got, status := w.audit("ana", values); status != http.StatusBadRequest || got.Error.Field != field {
			t.Errorf("%s: %d %+v; want status %v, got.Error.Field %v",
				query, status, got.Error, http.StatusBadRequest, field)
		}
	}
	var threads struct{ Threads []struct{ ThreadID string } }
	if err := json.Unmarshal(w.call("GET", "/api/agent/threads", "").Body, &threads); err != nil {
		t.Fatal(err)
	}
	w.call("DELETE", "/api/agent/threads/"+threads.Threads[0].ThreadID, "")
	left, _ := w.audit("ana", url.Values{"about": {"true"}})
	if len(left.About) != 0 || len(left.Entries) < len(page.Entries) {
		t.Errorf("after the deletion %+v", left)
	}
	if done, _ := w.audit("ana", url.Values{"state": {"done"}}); len(done.Entries) == 0 || len(done.About) != 0 {
		t.Errorf("of what was done %+v", done)
	}
}
