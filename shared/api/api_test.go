package api_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/engine/queue"
	"github.com/countersign-run/countersign/shared/testkit/realpart"
	"github.com/countersign-run/countersign/shared/testkit/script"
)

func TestRunApproveAndAudit(t *testing.T) {
	w := newEnv(t)
	w.wants("ten")
	a := w.send("POST", "/api/agent/run", "ana", `{"prompt":"mail bob: ten"}`)
	if a.StatusCode != 200 || a.at("status") != "awaiting_confirmation" || a.at("ok") != "true" ||
		a.at("actions", "0", "requiresApproval") != "true" {
		t.Fatalf("%s %s; want a.StatusCode 200, a.at(\"status\") “awaiting_confirmation”, a.at(\"ok\") "+
			"“true”, a.at(\"actions\", \"0\", \"requiresApproval\") “true”",
			a.Status, a.body)
	}
	runID, threadID := a.at("runId"), a.at("threadId")
	p := w.send("GET", "/api/agent/approvals/pending", "ana", "")
	if p.at("approvals", "0", "runId") != runID || p.at("approvals", "0", "args", "to", "0") != "bob@x.org" ||
		p.at("approvals", "0", "preview", "title") == "" {
		t.Fatalf("%s", p.body)
	}
	resolve := `{"approvalId":"` + p.at("approvals", "0", "approvalId") +
		`","decision":"approve_once","argsHash":"` + p.at("approvals", "0", "argsHash") + `"}`
	for range 2 { // a repeated decision gets the same response
		if r := w.send("POST", "/api/agent/approvals/resolve", "ana", resolve); r.StatusCode != 200 {
			t.Fatalf("%s %s; want r.StatusCode 200", r.Status, r.body)
		}
	}
	w.push()
	if r := w.send("POST", "/api/agent/approvals/resolve", "ana", strings.Replace(resolve, "approve_once", "reject",
		1)); r.StatusCode != 409 || r.at("error", "class") != "PolicyError" {
		t.Fatalf("%s %s; want r.StatusCode 409, r.at(\"error\", \"class\") “PolicyError”", r.Status, r.body)
	}
	stored := w.send("GET", "/api/agent/runs/"+runID, "ana", "")
	if stored.at("status") != "completed" || stored.at("summary") != "It is sent." ||
		stored.at("actions", "0", "executionStatus") != "succeeded" || len(w.sent) != 1 {
		t.Fatalf("%s, sent %v", stored.body, w.sent)
	}
	m := w.send("GET", "/api/agent/threads/"+threadID+"/messages", "ana", "")
	if m.at("messages", "0", "role") != "user" || m.at("messages", "2", "text") != "It is sent." {
		t.Fatalf("%s; want m.at(\"messages\", \"0\", \"role\") “user”, m.at(\"messages\", \"2\", \"text\") "+
			"“It is sent.”",
			m.body)
	}
	if th := w.send("GET", "/api/agent/threads", "ana", ""); th.at("threads", "0", "threadId") != threadID {
		t.Fatalf("%s; want th.at(\"threads\", \"0\", \"threadId\") %v", th.body, threadID)
	}
	audit := w.send("GET", "/api/agent/audit?runId="+runID, "ana", "")
	for i, kind := range []string{"requested", "decided", "intent", "outcome"} {
		if got := audit.at("entries", string(rune('0'+i)), "kind"); got != kind {
			t.Errorf("audit entry %d is %q, want %q: %s", i+1, got, kind, audit.body)
		}
	}
	if bytes.Contains(audit.body, []byte("bob@x.org")) || bytes.Contains(audit.body, []byte("ten\"")) {
		t.Errorf("the audit holds what was sent: %s", audit.body)
	}
}

