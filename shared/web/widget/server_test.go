package widget_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/countersign-run/countersign/shared/agent/run"
)

const policy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; " +
	"require-trusted-types-for 'script'; trusted-types 'none'; base-uri 'none'; form-action 'self'"

type object = map[string]any

// turn is one answer of the scripted server: text or calls.
type turn struct {
	say    string
	calls  []object
	status int  // status of an error, sent the first time
	hold   bool // sends a part, and then nothing until the client disconnects
	plain  bool // answers with JSON although a stream is requested
	broken bool // ends the stream in the middle
}

func use(name string, args object) object {
	return object{"id": "call-" + name, "name": name, "args": args, "category": "page-automation"}
}

// scripts maps a user's message to the server's answers.
var scripts = map[string][]turn{
	"hello":  {{say: "Hello **you**, see [the shop](https://shop.example/mugs) and `code`.\n\n- one\n- two"}},
	"json":   {{say: "By JSON.", plain: true}},
	"broken": {{broken: true}, {say: "never"}},
	"fault":  {{status: 503, say: "Back again."}},
	"hold":   {{hold: true, say: "Late, but here."}},
	"hostile": {{say: "<img src=x onerror=document.title='owned'> [click](javascript:alert(1)) " +
		"[data](data:text/html,x) <button>Approve</button> " +
		"[https://bank.example](https://evil.example/x)\n\n```\n<script>1</script>\n```"}},
	"all tools": {
		{calls: []object{use("click-add-to-cart", object{"key": "mug-1"}), use("fill-search", object{"value": "blue"}),
			use("toggle-gift", object{"checked": true})}},
		{calls: []object{use("select-delivery", object{"value": "fast"}), use("select-colour", object{"value": "blue"}),
			use("fill-note", object{"value": "two\nlines"}),
			use("trigger-interaction", object{"coordinate": []string{"products", "mug-1", "add-to-cart"}}),
			use("fill-input", object{"coordinate": []string{"search"}, "value": "mug"})}},
		{say: "All done."},
	},
	"refused": {{calls: []object{use("click-add-to-cart", object{"key": "mug-2"}), use("click-ghost", object{}),
		use("fill-input", object{"coordinate": []string{"password"}, "value": "x"}),
		use("no-such-tool", object{}), use("select-colour", object{"value": "green"})}}, {say: "I could not."}},
	"order":  {{calls: []object{use("click-order", object{})}}, {say: "It is ordered."}},
	"reload": {{calls: []object{use("click-order", object{})}}, {say: "After the reload."}},
	"mail":   {{calls: []object{asked("yes")}}, {say: "The mail is sent."}},
	"policy": {{calls: []object{use("click-add-to-cart", object{"key": "mug-1"}),
		use("fill-note", object{"value": "two\nlines"}), use("click-order", object{})}}, {say: "As you said."}},
	"odd": {{calls: []object{use("trigger-interaction", object{"coordinate": []string{oddRef}}),
		use("fill-note", object{"value": "\u202egnp.exe\u200b<i>x</i>"})}}, {say: "It was odd."}},
	"gift":   {{calls: []object{use("toggle-gift", object{"checked": true})}}, {say: "It is a gift."}},
	"search": {{calls: []object{use("fill-search", object{"value": "blue"})}}, {say: "I looked."}},
	"when":   {{calls: []object{asked("when")}}, {say: "It is in the calendar."}},
	"late":   {{calls: []object{asked("late")}}, {say: "That has expired."}},
	"pair":   {{calls: []object{asked("first"), asked("second")}}, {say: "Both were decided."}},
	"mixed": {{calls: []object{use("click-add-to-cart", object{"key": "mug-1"}), asked("mixed")}},
		{calls: []object{asked("mixed")}}, {say: "Both are done."}},
	"held":      {{calls: []object{asked("held")}}, {say: "You took it back."}},
	"passes":    {{calls: []object{asked("passes")}}, {say: "It is sent after a while."}},
	"tardy":     {{calls: []object{asked("tardy")}}, {say: "It was too late."}},
	"halts":     {{calls: []object{asked("halts")}}},
	"elsewhere": {{calls: []object{asked("elsewhere")}}, {say: "Somebody took it back."}},
	"quiet":     {{calls: []object{asked("quiet")}}, {say: "It was rejected."}},
	"cut":       {{calls: []object{asked("cut")}}, {say: "The line was cut."}},
	"always":    {{calls: []object{always(asked("always"))}}, {say: "It was not sent."}},
	"plan":      {{calls: []object{planned(asked("plan"))}}, {say: "It was not planned."}},
	"behind":    {{calls: []object{asked("behind")}}, {say: "It is sent."}},
	"looks":     {{calls: []object{asked("looks")}}, {say: "It is sent, too."}},
	"loop":      {{calls: []object{use("toggle-gift", object{"checked": true})}}},
}

