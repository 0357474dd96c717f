package main

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"
)

type runReply struct {
	RunID, TimeZone string
	Approvals       []struct {
		ApprovalID, ArgsHash, TimeZone string
		Args                           struct{ Start, TimeZone string }
		Preview                        struct{ Fields []previewField }
	}
}

type previewField struct{ Label, Value, At string }

func (r runReply) starts() (f previewField) {
	for _, f = range r.Approvals[0].Preview.Fields {
		if f.Label == "Starts" {
			break
		}
	}
	return f
}

func (u *served) as(uid string) *served {
	u.t.Helper()
	other := &served{t: u.t, base: u.base, s: u.s}
	var signedIn struct{ Token string }
	other.call(http.MethodPost, "/dev/token", map[string]string{"uid": uid, "email": uid + "@example.com"}, &signedIn)
	other.token = signedIn.Token
	return other
}

// lunch requests an event tomorrow at noon.
func (u *served) lunch(fields map[string]any) (r runReply) {
	u.t.Helper()
	body := map[string]any{"prompt": "schedule lunch tomorrow at noon"}
	for name, v := range fields {
		body[name] = v
	}
	u.call(http.MethodPost, "/api/agent/run", body, &r)
	if len(r.Approvals) != 1 {
		u.t.Fatalf("%+v", r)
	}
	return r
}

// TestLocaleOfRelativeTime checks that noon is in the user's time zone, also in later requests of the account, and in
// the chat of pages.
func TestLocaleOfRelativeTime(t *testing.T) {
	ana := serve(t)
	bea := ana.as("bea")
	noon := func(r runReply, zone string) {
		t.Helper()
		there, err := time.LoadLocation(zone)
		if err != nil {
			t.Fatal(err)
		}
		starts := r.starts()
		at, err := time.Parse(time.RFC3339, starts.At)
		if err != nil {
			t.Fatal(err)
		}
		// Midnight may have passed since the run began.
		tomorrow := time.Now().In(there).AddDate(0, 0, 1)
		today := time.Now().In(there)
		if local := at.In(there); local.Format("15:04") != "12:00" || local.YearDay() != tomorrow.YearDay() &&
			local.YearDay() != today.YearDay() {
			t.Errorf("%s: the event is at %s", zone, local)
		}
		if a := r.Approvals[0]; r.TimeZone != zone || a.TimeZone != zone || a.Args.TimeZone != zone ||
			strings.Contains(starts.Value, "which is") {
			t.Errorf("%s: %+v", zone, r)
		}
	}
	noon(ana.lunch(map[string]any{"timeZone": "Asia/Kolkata", "locale": "en-IN"}), "Asia/Kolkata")
	noon(bea.lunch(map[string]any{"timeZone": "America/New_York"}), "America/New_York")
	noon(ana.lunch(nil), "Asia/Kolkata")
	noon(ana.as("cy").lunch(nil), "UTC")

	p := &tab{served: bea}
	var r chatReply
	talk := func(path string, body map[string]any) {
		t.Helper()
		r = chatReply{}
		if path == "/api/agent/chat" {
			body["agent"] = "shop"
		}
		p.call(http.MethodPost, path, p.body(body), &r)
	}
	zoneOfTheRun := func() string {
		t.Helper()
		if len(r.Calls) != 1 || r.Calls[0].RunID == "" {
			t.Fatalf("%+v", r)
		}
		var got runReply
		p.call(http.MethodGet, "/api/agent/runs/"+r.Calls[0].RunID, nil, &got)
		return got.TimeZone
	}
	talk("/api/agent/chat", map[string]any{"message": "hello", "history": []json.RawMessage{},
		"timeZone": "Europe/Berlin"})
	noon(bea.lunch(map[string]any{"timeZone": "America/New_York"}), "America/New_York") // another client's
	talk("/api/agent/chat", map[string]any{"message": "rate the blue mug 5 stars", "history": r.History})
	if zone := zoneOfTheRun(); zone != "Europe/Berlin" {
		t.Errorf("the conversation that began in Europe/Berlin goes on in %s", zone)
	}
	if cut := strings.Replace(string(r.History[len(r.History)-1]), "Europe/Berlin", "Europe/Paris",
		1); cut != string(r.History[len(r.History)-1]) {
		body, err := json.Marshal(
			p.body(map[string]any{"message": "hello",
				"history": append(r.History[:len(r.History)-1:len(r.History)-1], json.RawMessage(cut))}))
		if err != nil {
			t.Fatal(err)
		}
		if field := p.refused("/api/agent/chat", string(body)); field != "history" {
			t.Errorf("a zone that was changed under the seal: %q", field)
		}
	} else {
		t.Errorf("the zone is not in the history: %s", cut)
	}
	talk("/api/agent/chat", map[string]any{"message": "rate the blue mug 4 stars", "history": []json.RawMessage{}})
	if zone := zoneOfTheRun(); zone != "Europe/Berlin" {
		t.Errorf("the user's next conversation, which names no zone, goes by %s", zone)
	}
	dora := &tab{served: ana.as("dora")}
	dora.call(http.MethodPost, "/api/agent/chat",
		dora.body(map[string]any{"message": "hello", "history": []json.RawMessage{}, "timeZone": "Pacific/Auckland"}),
		&r)
	noon(dora.lunch(nil), "Pacific/Auckland") // a page's value is stored as well
	p = &tab{served: ana}
	talk("/api/agent/chat", map[string]any{"message": "hello", "history": []json.RawMessage{}})
	if last := string(r.History[len(r.History)-1]); !strings.Contains(last, "Asia/Kolkata") ||
		!strings.Contains(last, "en-IN") {
		t.Errorf("a page that tells nothing is not answered by what is kept: %s", last)
	}
	for path, body := range map[string]string{"/api/agent/chat": `{"message":"hello",`,
		"/api/agent/chat/results": `{"results":[],`} {
		for field, value := range map[string]string{"timeZone": "Mars/Olympus Mons", "locale": "de_DE"} {
			if got := p.refused(path, body+`"`+field+`":"`+value+`"}`); got != field {
				t.Errorf("%s takes %s for a %s, or refuses %q", path, value, field, got)
			}
		}
	}
}

// refused posts a body, and returns the field that a 400 names; empty for another status.
func (u *served) refused(path, body string) string {
	u.t.Helper()
	req, err := http.NewRequestWithContext(u.t.Context(), http.MethodPost, u.base+path, strings.NewReader(body))
	if err != nil {
		u.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer "+u.token)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		u.t.Fatal(err)
	}
	defer res.Body.Close()
	var out struct{ Error struct{ Field string } }
	if err := json.NewDecoder(res.Body).Decode(&out); err != nil {
		u.t.Fatal(err)
	}
	if res.StatusCode != http.StatusBadRequest {
		return ""
	}
	return out.Error.Field
}
