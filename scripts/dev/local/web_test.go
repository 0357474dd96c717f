package main

import (
	"net/http"
	"strings"
	"testing"
)

// TestWeb lets the example agent search, and read pages of the local web. Nothing else on this machine can be read.
func TestWeb(t *testing.T) {
	u := serve(t)
	u.as("ana")
	var a struct {
		Status, Summary string
		Actions         []struct{ Tool, Status, ErrorCode string }
	}
	for prompt, want := range map[string]string{
		`web_fetch "` + u.s.web + `/moved"`:       "six",
		`web_fetch "` + u.s.web + `/metadata"`:    "PolicyError",
		`web_fetch "` + u.base + `/dev/mailbox"`:  "PolicyError",
		`google_web_search "when is the harbour"`: "harbour.html",
	} {
		a.Actions = nil
		u.call(http.MethodPost, "/api/agent/run", map[string]any{"agent": "reader", "prompt": prompt}, &a)
		if len(a.Actions) != 1 || !strings.Contains(a.Summary+a.Actions[0].ErrorCode, want) {
			t.Errorf("%s: %+v, want %q", prompt, a, want)
		}
	}
}

// TestWebOff checks that no agent can read the web if WEB_TOOLS is off.
func TestWebOff(t *testing.T) {
	t.Setenv("WEB_TOOLS", "off")
	u := serve(t)
	if u.s.web != "" || u.s.app.API.Loop.Agents["reader"] != nil {
		t.Errorf("the web is at %q", u.s.web)
	}
}