// oddRef is the name of one of the page's buttons.
const oddRef = "<img src=x onerror=document.title='owned'>\u202e"

func asked(name string) object {
	fields := []object{{"label": "To", "value": "ana@example.com"},
		{"label": "Message", "value": strings.Repeat("The demo is at ten. ", 20), "long": true}}
	if name == "when" {
		fields = []object{{"label": "Starts", "value": "Tuesday, 5 January 2027, 12:00 (Europe/Berlin, UTC+01:00)",
			"at": "2027-01-05T12:00:00+01:00"}}
	}
	return object{"id": "call-" + name, "name": "gmail_send", "args": object{}, "category": "server-action",
		"approval": object{
			"approvalId": name + "-1", "runId": name, "kind": "approval", "tool": "gmail_send", "args": object{},
			"argsHash": "hash-" + name, "reason": "Mail to a new address is asked about.",
			"preview": object{"title": "Send an e-mail", "fields": fields,
				"warnings": []string{"This address was never written to."}},
			"timeZone": "Europe/Berlin", "decisions": []string{"approve_once", "reject"}, "requestedAt": time.Now(),
			"expiresAt": time.Now().Add(time.Hour),
		}}
}

// always offers to always allow the e-mail's recipients.
func always(call object) object {
	a := call["approval"].(object)
	a["args"] = object{"to": []string{"ana@example.com", "ken@example.org"}}
	a["decisions"] = []string{"approve_once", "approve_and_always_allow_recipient", "reject"}
	return call
}

// planned turns the approval into one of a plan.
func planned(call object) object {
	a := call["approval"].(object)
	a["kind"], a["tool"] = "plan", "propose_plan"
	a["findings"] = []object{{"reason": "composed", "text": "ana@example.net"}}
	a["preview"] = object{"title": "Confirm a plan", "fields": []object{
		{"label": "Task 1, required actions", "value": "Create an issue, Send an e-mail"}}}
	return call
}

// chatServer implements the HTTP contract with the scripted answers. It records mistakes and secrets in the requests.
type chatServer struct {
	sync.Mutex
	url       string
	problems  []string
	results   []object
	pageState object // of the newest request
	failed    map[string]bool
	messages  map[string]string    // message IDs to messages
	lost      map[string]string    // IDs of messages that were answered with an error
	runs      map[string]object    // current state, without the kind of the approval
	expire    map[string]time.Time // runs that end by themselves
	changed   chan struct{}        // closed when one of the runs changes
	resolved  []object
	region    string // of the last request
	agent     string // of the last message

	attachments []object      // of the last message
	release     chan struct{} // ends an upload that is slow
	looks       int           // number of requests for runs and their events
}