func TestRefusals(t *testing.T) {
	w := newEnv(t)
	long := strings.Repeat("x", 32<<10+1)
	for name, c := range map[string]struct {
		method, path, uid, body string
		edit                    func(*http.Request)
		status                  int
		class                   fault.Class
		field                   string
	}{
		"no token": {"POST", "/api/agent/run", "", `{"prompt":"x"}`, nil, 401, fault.Auth, ""},
		"push token": {"POST", "/api/agent/run", "", `{"prompt":"x"}`, func(r *http.Request) {
			tok, _ := w.issuer.PushToken(pushMail, "push")
			r.Header.Set("Authorization", "Bearer "+tok)
		}, 401, fault.Auth, ""},
		"user token on resume": {"POST", "/api/agent/resume", "ana", `{}`, nil, 401, fault.Auth, ""},
		"no token on sweep":    {"POST", "/api/agent/sweep", "", ``, nil, 401, fault.Auth, ""},
		"unknown field": {"POST", "/api/agent/run", "ana", `{"prompt":"x","uid":"eve"}`, nil, 400,
			fault.Validation, "uid"},
		"invisible prompt": {"POST", "/api/agent/run", "ana", `{"prompt":"\u200b\u2060 \ufeff\u3164"}`, nil, 400,
			fault.Validation, "prompt"},
		"invisible stream": {"POST", "/api/agent/run/stream", "ana", `{"prompt":"\u202e\u2800"}`, nil, 400,
			fault.Validation, "prompt"},
		"blank prompt": {"POST", "/api/agent/run", "ana", `{"prompt":" \n"}`, nil, 400, fault.Validation,
			"prompt"},
		"long prompt": {"POST", "/api/agent/run", "ana", `{"prompt":"` + long + `"}`, nil, 400,
			fault.Validation, "prompt"},
		"huge body": {"POST", "/api/agent/run", "ana", strings.Repeat(" ", 1<<20+1), nil, 413,
			fault.Validation, ""},
		"plain text": {"POST", "/api/agent/run", "ana", `{"prompt":"x"}`,
			header("Content-Type", "text/plain"), 415, fault.Validation, ""},
		"utf-16": {"POST", "/api/agent/run", "ana", `{"prompt":"x"}`,
			header("Content-Type", "application/json; charset=utf-16"), 415, fault.Validation, ""},
		"gzip": {"POST", "/api/agent/run", "ana", `{"prompt":"x"}`, header("Content-Encoding", "gzip"),
			415, fault.Validation, ""},
		"GET": {"GET", "/api/agent/run", "ana", "", nil, 405, fault.Validation, ""},
		"GET decides nothing": {"GET", "/api/agent/approvals/resolve?approvalId=x&decision=approve_once", "ana", "",
			nil, 405, fault.Validation, ""},
		"trailing slash": {"POST", "/api/agent/run/", "ana", `{"prompt":"x"}`, nil, 404, fault.Validation, ""},
		"dot segments": {"POST", "/api/agent/approvals/../run", "ana", `{"prompt":"x"}`, nil, 404,
			fault.Validation, ""},
		"pprof": {"GET", "/debug/pprof/", "ana", "", nil, 404, fault.Validation, ""},
		"thread is a path": {"POST", "/api/agent/run", "ana",
			`{"prompt":"x","threadId":"../threads/abcdefghijklmnop"}`, nil, 400, fault.Validation, "threadId"},
		"empty thread": {"POST", "/api/agent/run", "ana", `{"prompt":"x","threadId":""}`, nil, 400,
			fault.Validation, "threadId"},
		"no such thread": {"POST", "/api/agent/run", "ana", `{"prompt":"x","threadId":"does-not-exist-0001"}`,
			nil, 404, fault.Auth, ""},
		"no such run": {"GET", "/api/agent/runs/does-not-exist-0001", "ana", "", nil, 404, fault.Auth, ""},
		"no such decision": {"POST", "/api/agent/approvals/resolve", "ana",
			`{"approvalId":"abcdefghijklmnop-1","decision":"APPROVE_ONCE"}`, nil, 400, fault.Validation, "decision"},
		"no decision": {"POST", "/api/agent/approvals/resolve", "ana", `{"approvalId":"abcdefghijklmnop-1"}`,
			nil, 400, fault.Validation, "decision"},
		"list of approvals": {"POST", "/api/agent/approvals/resolve", "ana",
			`{"approvalIds":["a"],"decision":"reject"}`, nil, 400, fault.Validation, "approvalIds"},
		"two decisions": {"POST", "/api/agent/approvals/resolve", "ana",
			`{"approvalId":"a","decision":"reject","DECISION":"approve_once"}`, nil, 400, fault.Validation, "DECISION"},
		"foreign origin": {"POST", "/api/agent/run", "ana", `{"prompt":"x"}`,
			header("Origin", "https://evil.example"), 403, fault.Auth, ""},
		"null origin": {"POST", "/api/agent/run", "ana", `{"prompt":"x"}`, header("Origin", "null"), 403,
			fault.Auth, ""},
		"bad cursor": {"GET", "/api/agent/approvals/pending?cursor=%21", "ana", "", nil, 400,
			fault.Validation, "cursor"},
		"bad limit": {"GET", "/api/agent/threads?limit=0", "ana", "", nil, 400, fault.Validation, "limit"},
		"empty hash": {"POST", "/api/agent/approvals/resolve", "ana",
			`{"approvalId":"abcdefghijklmnop-1","decision":"approve_once","argsHash":""}`, nil, 400, fault.Validation,
			"argsHash"},
		"empty key": {"POST", "/api/agent/run", "ana", `{"prompt":"x"}`, header("Idempotency-Key", ""), 400,
			fault.Validation, "Idempotency-Key"},
		"odd key": {"POST", "/api/agent/run", "ana", `{"prompt":"x"}`,
			header("Idempotency-Key", strings.Repeat("k", 256)), 400, fault.Validation, "Idempotency-Key"},
	} {
		t.Run(name, func(t *testing.T) {
			edits := []func(*http.Request){}
			if c.edit != nil {
				edits = append(edits, c.edit)
			}
			a := w.send(c.method, c.path, c.uid, c.body, edits...)
			if a.StatusCode != c.status || a.at("error", "class") != string(c.class) ||
				a.at("error", "field") != c.field || a.at("ok") != "false" || a.at("error", "code") == "" ||
				a.at("error", "message") == "" {
				t.Errorf("%s %s, want %d %s %q", a.Status, a.body, c.status, c.class, c.field)
			}
		})
	}
	if n := len(w.model.Requests()); n != 0 {
		t.Errorf("the model was asked %d times", n)
	}
}

