package app_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/countersign-run/countersign/shared/agent/plan"
	"github.com/countersign-run/countersign/shared/agent/preference"
	"github.com/countersign-run/countersign/shared/engine/conversation"
	"github.com/countersign-run/countersign/shared/engine/planner"
	"github.com/countersign-run/countersign/shared/testkit"
	"github.com/countersign-run/countersign/shared/testkit/fakegemini"
)

var canaries = []string{"CANARY-one", "CANARY-two", "CANARY-three"}

// TestPrefixAcrossRuns compares the requests of three runs of one conversation. The text about the present differs, by
// the user's preferences and notes as by the minute. Each request begins with the instructions and the history of the
// one before, which a service then has cached.
func TestPrefixAcrossRuns(t *testing.T) {
	w := remembering(t)
	r, _ := w.does(remembers("Ana has dogs."))
	note := w.keeps(r, "approve_once")[0].ID
	bodies := w.recorded(func(fakegemini.Request) fakegemini.Turn {
		return fakegemini.Turn{Text: "Answer " + strings.Repeat("x", 500) + "."}
	})
	thread := ""
	for i, prompt := range canaries {
		w.prefers(func(s *preference.Set) { s.MeetingMinutes = 30 + i })
		w.call("PATCH", "/api/agent/memory/"+note, fmt.Sprintf(`{"text":"Ana has %d dogs."}`, i))
		r := w.call("POST", "/api/agent/run", `{"agent":"aide","prompt":"`+prompt+`"`+thread+`}`)
		if r.Status != "completed" {
			t.Fatalf("%s; want r.Status “completed”", r.Body)
		}
		thread = `,"threadId":"` + r.ThreadID + `"`
	}
	w.sharePrefixes(bodies(), "You help.", "The run began at ", "minutes, as they prefer", "These are the user's notes",
		" dogs.")
}

// TestPrefixOfPage does the same with three messages of a page whose state differs.
func TestPrefixOfPage(t *testing.T) {
	w := deploy(t)
	bodies := w.recorded(func(fakegemini.Request) fakegemini.Turn {
		return fakegemini.Turn{Text: "Answer " + strings.Repeat("x", 500) + "."}
	})
	history := json.RawMessage("[]")
	for i, prompt := range canaries {
		a := w.chat(chatPath, inJSON(t, map[string]any{"message": prompt, "history": history,
			"toolDefinitions": json.RawMessage(clickTool), "pageState": map[string]any{"mugs": i}}))
		if a.Type != "response" {
			t.Fatalf("%d %s; want a.Type “response”", a.HTTP, a.Body)
		}
		history = a.History
	}
	w.sharePrefixes(bodies(), "You are a helpful assistant for this web application.", "The run began at ",
		"## Current Page State", `\"mugs\":`)
}

// TestPrefixOfResults checks the requests of one message whose page tool answers, with a page that the tool changed.
func TestPrefixOfResults(t *testing.T) {
	w := deploy(t)
	bodies := w.recorded(testkit.Wants("click-x", map[string]any{}))
	a := w.says("", "CANARY-click", nil)
	if a = w.answers(a); a.Type != "response" {
		t.Fatalf("%d %s; want a.Type “response”", a.HTTP, a.Body)
	}
	sent := bodies()
	if len(sent) != 2 {
		t.Fatalf("%d requests; want 2", len(sent))
	}
	shared := common(sent[0], sent[1])
	if !strings.HasSuffix(shared, `{"role":"user","parts":[{"text":"`) {
		t.Errorf("the requests share %q", shared)
	}
	for i, b := range sent {
		if strings.Count(b, conversation.NotOfUser[:len(conversation.NotOfUser)-1]) != 1 {
			t.Errorf("request %d does not have the present once: %s", i+1, b)
		}
	}
}

// TestPrefixOfPlan checks that each request of a phase of a plan begins with the whole request before it.
func TestPrefixOfPlan(t *testing.T) {
	w := deploy(t, "PLAN_MAX_ASKS=2")
	w.addSite()
	bodies := w.recorded(opensIssues)
	var s planner.Session
	w.plans(&s, "", fmt.Sprintf(`{"prompt":"open two issues","repoUrl":"%s/acme/web","deadline":%q}`,
		w.App.Config.GitHubURL, time.Now().Add(time.Hour).Format(time.RFC3339)))
	if w.plans(&s, "/"+s.SessionID, ""); s.Status != plan.StatusAwaiting {
		t.Fatalf("it is %s: %s", s.Status, s.Summary)
	}
	planning := len(bodies())
	w.plans(&s, "/"+s.SessionID+"/execute", `{"planHash":"`+s.PlanHash+`"}`)
	w.plans(&s, "/"+s.SessionID, "")
	sent := bodies()[planning:]
	if len(sent) < 2 {
		t.Fatalf("%d requests; want two at least", len(sent))
	}
	for i := range sent[1:] {
		if common(sent[i], sent[i+1]) != sent[i] {
			t.Errorf("request %d does not begin with the one before:\n%s\n%s", i+2, sent[i], sent[i+1])
		}
	}
}

// recorded sets a model, and returns a function that returns the requests, each in the order in which a service reads
// it: the instructions and the contents, without the closing bracket.
func (w *proved) recorded(model func(fakegemini.Request) fakegemini.Turn) func() []string {
	var bodies []string
	w.SetModel(func(r fakegemini.Request) fakegemini.Turn {
		raw, _ := json.Marshal(r.Raw)
		bodies = append(bodies, r.Instructions+strings.TrimSuffix(string(raw), "]"))
		return model(r)
	})
	return func() []string { return bodies }
}

// sharePrefixes checks the requests of three messages, whose instructions begin with first. Each has the texts present
// once, behind the history, in a part of their own that says that the user did not write them.
func (w *proved) sharePrefixes(sent []string, first string, present ...string) {
	w.t.Helper()
	if len(sent) != 3 {
		w.t.Fatalf("%d requests; want 3", len(sent))
	}
	begun, continued := common(sent[0], sent[1]), common(sent[1], sent[2])
	if !strings.HasPrefix(begun, first) {
		w.t.Errorf("the first two requests share %q", begun)
	}
	if !strings.Contains(continued, canaries[0]) || !strings.Contains(continued, "Answer ") {
		w.t.Errorf("the last two requests share %q", continued)
	}
	for i, b := range sent {
		history, own, found := strings.Cut(b, `{"text":"`+strings.TrimSpace(conversation.NotOfUser))
		if !found || !strings.HasSuffix(own, `"},{"text":"`+canaries[i]+`"}]}`) {
			w.t.Errorf("request %d is %s", i+1, b)
		}
		for _, text := range present {
			if strings.Contains(history, text) || !strings.Contains(own, text) {
				w.t.Errorf("request %d does not have %q behind the history: %s", i+1, text, b)
			}
		}
	}
}

// common returns the text with which both begin.
func common(a, b string) string {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return a[:n]
}