func newServer(t *testing.T) *chatServer {
	s := &chatServer{failed: map[string]bool{}, messages: map[string]string{}, lost: map[string]string{},
		runs: map[string]object{}, expire: map[string]time.Time{}, changed: make(chan struct{})}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Security-Policy", policy)
		http.ServeFile(w, r, "testdata/page.html")
	})
	mux.Handle("GET /widget/", http.StripPrefix("/widget/", http.FileServer(http.Dir("site"))))
	mux.Handle("GET /widget/console/", http.StripPrefix("/widget/console/", http.FileServer(http.Dir("../site"))))
	mux.Handle("GET /page.js", http.FileServer(http.Dir("testdata")))
	mux.Handle("GET /page.css", http.FileServer(http.Dir("testdata")))
	mux.HandleFunc("POST /api/agent/chat", s.chat)
	mux.HandleFunc("POST /api/agent/files", s.upload)
	mux.HandleFunc("POST /api/agent/chat/results", s.chat)
	mux.HandleFunc("POST /api/agent/approvals/resolve", s.resolve)
	mux.HandleFunc("POST /elsewhere", s.elsewhere)
	mux.HandleFunc("GET /release", func(http.ResponseWriter, *http.Request) { s.release <- struct{}{} })
	mux.HandleFunc("GET /api/agent/runs/{id}", s.run)
	mux.HandleFunc("GET /api/agent/runs/{id}/events", s.events)
	mux.HandleFunc("GET /seen", func(w http.ResponseWriter, _ *http.Request) {
		s.Lock()
		defer s.Unlock()
		reply(w, 200, object{"results": s.results, "resolved": s.resolved, "problems": s.problems, "region": s.region,
			"agent": s.agent, "attachments": s.attachments,
			"pageState": s.pageState, "looks": s.looks})
		s.results, s.resolved, s.looks = nil, nil, 0
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	s.url, s.release = server.URL, make(chan struct{})
	return s
}

type request struct {
	Agent           string   `json:"agent"`
	Message         string   `json:"message"`
	Attachments     []object `json:"attachments"`
	MessageID       string   `json:"messageId"`
	Results         []object `json:"results"`
	History         []object `json:"history"`
	ToolDefinitions []object `json:"toolDefinitions"`
	PageState       object   `json:"pageState"`
	TimeZone        string   `json:"timeZone"`
	Locale          string   `json:"locale"`
}

func (s *chatServer) chat(w http.ResponseWriter, r *http.Request) {
	if token := r.Header.Get("Authorization"); token != "Bearer good" {
		refuse(w, 401, "unauthenticated", "no")
		return
	}
	var in request
	dec := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<20))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&in); err != nil {
		s.problem("the body: %v", err)
	}
	s.check(in)
	s.Lock()
	s.region, s.pageState = in.TimeZone+" "+in.Locale, in.PageState
	s.Unlock()
	if in.TimeZone == "Antarctica/Troll" { // unknown to this server
		reply(w, 400, object{"ok": false, "error": object{"class": "ValidationError", "code": "invalid",
			"message": "there is no such time zone", "field": "timeZone", "requestId": "r"}})
		return
	}
	script, step := in.Message, 0
	if strings.HasSuffix(r.URL.Path, "/results") {
		last := in.History[len(in.History)-1]
		script, step = last["script"].(string), int(last["step"].(float64))+1
		s.answered(last, in.Results)
		if in.Agent != "" {
			s.problem("results name the agent %q, which the history does", in.Agent)
		}
		if in.MessageID != last["messageId"] {
			s.problem("the results of the message %v come under the id %q", last["messageId"], in.MessageID)
		}
	} else {
		s.identified(in)
		s.Lock()
		s.agent, s.attachments = in.Agent, in.Attachments
		s.Unlock()
	}
	turns := scripts[script]
	if turns == nil {
		turns = []turn{{say: "You said: " + script}}
	}
	if script == "loop" {
		step = 0
	}
	s.answer(w, r, script, step, turns[step], in)
}

// identified checks that each message has its own ID, and the same ID when it is sent again.
func (s *chatServer) identified(in request) {
	use := fmt.Sprintf("%q after %d", in.Message, len(in.History))
	s.Lock()
	before, lost := s.messages[in.MessageID], s.lost[use]
	s.messages[in.MessageID] = use
	if t := scripts[in.Message]; t != nil && t[0].status != 0 {
		s.lost[use] = in.MessageID
	}
	s.Unlock()
	switch {
	case !run.ValidID(in.MessageID):
		s.problem("the message %s has the id %q", use, in.MessageID)
	case before != "" && before != use:
		s.problem("the messages %s and %s have one id", before, use)
	case lost != "" && lost != in.MessageID:
		s.problem("the message %s was sent again under another id", use)
	}
}

