package chat_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/engine/chat"
	"github.com/countersign-run/countersign/shared/engine/records"
	"github.com/countersign-run/countersign/shared/testkit/script"
)

// user has some tabs and performs all possible actions of a user, in any order. All messages have the same text.
type user struct {
	*env
	rec       *records.Records
	tabs      []*tab
	expired   int                 // how many times all approvals have expired
	messages  int                 // with an id of the page's
	approvals []*run.ApprovalView // that wait
	asked     int                 // effects that the model asked for and that need no approval
	approved  int                 // effects that their user approved
}

// tab is a conversation as a page keeps it.
type tab struct {
	message string // the id of the newest
	history []json.RawMessage
	open    []chat.Pending
}

// Whatever pages and their user do, the service refuses no request, the page learns which calls wait, and each effect
// takes place at most once for each message that requests it. This does not depend on the number of repeated requests,
// on the number of conversations with the same text, or on earlier rejections, expiries and deletions.
func TestRandomConversations(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		u := &user{env: newEnv(t), tabs: []*tab{{}}}
		u.rec = &records.Records{Store: u.core.Store, Now: u.core.Now}
		u.core.Agents[run.Page].Limits.MaxOpen = 0
		u.core.Agents[run.Page].Limits.MaxPerDay = 0
		rt.Repeat(map[string]func(
			*rapid.T){"say": u.says, "answer": u.answers, "decide": u.decides, "expire": u.expires, "delete": u.deletes,
			"open a tab": u.opens, "double a tab": u.doubles, "reload": u.reloads, "": u.counted})
		for _, ap := range u.approvals {
			u.decide(ap, run.Reject)
		}
		u.counted(rt)
	})
}

// counted compares the effects with the requested and the approved effects.
func (u *user) counted(t *rapid.T) {
	if len(u.did) != u.asked+u.approved {
		t.Fatalf("%d effects, %d asked for and %d approved: %v", len(u.did), u.asked, u.approved, u.did)
	}
}

func (u *user) tab(t *rapid.T) *tab { return u.tabs[rapid.IntRange(0, len(u.tabs)-1).Draw(t, "tab")] }

func (u *user) opens(*rapid.T) { u.tabs = append(u.tabs, &tab{}) }

// doubles duplicates a tab. The open calls are answered in one of the two tabs; see TestRetryFromTwoTabs.
func (u *user) doubles(t *rapid.T) {
	u.tabs = append(u.tabs, &tab{history: u.tab(t).history})
}

// reloads reloads a page, which then has no history.
func (u *user) reloads(t *rapid.T) { *u.tab(t) = tab{} }

// plan draws the model's turns with calls, before its final text.
func (u *user) plan(t *rapid.T) []script.Turn {
	var turns []script.Turn
	for range rapid.IntRange(0, 2).Draw(t, "turns") {
		turn := script.Turn{Text: rapid.SampledFrom([]string{"", "Wait."}).Draw(t, "text")}
		for range rapid.IntRange(1, 4).Draw(t, "calls") {
			turn.Calls = append(turn.Calls, u.drawCall(t))
		}
		turns = append(turns, turn)
	}
	return append(turns, script.Turn{Text: "There."}, script.Turn{Text: "There again."})
}

func (u *user) drawCall(t *rapid.T) script.Call {
	stars := rapid.IntRange(1, 3).Draw(t, "stars")
	id := rapid.SampledFrom([]string{"", "", "same", fmt.Sprint("id", stars)}).Draw(t, "id")
	switch rapid.IntRange(0, 6).Draw(t, "call") {
	case 0:
		return script.Call{ID: id, Name: "action_searchProducts", Args: map[string]any{"query": "q"}}
	case 1:
		return script.Call{ID: id, Name: "action_submitRating", Args: map[string]any{"stars": stars}}
	case 2:
		return script.Call{ID: id, Name: "fill-search", Args: map[string]any{"value": "1e3 \u2028 <b>"}}
	case 3:
		return script.Call{ID: id, Name: "click-add-to-cart", Args: map[string]any{"key": "k", "n": 1e21, "f": 0.1}}
	case 4:
		return script.Call{ID: id, Name: "no-such-tool", Args: map[string]any{}}
	case 5:
		return script.Call{ID: id, Name: "action_like", Args: map[string]any{"stars": stars}}
	}
	return script.Call{ID: id, Name: "click-add-to-cart", Args: map[string]any{"key": 7}}
}

// reworded returns the plan with its calls in another order, and some of them with other arguments.
func reworded(t *rapid.T, plan []script.Turn) []script.Turn {
	plan = slices.Clone(plan)
	for i := range plan {
		if len(plan[i].Calls) == 0 {
			continue
		}
		plan[i].Calls = rapid.Permutation(plan[i].Calls).Draw(t, "order")
		for j, c := range plan[i].Calls {
			if c.Name == "action_like" || c.Name == "action_submitRating" {
				plan[i].Calls[j].Args = map[string]any{"stars": rapid.IntRange(1, 5).Draw(t, "other stars")}
			}
		}
	}
	return plan
}