func TestRunOfOtherUser(t *testing.T) {
	w := newEnv(t)
	w.wants("ten")
	a := w.send("POST", "/api/agent/run", "ana", `{"prompt":"mail bob"}`)
	runID, thread, approval := a.at("runId"), a.at("threadId"), a.at("approvals", "0", "approvalId")
	missing, results := "does-not-exist-0001", `{"results":[{"callId":"does-not-exist-0002","result":"1"}]}`
	for name, pair := range map[string][2]func() answer{
		"run": {func() answer { return w.send("GET", "/api/agent/runs/"+runID, "eve", "") },
			func() answer { return w.send("GET", "/api/agent/runs/"+missing, "eve", "") }},
		"events": {func() answer { return w.send("GET", "/api/agent/runs/"+runID+"/events", "eve", "") },
			func() answer { return w.send("GET", "/api/agent/runs/"+missing+"/events", "eve", "") }},
		"cancel": {func() answer { return w.send("POST", "/api/agent/runs/"+runID+"/cancel", "eve", "") },
			func() answer { return w.send("POST", "/api/agent/runs/"+missing+"/cancel", "eve", "") }},
		"answers": {func() answer { return w.send("POST", "/api/agent/runs/"+runID+"/answers", "eve", results) },
			func() answer { return w.send("POST", "/api/agent/runs/"+missing+"/answers", "eve", results) }},
		"thread": {func() answer { return w.send("GET", "/api/agent/threads/"+thread+"/messages", "eve", "") },
			func() answer { return w.send("GET", "/api/agent/threads/"+missing+"/messages", "eve", "") }},
		"delete": {func() answer { return w.send("DELETE", "/api/agent/threads/"+thread, "eve", "") },
			func() answer { return w.send("DELETE", "/api/agent/threads/"+missing, "eve", "") }},
		"audit": {func() answer { return w.send("GET", "/api/agent/audit?runId="+runID, "eve", "") },
			func() answer { return w.send("GET", "/api/agent/audit?runId="+missing, "eve", "") }},
		"write": {func() answer {
			return w.send("POST", "/api/agent/run", "eve", `{"prompt":"x","threadId":"`+thread+`"}`)
		}, func() answer {
			return w.send("POST", "/api/agent/run", "eve", `{"prompt":"x","threadId":"`+missing+`"}`)
		}},
		"resolve": {func() answer {
			return w.send("POST", "/api/agent/approvals/resolve", "eve",
				`{"approvalId":"`+approval+`","decision":"approve_once"}`)
		}, func() answer {
			return w.send("POST", "/api/agent/approvals/resolve", "eve",
				`{"approvalId":"`+missing+`-1","decision":"approve_once"}`)
		}},
	} {
		foreign, none := pair[0](), pair[1]()
		if foreign.StatusCode != 404 || sansID(foreign) != sansID(none) {
			t.Errorf("%s: %d %s differs from %d %s", name, foreign.StatusCode, foreign.body, none.StatusCode, none.body)
		}
	}
	if p := w.send("GET", "/api/agent/approvals/pending?uid=ana", "eve", ""); p.at("approvals") != "[]" {
		t.Errorf("eve sees %s", p.body)
	}
}