// answered checks that exactly the page's calls have results.
func (s *chatServer) answered(last object, results []object) {
	var want, got []string
	for _, call := range last["calls"].([]any) {
		if c := call.(object); c["category"] == "page-automation" {
			want = append(want, c["id"].(string))
		}
	}
	for _, r := range results {
		got = append(got, r["callId"].(string))
	}
	if fmt.Sprint(want) != fmt.Sprint(got) {
		s.problem("results for %v, want %v", got, want)
	}
	s.Lock()
	defer s.Unlock()
	s.results = append(s.results, results...)
}

var toolName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_.-]{0,62}$`)

func (s *chatServer) check(in request) {
	all, _ := json.Marshal(in)
	for _, secret := range []string{"hunter2", "4111111111111111", "dear diary", "secret-address"} {
		if strings.Contains(string(all), secret) {
			s.problem("%q was sent", secret)
		}
	}
	names := map[any]bool{}
	for _, d := range in.ToolDefinitions {
		if name, _ := d["name"].(string); !toolName.MatchString(name) || names[name] ||
			d["category"] != "page-automation" || len(d) != 4 {
			s.problem("the definition %v", d)
		}
		names[d["name"]] = true
	}
	if len(in.ToolDefinitions) > 128 || in.PageState["viewState"] == nil || in.PageState["interactions"] == nil ||
		in.PageState["customEvents"] == nil {
		s.problem("%d tools, page state %v", len(in.ToolDefinitions), in.PageState)
	}
}

func (s *chatServer) answer(w http.ResponseWriter, r *http.Request, script string, step int, t turn, in request) {
	s.Lock()
	again := s.failed[script]
	s.failed[script] = true
	s.Unlock()
	if t.status != 0 && !again {
		refuse(w, t.status, "overloaded", "the model has too much to do; try again in a minute")
		return
	}
	for _, call := range t.calls {
		if a, ok := call["approval"].(object); ok && script == "late" {
			a["expiresAt"] = time.Now().Add(2 * time.Second) // its script ends the run, once the page has shown this
		}
	}
	last := object{"role": "model", "parts": []object{{"text": t.say}}, "script": script, "step": step,
		"calls": t.calls, "messageId": in.MessageID}
	out := object{"type": "response", "message": t.say, "history": append(in.History, last)}
	if t.calls != nil {
		out = object{"type": "tool-calls", "calls": t.calls, "history": append(in.History, last)}
	}
	if t.plain || !strings.Contains(r.Header.Get("Accept"), "application/x-ndjson") {
		reply(w, 200, out)
		return
	}
	w.Header().Set("Content-Type", "application/x-ndjson")
	line(w, object{"type": "status", "status": "planning"})
	line(w, object{"type": "ping"})
	line(w, object{"type": "delta", "delta": t.say[:len(t.say)/2]})
	if t.hold && !again {
		<-r.Context().Done()
		return
	}
	if t.broken {
		return
	}
	line(w, out)
}

func (s *chatServer) problem(format string, args ...any) {
	s.Lock()
	defer s.Unlock()
	s.problems = append(s.problems, fmt.Sprintf(format, args...))
}

func refuse(w http.ResponseWriter, status int, code, message string) {
	reply(w, status, object{"ok": false,
		"error": object{"class": "ModelError", "code": code, "message": message, "requestId": "r"}})
}

func reply(w http.ResponseWriter, status int, body object) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	line(w, body)
}

// line writes one line of JSON, and ignores a disconnected client.
func line(w http.ResponseWriter, body object) {
	if json.NewEncoder(w).Encode(body) == nil {
		w.(http.Flusher).Flush()
	}
}
