package chat_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/countersign-run/countersign/shared/agent"
	"github.com/countersign-run/countersign/shared/chat"
	"github.com/countersign-run/countersign/shared/fault"
	"github.com/countersign-run/countersign/shared/model/script"
)

// conversation is a page that does anything a page may do, in any order.
type conversation struct {
	*world
	history   []json.RawMessage
	open      []chat.Pending
	approvals []*agent.ApprovalView // that wait
	asked     int                   // effects that the model asked for and nobody need approve
	approved  int                   // effects that their user approved
}

// Whatever a page and its user do, no request is one that the service refuses, what waits is what the page is told, and
// each effect takes place once or not at all.
func TestAnyConversation(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		c := &conversation{world: newWorld(t)}
		c.core.Profile.MaxOpen = 0
		c.core.Profile.MaxPerDay = 0
		rt.Repeat(map[string]func(*rapid.T){"say": c.says, "answer": c.answers, "decide": c.decides, "resend": c.resends, "anew": c.anew})
		for _, ap := range c.approvals {
			c.decide(ap, agent.Reject)
		}
		if len(c.did) != c.asked+c.approved {
			rt.Fatalf("%d effects, %d asked for and %d approved: %v", len(c.did), c.asked, c.approved, c.did)
		}
	})
}

// anew is a page that is loaded again and has forgotten everything.
func (c *conversation) anew(*rapid.T) { c.history, c.open = nil, nil }

// plan draws what the model says until it ends in words: some turns of calls.
func (c *conversation) plan(t *rapid.T) {
	var turns []script.Turn
	for range rapid.IntRange(0, 2).Draw(t, "turns") {
		turn := script.Turn{Text: rapid.SampledFrom([]string{"", "Wait."}).Draw(t, "text")}
		for range rapid.IntRange(1, 4).Draw(t, "calls") {
			turn.Calls = append(turn.Calls, c.drawCall(t))
		}
		turns = append(turns, turn)
	}
	c.model.Restart(append(turns, script.Turn{Text: "There."}, script.Turn{Text: "There again."})...)
}

func (c *conversation) drawCall(t *rapid.T) script.Call {
	stars := rapid.IntRange(1, 5).Draw(t, "stars")
	id := rapid.SampledFrom([]string{"", "", "same", fmt.Sprint("id", stars)}).Draw(t, "id")
	switch rapid.IntRange(0, 5).Draw(t, "call") {
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
	}
	return script.Call{ID: id, Name: "click-add-to-cart", Args: map[string]any{"key": 7}}
}

func (c *conversation) says(t *rapid.T) {
	c.plan(t)
	c.hears(t, func() (*chat.Reply, error) { return c.chat.Say(c.t.Context(), page("hello", c.history), nil) })
}

// answers posts what the page's tools did.
func (c *conversation) answers(t *rapid.T) {
	if len(c.open) == 0 {
		t.Skip("nothing waits")
	}
	var rs []chat.Result
	for _, p := range c.open {
		if p.Category == chat.PageAutomation {
			rs = append(rs, chat.Result{CallID: p.ID, IsError: rapid.Bool().Draw(t, "error"),
				Result: rapid.SampledFrom([]string{`{"ok":true}`, "", "plain", `{"a":1e400}`, `{"a":1,"a":2}`, "\xff", `"\ud800"`, `[1]`}).Draw(t, "result")})
		}
	}
	c.hears(t, func() (*chat.Reply, error) { return c.chat.Answer(c.t.Context(), results(c.history, rs...), nil) })
}

// resends is a page that got no answer and asks again: the first answer is lost.
func (c *conversation) resends(t *rapid.T) {
	c.plan(t)
	before := len(c.did)
	if _, err := c.chat.Say(c.t.Context(), page("hello again", c.history), nil); err != nil {
		c.sound(t, err)
	}
	if n := c.searches(before); n < 0 {
		t.Fatal("an effect took place that nobody approved")
	}
}

// searches counts what was looked up since, which is no effect; it is negative where something else was done.
func (c *conversation) searches(since int) int {
	n := 0
	for _, d := range c.did[since:] {
		if !strings.HasPrefix(d, "search ") {
			return -1
		}
		n++
	}
	c.asked += n
	return n
}

func (c *conversation) hears(t *rapid.T, say func() (*chat.Reply, error)) {
	before := len(c.did)
	r, err := say()
	if c.searches(before) < 0 {
		t.Fatal("an effect took place that nobody approved")
	}
	if err != nil {
		c.sound(t, err)
		return
	}
	c.history, c.open = roundTrip(c.t, r.History), r.Calls
	seen := map[string]bool{}
	for _, p := range r.Calls {
		if seen[p.ID] {
			t.Fatalf("two calls are called %q", p.ID)
		}
		seen[p.ID] = true
		if p.Approval != nil && !c.waits(p.Approval.ApprovalID) {
			c.approvals = append(c.approvals, p.Approval)
		}
	}
}

func (c *conversation) waits(id string) bool {
	for _, ap := range c.approvals {
		if ap.ApprovalID == id {
			return true
		}
	}
	return false
}

// sound holds an error to be the model's end of patience, and nothing that the service refuses.
func (c *conversation) sound(t *rapid.T, err error) {
	if f := fault.As(err); f.Class != fault.Model || f.Code != "too_many_calls" {
		t.Fatalf("%v: %+v", err, f.Err)
	}
}

func (c *conversation) decides(t *rapid.T) {
	if len(c.approvals) == 0 {
		t.Skip("nothing waits")
	}
	i := rapid.IntRange(0, len(c.approvals)-1).Draw(t, "approval")
	d := rapid.SampledFrom([]agent.Decision{agent.ApproveOnce, agent.Reject}).Draw(t, "decision")
	if d == agent.ApproveOnce {
		c.approved++
	}
	c.decide(c.approvals[i], d)
	c.approvals = append(c.approvals[:i], c.approvals[i+1:]...)
}