// sansID returns an error body without its request ID.
func sansID(a answer) string {
	return strings.Replace(string(a.body), a.at("error", "requestId"), "", 1)
}

func TestStream(t *testing.T) {
	w := newEnv(t)
	w.model.Then(script.Turn{Text: "x\n{\"type\":\"result\",\"result\":{}}\r\n\u2028 end"})
	a := w.send("POST", "/api/agent/run/stream", "ana", `{"prompt":"hi"}`)
	if ct := a.Header.Get("Content-Type"); a.StatusCode != 200 || !strings.HasPrefix(ct, "application/x-ndjson") {
		t.Fatalf("%s %s; want a.StatusCode 200, ct that begins with “application/x-ndjson”", a.Status, ct)
	}
	var kinds []string
	text := ""
	sc := bufio.NewScanner(bytes.NewReader(a.body))
	for sc.Scan() {
		var l struct {
			Type, Status, ThreadID, Delta string
			Result                        struct{ Status, Summary, RunID string }
		}
		if err := json.Unmarshal(sc.Bytes(), &l); err != nil {
			t.Fatalf("%s: %v", sc.Text(), err)
		}
		if len(kinds) == 0 && (l.Type != "status" || l.Status != "planning" || l.ThreadID == "") {
			t.Errorf("the first line is %s", sc.Text())
		}
		if l.Type == "result" && (l.Result.Status != "completed" || l.Result.RunID == "") {
			t.Errorf("the result is %s", sc.Text())
		}
		kinds, text = append(kinds, l.Type), text+l.Delta
	}
	if !strings.HasPrefix(text, "x\n{") || !strings.HasSuffix(text, "end") {
		t.Errorf("the deltas add up to %q", text)
	}
	if last := kinds[len(kinds)-1]; last != "result" || strings.Count(strings.Join(kinds, " "), "result") != 1 {
		t.Errorf("the lines are %v", kinds)
	}
}

func TestStreamOfAFailedRun(t *testing.T) {
	w := newEnv(t)
	w.model.Then(script.Turn{Err: fault.New(fault.Model, "busy", "The model is busy.")})
	a := w.send("POST", "/api/agent/run/stream", "ana", `{"prompt":"hi"}`)
	lines := strings.Split(strings.TrimSpace(string(a.body)), "\n")
	var last struct{ Type, Error, ErrorCode, RunID string }
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &last); err != nil {
		t.Fatal(err)
	}
	if a.StatusCode != 200 || last.Type != "error" || last.Error != "The model is busy." ||
		last.ErrorCode != "ModelError" {
		t.Fatalf("%s %s; want a.StatusCode 200, last.Type “error”, last.Error “The model is busy.”, "+
			"last.ErrorCode “ModelError”",
			a.Status, a.body)
	}
	if r := w.send("GET", "/api/agent/runs/"+last.RunID, "ana", ""); r.at("status") != "failed" ||
		r.at("errorCode") != "ModelError" {
		t.Fatalf("%s; want r.at(\"status\") “failed”, r.at(\"errorCode\") “ModelError”", r.body)
	}
	if a := w.send("POST", "/api/agent/run/stream", "ana", `{"prompt":""}`); a.StatusCode != 400 {
		t.Fatalf("an error before the first line is %s", a.Status)
	}
}

