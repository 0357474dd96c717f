package api_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/countersign-run/countersign/shared/testkit/script"
)

// begins starts a conversation of the user, and returns its ID and its run's ID.
func (w *env) begins(uid, prompt string) (thread, runID string) {
	w.t.Helper()
	body, err := json.Marshal(map[string]string{"prompt": prompt})
	if err != nil {
		w.t.Fatal(err)
	}
	a := w.send("POST", "/api/agent/run", uid, string(body))
	if a.StatusCode != http.StatusOK {
		w.t.Fatalf("%s %s; want a.StatusCode %v", a.Status, a.body, http.StatusOK)
	}
	return a.at("threadId"), a.at("runId")
}

// TestThreadSearch searches conversations over HTTP by words, state and time. Another user's conversations are never
// found.
func TestThreadSearch(t *testing.T) {
	w := newEnv(t)
	names := map[string]string{} // thread IDs to names
	begins := func(name, uid, prompt string) (runID string) {
		id, runID := w.begins(uid, prompt)
		names[id] = name
		return runID
	}
	w.model.Then(script.Turn{Text: "Gern."})
	begins("done", "ana", "Größe an Frau Müller nennen")
	w.asks("東京で会いましょう")
	begins("waits", "ana", "東京のボブに書いて")
	w.asks("cancelled")
	w.send("POST", "/api/agent/runs/"+begins("failed", "ana", "Write to Bob about Łódź")+"/cancel", "ana", "{}")
	w.asks("hers")
	begins("eve's", "eve", "Write to Bob about Łódź and Müller")
	var all struct {
		Threads []struct{ UpdatedAt time.Time }
	}
	if err := json.Unmarshal(w.send("GET", "/api/agent/threads", "ana", "").body, &all); err != nil ||
		len(all.Threads) != 3 {
		t.Fatalf("%v: %+v; want len(all.Threads) 3", err, all)
	}
	tokyo := time.FixedZone("", 9*3600)
	at := func(i int) string { return all.Threads[i].UpdatedAt.In(tokyo).Format(time.RFC3339Nano) }
	for name, c := range map[string]struct {
		query url.Values
		want  string
	}{
		"a name without its dots": {url.Values{"q": {"muller"}}, "done"},
		"capitals, sharp s":       {url.Values{"q": {"GRÖßE frau"}}, "done"},
		"another script":          {url.Values{"q": {"東京"}}, "waits"},
		"a recipient":             {url.Values{"q": {"BOB@x.org"}}, "failed waits"},
		"a tool":                  {url.Values{"q": {"mail"}}, "failed waits"},
		"words of two places":     {url.Values{"q": {"bob@x łódź"}}, "failed"},
		"nothing":                 {url.Values{"q": {"nobody"}}, ""},
		"a pattern is text":       {url.Values{"q": {"%"}}, ""},
		"waiting":                 {url.Values{"state": {"waiting"}}, "waits"},
		"completed":               {url.Values{"state": {"completed"}}, "done"},
		"failed":                  {url.Values{"state": {"failed"}}, "failed"},
		"running":                 {url.Values{"state": {"running"}}, ""},
		"state and words":         {url.Values{"state": {"waiting"}, "q": {"łódź"}}, ""},
		"from":                    {url.Values{"from": {at(1)}}, "failed waits"},
		"to":                      {url.Values{"to": {at(1)}}, "waits done"},
		"from and to":             {url.Values{"from": {at(1)}, "to": {at(1)}}, "waits"},
		"from after to":           {url.Values{"from": {at(0)}, "to": {at(2)}}, ""},
		"all": {url.Values{"q": {"bob"}, "state": {"failed"}, "from": {at(0)}, "to": {at(0)}},
			"failed"},
	} {
		t.Run(name, func(t *testing.T) {
			var found []string
			for cursor, more := "", true; more; more = cursor != "" {
				c.query.Set("limit", "1")
				c.query.Set("cursor", cursor)
				a := w.send("GET", "/api/agent/threads?"+c.query.Encode(), "ana", "")
				if a.StatusCode != http.StatusOK {
					t.Fatalf("%s %s; want a.StatusCode %v", a.Status, a.body, http.StatusOK)
				}
				if id := a.at("threads", "0", "threadId"); id != "" {
					found = append(found, names[id])
				}
				cursor = a.at("nextCursor")
			}
			if got := strings.Join(found, " "); got != c.want {
				t.Errorf("found %q, want %q", got, c.want)
			}
		})
	}
}

