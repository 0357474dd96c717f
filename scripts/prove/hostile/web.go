package hostile

import (
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"

	"github.com/countersign-run/countersign/shared/engine/unit"
	"github.com/countersign-run/countersign/shared/testkit"
)

// route is the route of a target of the form http:name.
type route struct{ method, path string }

var routes = map[string]route{
	"any": {"POST", "/api/agent/run"}, "run": {"POST", "/api/agent/run"}, "stream": {"POST", "/api/agent/run/stream"},
	"pending": {"GET", "/api/agent/approvals/pending"}, "resolve": {"POST", "/api/agent/approvals/resolve"},
	"threads": {"GET", "/api/agent/threads"}, "audit": {"GET", "/api/agent/audit"},
	"allowlist":   {"GET", "/api/agent/allowlist"},
	"connections": {"GET", "/api/agent/connections"}, "sweep": {"POST", "/api/agent/sweep"},
	"resume": {"POST", "/api/agent/resume"},
	"chat":   {"POST", "/api/agent/chat"}, "health": {"GET", "/health"}, "runs": {"GET", "/api/agent/runs/{runId}"},
	"events": {"GET", "/api/agent/runs/{runId}/events"}, "cancel": {"POST", "/api/agent/runs/{runId}/cancel"},
	"answers":  {"POST", "/api/agent/runs/{runId}/answers"},
	"messages": {"GET", "/api/agent/threads/{threadId}/messages"},
	"thread":   {"DELETE", "/api/agent/threads/{threadId}"},
	"allowed":  {"DELETE", "/api/agent/allowlist/{entryId}"}, "consent": {"POST", "/api/agent/connections/google"},
	"callback": {"GET", "/api/agent/connections/google/callback"},
	"plan":     {"POST", "/api/agent/plans"},
}

// init adds other names of the same routes.
func init() {
	for name, as := range map[string]string{"approvals": "pending", "pending_list": "pending", "approve": "resolve",
		"run_get": "runs", "getRun": "runs",
		"runs/cancel": "cancel", "runs/events": "events", "threads/messages": "messages", "threads/delete": "thread",
		"run/stream": "stream"} {
		routes[name] = routes[as]
	}
}

// gotOf returns the result in a response.
func gotOf(a testkit.Answer) got {
	g := got{status: a.HTTP, class: a.Error.Class, code: a.Error.Code, field: a.Error.Field, message: a.Error.Message,
		detail: fmt.Sprintf("%d %.200s", a.HTTP, a.Body)}
	if g.class == "" {
		g.class, g.code, g.field, g.message = errorOf(a)
	}
	return g
}

// errorOf returns a run's error, or that of the first action with one.
func errorOf(a testkit.Answer) (class, code, field, message string) {
	if a.ErrorCode != "" {
		return a.ErrorCode, a.ErrorReason, "", a.Message
	}
	for _, act := range a.Actions {
		if act.ErrorCode != "" {
			return act.ErrorCode, act.ErrorReason, act.Field, act.Message
		}
	}
	return "none", "", "", ""
}

// classOf returns the class of that error, or "none".
func classOf(a testkit.Answer) string {
	class, _, _, _ := errorOf(a)
	return class
}

// web runs a case of the form http:name that no other target handles.
func web(s *env) got {
	var change func(*unit.Env)
	if s.c.Target == "http:answers" {
		change = clientTool
	}
	s.open(change)
	if s.c.Category == "tenancy" { // other users' data always exists
		s.open1("", "userA")
		s.open1("", "userB")
	}
	if s.has("sequence") {
		return s.sequence()
	}
	s.crowded()
	m := s.compose(routes[strings.TrimPrefix(s.c.Target, "http:")])
	s.w.SetModel(testkit.Says("Hello."))
	if s.has("concurrent") {
		return s.byOneKey(m)
	}
	before := s.count()
	a := s.send(m)
	if after := s.count(); a.HTTP >= 400 && after != before {
		s.wrong("the answer is %d, and %d runs were made", a.HTTP, after-before)
	}
	s.preflight(m, a)
	s.sameAsMissing(a)
	s.noEcho(m, a)
	return gotOf(a)
}