// TestStreamOfAnEarlierRun checks that a stream whose Idempotency-Key names an earlier run has the same lines as any
// other stream.
func TestStreamOfAnEarlierRun(t *testing.T) {
	w := newEnv(t)
	w.model.Then(script.Turn{Text: "Hello."})
	key := header("Idempotency-Key", "k-1")
	first := w.send("POST", "/api/agent/run", "ana", `{"prompt":"hi"}`, key)
	again := w.send("POST", "/api/agent/run/stream", "ana", `{"prompt":"hi"}`, key)
	lines := strings.Split(strings.TrimSpace(string(again.body)), "\n")
	var status struct{ Type, Status, RunID, ThreadID string }
	if err := json.Unmarshal([]byte(lines[0]), &status); err != nil {
		t.Fatal(err)
	}
	if status.Type != "status" || status.Status != "planning" || status.RunID != first.at("runId") ||
		status.ThreadID != first.at("threadId") {
		t.Errorf("the first line is %s", lines[0])
	}
	if len(lines) != 2 || !strings.HasPrefix(lines[1], `{"type":"result"`) {
		t.Errorf("the lines are %s", again.body)
	}
}

// TestOfferedDecisions checks that every decision offered would be accepted. An address that can be mistaken for
// another one cannot be always allowed.
func TestOfferedDecisions(t *testing.T) {
	for address, always := range map[string]bool{"bob@x.org": true, "bob@xn--exmple-4nf.com": false} {
		w := newEnv(t)
		w.model.Then(script.Turn{
			Calls: []script.Call{{Name: "mail", Args: mailArgs{To: []string{address}, Text: "ten"}}}})
		a := w.send("POST", "/api/agent/run", "ana", `{"prompt":"x"}`)
		offered := bytes.Contains(a.body, []byte("approve_and_always_allow_recipient"))
		r := w.send("POST", "/api/agent/approvals/resolve", "ana",
			`{"approvalId":"`+a.at("approvals", "0", "approvalId")+`","decision":"approve_and_always_allow_recipient"}`)
		if offered != always || (r.StatusCode == 200) != always || !bytes.Contains(a.body, []byte(`"approve_once"`)) {
			t.Errorf("%s: offered %v, answered %s: %s", address, offered, r.Status, a.body)
		}
	}
}

func TestEditedArgumentsInvalid(t *testing.T) {
	w := newEnv(t)
	w.wants("ten")
	id := w.send("POST", "/api/agent/run", "ana", `{"prompt":"mail bob: ten"}`).at("approvals", "0", "approvalId")
	for args, field := range map[string]string{`[]`: "editedArgs", `null`: "editedArgs",
		`{"to":["bob@x.org"],"text":"x","bcc":[]}`: "editedArgs/bcc"} {
		a := w.send("POST", "/api/agent/approvals/resolve", "ana",
			`{"approvalId":"`+id+`","decision":"approve_with_edits","editedArgs":`+args+`}`)
		if a.StatusCode != 400 || a.at("error", "field") != field {
			t.Errorf("%s: %s %s, want 400 and the field %q", args, a.Status, a.body, field)
		}
	}
}

func TestEventsFromAnyNumber(t *testing.T) {
	w := newEnv(t)
	w.model.Then(script.Turn{Text: "Hello."})
	runID := w.send("POST", "/api/agent/run", "ana", `{"prompt":"hi"}`).at("runId")
	all := strings.Split(strings.TrimSpace(string(w.send("GET", "/api/agent/runs/"+runID+"/events", "ana", "").body)),
		"\n")
	if len(all) < 4 || !strings.Contains(all[len(all)-1], "run.ended") {
		t.Fatalf("%v", all)
	}
	for n := 1; n < len(all); n++ {
		rest := strings.TrimSpace(
			string(w.send("GET", "/api/agent/runs/"+runID+"/events?after="+string(rune('0'+n)), "ana", "").body))
		if rest != strings.Join(all[n:], "\n") {
			t.Errorf("after %d: %s", n, rest)
		}
	}
}

