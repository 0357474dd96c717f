package chat_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/countersign-run/countersign/shared/agent/registry"
	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/testkit/script"
)

// withDocs adds a second page agent, whose only action is action_like, and which requires approval of each search.
func withDocs(w *env) {
	docs := *w.core.Agents[run.Page]
	docs.Name, docs.Instructions = "docs", registry.Text("You explain the docs.")
	docs.Tools = []string{"action_like", "action_searchProducts"}
	docs.Ask = []string{"action_searchProducts"}
	w.core.Agents["docs"] = &docs
}

// TestHistoryAgent checks the agent of a history that this release has sealed, and of one that a release without agents
// has sealed.
func TestHistoryAgent(t *testing.T) {
	w, old := newEarlierEnv(t)
	withDocs(w)
	w.model.Restart(slices.Repeat([]script.Turn{{Text: "Hello."}}, 6)...)
	asks := page("hi", nil)
	asks.Agent = "docs"
	docs := w.send(asks)
	if w.model.Requests()[0].System != "You explain the docs." {
		t.Errorf("it is told %s", w.model.Requests()[0].System)
	}
	if note := noteOf(t, docs.History); note["agent"] != "docs" {
		t.Errorf("the history is bound to %v", note["agent"])
	}
	// the previous release can continue a history that this release has sealed for the previous release's only agent
	if note := noteOf(t, w.say("hi", nil).History); note["agent"] != nil {
		t.Errorf("the page agent's history names %v", note["agent"])
	}
	for name, q := range map[string]struct {
		agent string
		same  bool
	}{"the docs'": {"docs", true}, "none": {"", true}, "the page's": {run.Page, false}} {
		next := page("and now?", docs.History)
		next.Agent = q.agent
		if _, err := w.chat.Send(t.Context(), next, nil); (err == nil) != q.same {
			t.Errorf("%s: %v", name, err)
		}
		next.History, next.Agent = old.Ended, q.agent
		if _, err := w.chat.Send(t.Context(), next, nil); (err == nil) != (q.agent != "docs") {
			t.Errorf("%s, with an old history: %v", name, err)
		} else if err != nil {
			refused(t, err, fault.Validation, "history")
		}
	}
	n := noteOf(t, docs.History)
	delete(n, "agent")
	forged := slices.Clone(docs.History)
	forged[len(forged)-1] = with(t, forged[len(forged)-1], "countersign", n)
	_, err := w.chat.Send(t.Context(), page("and now?", forged), nil)
	refused(t, err, fault.Validation, "history")
}

// TestMessageIDAcrossAgents sends the same message with the same ID to two agents. These are two requests.
func TestMessageIDAcrossAgents(t *testing.T) {
	w := newEnv(t)
	withDocs(w)
	for _, name := range []string{"docs", run.Page, "docs"} {
		w.model.Restart(script.Turn{Calls: []script.Call{like(1)}}, script.Turn{Text: "Liked."})
		q := message(1, "like it", nil)
		q.Agent = name
		w.send(q)
	}
	if len(w.did) != 2 {
		t.Errorf("effects %v", w.did)
	}
}

// TestAgentApprovalOfSearches has an agent that requires approval of its searches, although a search changes nothing.
func TestAgentApprovalOfSearches(t *testing.T) {
	w := newEnv(t, script.Turn{Calls: []script.Call{call("action_searchProducts", `{"query":"mug"}`), rate(1)}},
		script.Turn{Text: "Found."})
	withDocs(w)
	q := page("find it", nil)
	q.Agent = "docs"
	r := w.send(q)
	if len(r.Calls) != 1 || r.Calls[0].Approval == nil || len(w.did) != 0 {
		t.Fatalf("%+v, effects %v", r, w.did)
	}
	w.decide(r.Calls[0].Approval, run.ApproveOnce)
	if r = w.answer(r.History); !strings.HasPrefix(r.Message, "Found.") || len(w.did) != 1 {
		t.Errorf("%+v, effects %v", r, w.did)
	}
	told := string(w.model.Requests()[1].Contents[2])
	if !strings.Contains(told, "This tool does not exist.") {
		t.Errorf("of a call of another agent's action the model was told %s", told)
	}
}