// TestThreadSearchSpellings searches over HTTP with other letters, quotes and hyphens than a conversation has.
func TestThreadSearchSpellings(t *testing.T) {
	w := newEnv(t)
	for prompt, queries := range map[string][]string{
		"Straßenliste für Łukasz und Søren": {"strassenliste", "STRASSENLISTE", "lukasz", "Soren FUR"},
		"Ana’s “Æsop” co‑op – plan":         {"ana's", `"aesop" plan`, "“Ana’s", "co-op"},
		"Οδός Αριστοτέλους 5":               {"ΟΔΟΣ", "αριστοτελουσ 5"},
		"Soft\u00adhyphen demo\u200bplan":   {"softhyphen", "demoplan"},
		"İstanbul ışık":                     {"istanbul", "isik", "IŞIK"},
		"👍🏽 🎉 fertig":                       {"👍", "🎉 FERTIG"},
		"दिल्ली में बैठक":                   {"दिल्ली", "बैठक"},
		"مُحَمَّد في القاهرة":               {"محمد"},
		"ﬁle of ＡＮＡ":                        {"file ana"},
		strings.Repeat("会議の議事録を送る", 9):      {strings.Repeat("会議の議事録を送る", 9)},
	} {
		w.model.Then(script.Turn{Text: "Gern."})
		id, _ := w.begins("ana", prompt)
		w.begins("eve", prompt)
		for _, q := range queries {
			a := w.send("GET", "/api/agent/threads?"+url.Values{"q": {q}}.Encode(), "ana", "")
			if a.at("threads", "0", "threadId") != id || a.at("threads", "1", "threadId") != "" {
				t.Errorf("%q does not find %q: %s %s", q, prompt, a.Status, a.body)
			}
		}
	}
}

// TestThreadSearchComments searches for words beside a decision.
func TestThreadSearchComments(t *testing.T) {
	w := newEnv(t)
	w.asks("At ten.")
	id, runID := w.begins("ana", "Write to Bob")
	run := w.send("GET", "/api/agent/runs/"+runID, "ana", "")
	w.model.Then(script.Turn{Text: "All right."})
	body, err := json.Marshal(map[string]string{"approvalId": run.at("approvals", "0", "approvalId"),
		"decision": "reject", "comment": "Not before Pentecost"})
	if err != nil {
		t.Fatal(err)
	}
	if a := w.send("POST", "/api/agent/approvals/resolve", "ana", string(body)); a.StatusCode != http.StatusOK {
		t.Fatalf("%s %s", a.Status, a.body)
	}
	if a := w.send("GET", "/api/agent/threads?q=PENTECOST", "ana", ""); a.at("threads", "0", "threadId") != id {
		t.Errorf("%s %s", a.Status, a.body)
	}
}

// TestThreadSearchRefused sends invalid searches and checks that the error names the parameter.
func TestThreadSearchRefused(t *testing.T) {
	w := newEnv(t)
	for query, field := range map[string]string{
		"state=open": "state", "state=WAITING": "state", "from=yesterday": "from", "to=2026-03-02": "to",
		"from=2026-03-02T10:00:00": "from", "q=" + strings.Repeat("x", 201): "q", "q=a&cursor=x": "cursor",
	} {
		a := w.send("GET", "/api/agent/threads?"+query, "ana", "")
		if a.StatusCode != http.StatusBadRequest || a.at("error", "field") != field {
			t.Errorf("%s: %s %s; want a.StatusCode %v, a.at(\"error\", \"field\") %v",
				query, a.Status, a.body, http.StatusBadRequest, field)
		}
	}
	if a := w.send("GET", "/api/agent/threads?q=a", "", ""); a.StatusCode != http.StatusUnauthorized {
		t.Errorf("without a token: %s", a.Status)
	}
}