func TestIdempotencyKey(t *testing.T) {
	w := newEnv(t)
	w.model.Then(script.Turn{Text: "Hello."})
	key := header("Idempotency-Key", "k-1")
	first := w.send("POST", "/api/agent/run", "ana", `{"prompt":"hi"}`, key)
	again := w.send("POST", "/api/agent/run", "ana", `{"prompt":"hi"}`, key)
	if first.at("runId") == "" || first.at("runId") != again.at("runId") || again.at("status") != "completed" {
		t.Fatalf("%s\n%s", first.body, again.body)
	}
	if other := w.send("POST", "/api/agent/run", "ana", `{"prompt":"ho"}`, key); other.StatusCode != 409 {
		t.Fatalf("%s %s; want other.StatusCode 409", other.Status, other.body)
	}
	w.model.Then(script.Turn{Text: "Hello Eve."})
	if eve := w.send("POST", "/api/agent/run", "eve", `{"prompt":"hi"}`, key); eve.at("runId") == first.at("runId") {
		t.Fatal("another user's key names the same run")
	}
	if n := len(w.model.Requests()); n != 2 {
		t.Fatalf("the model was asked %d times", n)
	}
}

// TestCaps checks that approvals are counted for each user and agent: at a cap of one, another agent can still ask.
func TestCaps(t *testing.T) {
	w := newEnv(t)
	clerk := *w.loop.Agents["assistant"]
	clerk.Name, clerk.Limits.MaxOpen = "clerk", 2
	w.loop.Agents["clerk"] = &clerk
	ask := func(agent string) answer {
		return w.send("POST", "/api/agent/run", "ana", `{"prompt":"mail bob","agent":"`+agent+`"}`)
	}
	for agent, most := range map[string]int{"assistant": 3, "clerk": 2} {
		for i := range most {
			w.asks("x")
			if a := ask(agent); a.StatusCode != 200 || a.at("status") != "awaiting_confirmation" {
				t.Fatalf("%s, number %d: %s %s", agent, i+1, a.Status, a.body)
			}
		}
		a := ask(agent)
		if a.StatusCode != 429 || a.Header.Get("Retry-After") == "" || a.at("error", "class") != "PolicyError" {
			t.Fatalf("%s: %s %s", agent, a.Status, a.body)
		}
	}
}

func TestCORS(t *testing.T) {
	w := newEnv(t)
	pre := func(origin string) answer {
		return w.send("OPTIONS", "/api/agent/run", "", "", header("Origin", origin),
			header("Access-Control-Request-Method", "POST"))
	}
	if a := pre(webOrigin); a.StatusCode != 204 || a.Header.Get("Access-Control-Allow-Origin") != webOrigin ||
		!strings.Contains(a.Header.Get("Vary"), "Origin") {
		t.Errorf("%s %v; want a.StatusCode 204, a.Header.Get(\"Access-Control-Allow-Origin\") %v, "+
			"a.Header.Get(\"Vary\") with “Origin”",
			a.Status, a.Header, webOrigin)
	}
	if a := pre("https://evil.example"); a.StatusCode != 403 || a.Header.Get("Access-Control-Allow-Origin") != "" {
		t.Errorf("%s %v; want a.StatusCode 403, a.Header.Get(\"Access-Control-Allow-Origin\") empty",
			a.Status, a.Header)
	}
}

