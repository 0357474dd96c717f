package main

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
)

// TestTakeBackFromPage cancels a waiting action by the words of a page's user, over HTTP. Another user's words change
// nothing.
func TestTakeBackFromPage(t *testing.T) {
	ana := newTab(t)
	var waits, other, off chatReply
	say := func(u *served, words string, after chatReply, out *chatReply) {
		t.Helper()
		history := append([]json.RawMessage{}, after.History...)
		u.call(http.MethodPost, "/api/agent/chat", ana.body(map[string]any{"message": words, "history": history,
			"agent": "shop"}), out)
	}
	say(ana.served, "rate the blue mug 2 stars", chatReply{}, &waits)
	if len(waits.Calls) != 1 || waits.Calls[0].Approval == nil {
		t.Fatalf("%+v", waits)
	}
	say(ana.as("bea"), "no, cancel", chatReply{}, &other)
	if r := ana.became(waits.Calls[0].RunID); r.Status != "awaiting_confirmation" {
		t.Errorf("after another user's words: %+v", r)
	}
	say(ana.served, "forget it", waits, &off)
	if !strings.HasPrefix(off.Message, "Taken back, and nothing was done: ") {
		t.Errorf("%+v", off)
	}
	if r := ana.became(waits.Calls[0].RunID); r.Status != "completed" || r.Actions[0].Decision != "take_back" {
		t.Errorf("%+v", r)
	}
}

type runOfPage struct {
	Status  string
	Actions []struct{ Decision string }
}

func (u *served) became(id string) (r runOfPage) {
	u.t.Helper()
	u.call(http.MethodGet, "/api/agent/runs/"+id, nil, &r)
	return r
}