// likes counts the effects that need no approval, in the requested turns of the plan.
func (u *user) likes(plan []script.Turn) (n int) {
	asked := u.model.Requests()
	for i, turn := range plan[:len(plan)-u.model.Left()] {
		for _, c := range turn.Calls {
			if c.Name == "action_like" && !asked[i].NoTools {
				n++
			}
		}
	}
	return n
}

func (u *user) says(t *rapid.T) {
	tab := u.tab(t)
	q := page("order one more blue mug", tab.history)
	tries := 1
	if rapid.Bool().Draw(t, "with an id") {
		u.messages++
		q.MessageID = message(u.messages, "", nil).MessageID
		tries = rapid.IntRange(1, 3).Draw(t, "tries")
	}
	u.hears(t, tab, tries, func() (*chat.Reply, error) { return u.chat.Send(u.t.Context(), q, nil) },
		func() { tab.message = q.MessageID })
}

// answers posts the results of the page's tools.
func (u *user) answers(t *rapid.T) {
	tab := u.tab(t)
	if len(tab.open) == 0 {
		t.Skip("nothing waits")
	}
	q := results(tab.history)
	if rapid.Bool().Draw(t, "with the message's id") {
		q.MessageID = tab.message
	}
	u.hears(t, tab, rapid.IntRange(1, 3).Draw(t, "tries"), func() (*chat.Reply, error) {
		q.Results = nil
		for _, p := range tab.open {
			if p.Category == chat.PageAutomation {
				q.Results = append(q.Results, chat.Result{CallID: p.ID, IsError: rapid.Bool().Draw(t, "error"),
					Result: rapid.SampledFrom([]string{`{"ok":true}`, "", "plain", `{"a":1e400}`, `{"a":1,"a":2}`,
						"\xff", `"\ud800"`, `[1]`}).Draw(t, "result")})
			}
		}
		return u.chat.Answer(u.t.Context(), q, nil)
	}, func() {})
}

// hears repeats a request as often as its answers are lost. Only the first attempt has effects and requests approvals.
func (u *user) hears(t *rapid.T, tab *tab, tries int, send func() (*chat.Reply, error), heard func()) {
	plan := u.plan(t)
	var last *chat.Reply
	for n := range tries {
		if n > 0 && rapid.Bool().Draw(t, "in other words") {
			plan = reworded(t, plan)
		}
		u.model.Restart(plan...)
		before := len(u.did)
		r, err := send()
		if err != nil {
			u.sound(t, err)
		}
		searched := 0
		for _, d := range u.did[before:] {
			if strings.HasPrefix(d, "search ") {
				searched++
			}
		}
		u.asked += searched
		if n == 0 {
			u.asked += u.likes(plan)
		}
		u.counted(t)
		if err == nil {
			u.waits(t, r, n == 0)
			last = r
		}
	}
	if last == nil { // the model's script has ended; a further request would be another try
		tab.history, tab.open = nil, nil
		return
	}
	heard()
	tab.history, tab.open = roundTrip(u.t, last.History), last.Calls
}

// waits checks the waiting calls in a reply. A repeated request gets the same waiting calls again.
func (u *user) waits(t *rapid.T, r *chat.Reply, first bool) {
	seen := map[string]bool{}
	for _, p := range r.Calls {
		if seen[p.ID] {
			t.Fatalf("two calls are called %q", p.ID)
		}
		seen[p.ID] = true
		if p.Approval == nil || slices.ContainsFunc(u.approvals,
			func(ap *run.ApprovalView) bool { return ap.ApprovalID == p.Approval.ApprovalID }) {
			continue
		}
		if !first {
			t.Fatal("a request that was sent again asks for another approval")
		}
		u.approvals = append(u.approvals, p.Approval)
	}
}

// sound checks that an error comes from the end of the model's script, and not from a refusal by the service.
func (u *user) sound(t *rapid.T, err error) {
	if f := fault.As(err); f.Class != fault.Model || f.Code != "too_many_calls" {
		t.Fatalf("%v: %+v", err, f.Err)
	}
}

func (u *user) decides(t *rapid.T) {
	if len(u.approvals) == 0 {
		t.Skip("nothing waits")
	}
	i := rapid.IntRange(0, len(u.approvals)-1).Draw(t, "approval")
	d := rapid.SampledFrom([]run.Decision{run.ApproveOnce, run.Reject}).Draw(t, "decision")
	if d == run.ApproveOnce {
		u.approved++
	}
	u.decide(u.approvals[i], d)
	u.approvals = append(u.approvals[:i], u.approvals[i+1:]...)
}

// expires lets all approvals expire, but only as often as no history becomes too old.
func (u *user) expires(t *rapid.T) {
	if u.expired++; u.expired > 20 {
		t.Skip("a month has passed")
	}
	u.expire()
	u.approvals = nil
}

// deletes deletes the user's threads, except threads with waiting calls.
func (u *user) deletes(t *rapid.T) {
	threads, _, err := u.rec.Threads(u.t.Context(), alice, "", 100)
	if err != nil {
		t.Fatal(err)
	}
	for _, th := range threads {
		if _, err := u.rec.DeleteThread(u.t.Context(), alice, th.ThreadID); err != nil &&
			!fault.Is(err, fault.Policy, fault.CodeBusy) {
			t.Fatal(err)
		}
	}
}