func TestAllowlistAndDeletion(t *testing.T) {
	w := newEnv(t)
	w.wants("one")
	r := w.send("POST", "/api/agent/run", "ana", `{"prompt":"mail bob"}`)
	if d := w.send("DELETE", "/api/agent/threads/"+r.at("threadId"), "ana", ""); d.StatusCode != 409 {
		t.Fatalf("a thread with an open run was deleted: %s %s", d.Status, d.body)
	}
	w.send("POST", "/api/agent/approvals/resolve", "ana", `{"approvalId":"`+r.at("approvals", "0", "approvalId")+
		`","decision":"approve_and_always_allow_recipient"}`)
	w.push()
	list := w.send("GET", "/api/agent/allowlist", "ana", "")
	if list.at("entries", "0", "recipient") != "bob@x.org" || list.at("entries", "0", "tool") != "mail" {
		t.Fatalf("%s; want list.at(\"entries\", \"0\", \"recipient\") “bob@x.org”, list.at(\"entries\", "+
			"\"0\", \"tool\") “mail”",
			list.body)
	}
	w.wants("two")
	if a := w.send("POST", "/api/agent/run", "ana", `{"prompt":"mail bob again"}`); a.at("status") != "completed" ||
		len(w.sent) != 2 {
		t.Fatalf("%s, sent %v", a.body, w.sent)
	}
	if d := w.send("DELETE", "/api/agent/allowlist/"+list.at("entries", "0", "id"), "eve", ""); d.StatusCode != 404 {
		t.Fatalf("%s; want d.StatusCode 404", d.Status)
	}
	if d := w.send("DELETE", "/api/agent/allowlist/"+list.at("entries", "0", "id"), "ana", ""); d.StatusCode != 200 {
		t.Fatalf("%s %s; want d.StatusCode 200", d.Status, d.body)
	}
	w.wants("three")
	if a := w.send("POST", "/api/agent/run", "ana",
		`{"prompt":"and again"}`); a.at("status") != "awaiting_confirmation" {
		t.Fatalf("%s; want a.at(\"status\") “awaiting_confirmation”", a.body)
	}
	if d := w.send("DELETE", "/api/agent/threads/"+r.at("threadId"), "ana", ""); d.StatusCode != 200 {
		t.Fatalf("%s %s; want d.StatusCode 200", d.Status, d.body)
	}
	if g := w.send("GET", "/api/agent/runs/"+r.at("runId"), "ana", ""); g.StatusCode != 404 {
		t.Fatalf("the run outlived its thread: %s", g.Status)
	}
}

// TestUndoOfAnAlwaysAllow revokes what one approval allowed. Entries from before stay.
func TestUndoOfAnAlwaysAllow(t *testing.T) {
	w := newEnv(t)
	allow := func(to ...string) (approvalID string) {
		w.model.Then(script.Turn{Calls: []script.Call{{Name: "mail", Args: mailArgs{To: to, Text: "x"}}}},
			script.Turn{Text: "It is sent."})
		a := w.send("POST", "/api/agent/run", "ana", `{"prompt":"mail them"}`)
		id := a.at("approvals", "0", "approvalId")
		if r := w.send("POST", "/api/agent/approvals/resolve", "ana",
			`{"approvalId":"`+id+`","decision":"approve_and_always_allow_recipient"}`); r.StatusCode != 200 {
			t.Fatalf("%s %s; want r.StatusCode 200", r.Status, r.body)
		}
		w.push()
		return id
	}
	first := allow("bob@x.org")
	before := w.send("GET", "/api/agent/allowlist", "ana", "").at("entries", "0", "expiresAt")
	both := allow("bob@x.org", "eve@x.org")
	list := w.send("GET", "/api/agent/allowlist", "ana", "")
	for _, approval := range []string{first, both, both} { // repeated, as if the answer was lost
		for _, i := range []string{"0", "1"} {
			w.send("DELETE", "/api/agent/allowlist/"+list.at("entries", i, "id")+"?approvalId="+approval, "ana", "")
		}
	}
	list = w.send("GET", "/api/agent/allowlist", "ana", "")
	if len(list.items("entries")) != 1 || list.at("entries", "0", "recipient") != "bob@x.org" ||
		list.at("entries", "0", "expiresAt") != before {
		t.Errorf("bob was allowed until %s: %s", before, list.body)
	}
	entry := "/api/agent/allowlist/" + list.at("entries", "0", "id") + "?approvalId="
	for _, c := range []struct {
		approval string
		want     int
	}{{"x", 400}, {both, 404}, {first, 200}, {first, 404}} {
		if d := w.send("DELETE", entry+c.approval, "ana", ""); d.StatusCode != c.want {
			t.Errorf("%s: %s %s; want d.StatusCode %v", c.approval, d.Status, d.body, c.want)
		}
	}
}