var crowdSetup = regexp.MustCompile(`^(open|asked)\[(\d+)\]$`)

// crowded takes the setup of a request: the number of approvals that are pending, or that were requested today and are
// decided.
func (s *env) crowded() {
	setup := s.takeText("setup")
	m := crowdSetup.FindStringSubmatch(setup)
	switch {
	case setup == "":
		return
	case setup == "answered":
		s.answered()
		return
	case m == nil:
		s.unknown("the setup %q", setup)
	}
	n, _ := strconv.Atoi(m[2]) // the expression matches digits
	for i := range n {
		r := s.opened(s.as, "gmail_send", testkit.Mail("ana@example.com", fmt.Sprint(i), "b"))
		if m[1] == "asked" {
			s.decided(s.as, r, "reject")
		}
	}
}

// noEcho checks that an invalid request ID is not adopted, and that the Host of a request has no influence: no header
// and no text of the response contains it.
func (s *env) noEcho(m message, a testkit.Answer) {
	if id := m.header.Get("X-Request-Id"); strings.ContainsAny(id, `" `) && a.Header.Get("X-Request-Id") == id {
		s.wrong("the answer has the request id that was sent, which is none")
	}
	if m.host == "" {
		return
	}
	for name, values := range a.Header {
		if strings.Contains(strings.Join(values, " "), m.host) {
			s.wrong("the answer's %s names the Host", name)
		}
	}
	if strings.Contains(string(a.Body), m.host) {
		s.wrong("the answer names the Host")
	}
}

// preflight checks the CORS headers against the origin.
func (s *env) preflight(m message, a testkit.Answer) {
	origin, echo := m.header.Get("Origin"), a.Header.Get("Access-Control-Allow-Origin")
	switch {
	case origin == "":
	case a.HTTP >= 400 && echo != "":
		s.wrong("a refused origin is answered Access-Control-Allow-Origin: %s", echo)
	case a.HTTP < 400 && (echo != origin || !strings.Contains(a.Header.Get("Vary"), "Origin")):
		s.wrong("the origin is answered %q, Vary %q", echo, a.Header.Get("Vary"))
	}
}

// sameAsMissing compares the response about another user's resource with the response about a missing one, byte by byte
// except for the request ID.
func (s *env) sameAsMissing(a testkit.Answer) {
	if a.HTTP != http.StatusNotFound || a.Error.Class != "AuthError" {
		return
	}
	none := s.call(s.as, "GET", "/api/agent/runs/nosuchrunnosuchrun0000000", "")
	blank := func(a testkit.Answer) string { return strings.ReplaceAll(string(a.Body), a.Error.RequestID, "") }
	if blank(a) != blank(none) {
		s.wrong("the answers about another user's object and a missing one differ: %s, %s", a.Body, none.Body)
	}
}

// byOneKey sends a request many times at once. With one Idempotency-Key there must be one run, whatever the responses.
func (s *env) byOneKey(m message) got {
	g := got{status: 200, class: "none"}
	for _, a := range s.atOnce(m) {
		if a.HTTP != 200 && a.HTTP != 409 {
			g = gotOf(a)
		}
	}
	if runs := s.count(); m.header.Get("Idempotency-Key") != "" && runs != 1 {
		s.wrong("one key made %d runs", runs)
	}
	return g
}

// sequence sends several requests, one after the other. The last one counts.
func (s *env) sequence() got {
	v, _ := s.take("sequence")
	list, _ := v.([]any)
	if len(list) == 0 {
		s.unknown("sequence: %v", v)
	}
	s.w.SetModel(testkit.Says("Hello."))
	to := routes[strings.TrimPrefix(s.c.Target, "http:")]
	var a testkit.Answer
	for _, one := range list {
		body, ok := one.(map[string]any)
		if !ok {
			s.unknown("a step that is %T", one)
		}
		var header []string
		if key, ok := body["idempotencyKey"]; ok {
			header = []string{"Idempotency-Key", textOf(key)}
			delete(body, "idempotencyKey")
		}
		a = s.call(s.as, to.method, to.path, jsonOf(body), header...)
	}
	return gotOf(a)
}