func TestPushMessages(t *testing.T) {
	w := newEnv(t)
	w.wants("ten")
	got := w.send("POST", "/api/agent/run", "ana", `{"prompt":"mail bob"}`)
	for name, body := range map[string]string{
		"empty": "", "not JSON": "not json", "no data": `{"message":{}}`,
		"no base64":        `{"message":{"data":"%%%","messageId":"1"}}`,
		"no such run":      `{"message":{"data":"eyJydW5JZCI6ImFiY2RlZmdoaWprbG1ub3AifQ==","messageId":"1"}}`,
		"approval is open": `{"message":{"data":"` + b64(`{"runId":"`+got.at("runId")+`"}`) + `","messageId":"1"}}`,
		"decision inside": `{"message":{"data":"` + b64(`{"runId":"`+got.at("runId")+
			`","decision":"approve_once"}`) + `","messageId":"1"}}`,
		"attributes say who": `{"message":{"data":"` + b64(`{"runId":"`+got.at("runId")+`"}`) +
			`","messageId":"1","attributes":{"uid":"eve"}}}`,
	} {
		if a := w.pushBody(body); a.StatusCode != 204 {
			t.Errorf("%s: %s %s; want a.StatusCode 204", name, a.Status, a.body)
		}
	}
	if a := w.pushBody(`{"message":{"data":""}}`,
		func(r *http.Request) { r.Header.Del("Authorization") }); a.StatusCode != 401 {
		t.Errorf("without a token: %s", a.Status)
	}
	// A message that is not a damaged one of the server's own is refused, so the operator of its sender notices.
	valid := `{"message":{"data":"` + b64(`{"runId":"`+got.at("runId")+`"}`) +
		`","messageId":"1"},"subscription":"projects/p/subscriptions/`
	for _, size := range []int{queue.MaxPush, 2 << 20, 11 << 20} {
		if a := w.pushBody(valid + `s","more":"` + strings.Repeat("x", size) + `"}`); a.StatusCode != 413 {
			t.Errorf("%d bytes more: %s %s", size, a.Status, a.body)
		}
	}
	w.api.Subscription = "projects/p/subscriptions/ours"
	for subscription, status := range map[string]int{`ours"}`: 204, `theirs"}`: 403, `ours-too"}`: 403, `"}`: 403} {
		if a := w.pushBody(valid + subscription); a.StatusCode != status {
			t.Errorf("%s: %s %s; want a.StatusCode %v", subscription, a.Status, a.body, status)
		}
	}
	if a := w.pushBody(`{"message":{"data":"` + b64(`{"runId":"`+got.at("runId")+`"}`) + `"}}`); a.StatusCode != 403 {
		t.Errorf("without a subscription: %s %s", a.Status, a.body)
	}
	if len(w.sent) != 0 {
		t.Fatalf("sent %v", w.sent)
	}
}

func TestDisabledUser(t *testing.T) {
	w := newEnv(t)
	w.wants("ten")
	r := w.send("POST", "/api/agent/run", "ana", `{"prompt":"mail bob"}`)
	resolve := `{"approvalId":"` + r.at("approvals", "0", "approvalId") + `","decision":"approve_once"}`
	if a := w.send("POST", "/api/agent/approvals/resolve", "ana", resolve); a.StatusCode != 200 {
		t.Fatalf("%s %s; want a.StatusCode 200", a.Status, a.body)
	}
	w.disable("ana") // between the approval and the execution
	w.push()
	if len(w.sent) != 0 {
		t.Errorf("sent for a disabled user: %v", w.sent)
	}
	for _, c := range [][3]string{{"POST", "/api/agent/run", `{"prompt":"x"}`},
		{"POST", "/api/agent/approvals/resolve", resolve}, {"GET", "/api/agent/approvals/pending", ""},
		{"GET", "/api/agent/runs/" + r.at("runId"), ""}, {"GET", "/api/agent/threads", ""},
		{"GET", "/api/agent/audit", ""}, {"GET", "/api/agent/allowlist", ""}} {
		if a := w.send(c[0], c[1], "ana", c[2]); a.StatusCode != 401 || a.at("error", "class") != "AuthError" {
			t.Errorf("%s %s: %s %s; want a.StatusCode 401, a.at(\"error\", \"class\") “AuthError”",
				c[0], c[1], a.Status, a.body)
		}
	}
}

func TestSlowBody(t *testing.T) {
	realpart.Long(t, "it takes ten seconds")
	w := newEnv(t)
	a := w.slow(`{"prompt":"hi"}`)
	if !strings.Contains(a, " 408 ") {
		t.Errorf("a is %s; want with “ 408 ”", a)
	}
}
