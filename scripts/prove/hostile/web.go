package hostile

import (
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"

	"github.com/countersign-run/countersign/shared/loop"
	"github.com/countersign-run/countersign/shared/testkit"
)

// route is where a target of the form http:name is reached.
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
}

// other names of the same routes
func init() {
	for name, as := range map[string]string{"approvals": "pending", "pending_list": "pending", "approve": "resolve",
		"run_get": "runs", "getRun": "runs",
		"runs/cancel": "cancel", "runs/events": "events", "threads/messages": "messages", "threads/delete": "thread",
		"run/stream": "stream"} {
		routes[name] = routes[as]
	}
}

// gotOf returns what an answer says.
func gotOf(a testkit.Answer) got {
	g := got{status: a.HTTP, class: a.Error.Class, code: a.Error.Code, field: a.Error.Field, message: a.Error.Message,
		detail: fmt.Sprintf("%d %.200s", a.HTTP, a.Body)}
	if g.class == "" {
		g.class, g.code, g.field, g.message = errorOf(a)
	}
	return g
}

// errorOf returns a run's error, or that of the first of its actions that has one.
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

// web runs a case of the form http:name that no other target takes.
func web(s *env) (got, error) {
	var change func(*loop.Loop)
	if s.c.Target == "http:answers" {
		change = clientTool
	}
	if err := s.open(change); err != nil {
		return got{}, err
	}
	for _, uid := range []string{"userA", "userB"} { // there is always something of other users to be found
		if s.c.Category != "tenancy" {
			break
		}
		if _, err := s.open1("", uid); err != nil {
			return got{}, err
		}
	}
	if _, ok := s.peek("sequence"); ok {
		return s.sequence()
	}
	if err := s.crowded(); err != nil {
		return got{}, err
	}
	m, err := s.compose(routes[strings.TrimPrefix(s.c.Target, "http:")])
	if err != nil {
		return got{}, err
	}
	s.w.SetModel(testkit.Says("Hello."))
	if _, ok := s.peek("concurrent"); ok {
		return s.together(m)
	}
	before, err := s.count()
	if err != nil {
		return got{}, err
	}
	a, err := s.send(m)
	if err != nil {
		return got{}, err
	}
	after, err := s.count()
	if a.HTTP >= 400 && after != before {
		err = errors.Join(err, fmt.Errorf("the answer is %d, and %d runs were made", a.HTTP, after-before))
	}
	g := gotOf(a)
	return g, errors.Join(err, s.preflight(m, a), s.sameAsMissing(a), s.noEcho(m, a))
}

var crowdSetup = regexp.MustCompile(`^(open|asked)\[(\d+)\]$`)

// crowded takes the setup of a request: how many approvals wait, or were requested today and are decided.
func (s *env) crowded() error {
	setup, err := s.takeText("setup")
	if err != nil || setup == "" {
		return err
	}
	if setup == "answered" {
		return s.answered()
	}
	m := crowdSetup.FindStringSubmatch(setup)
	if m == nil {
		return unknown("the setup %q", setup)
	}
	n, _ := strconv.Atoi(m[2]) // digits
	for i := range n {
		run, err := s.opened(s.as, "gmail_send", testkit.Mail("ana@example.com", fmt.Sprint(i), "b"))
		if err == nil && m[1] == "asked" {
			err = s.decided(s.as, run, "reject")
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// noEcho checks that an invalid request id is not adopted, and that the Host of a request leads nowhere: no header and
// no word of the answer has it.
func (s *env) noEcho(m message, a testkit.Answer) error {
	if id := m.header.Get("X-Request-Id"); strings.ContainsAny(id, `" `) && a.Header.Get("X-Request-Id") == id {
		return errors.New("the answer has the request id that was sent, which is none")
	}
	if m.host == "" {
		return nil
	}
	for name, values := range a.Header {
		if strings.Contains(strings.Join(values, " "), m.host) {
			return fmt.Errorf("the answer's %s names the Host", name)
		}
	}
	if strings.Contains(string(a.Body), m.host) {
		return errors.New("the answer names the Host")
	}
	return nil
}

// preflight checks the CORS headers against the origin.
func (s *env) preflight(m message, a testkit.Answer) error {
	origin, echo := m.header.Get("Origin"), a.Header.Get("Access-Control-Allow-Origin")
	switch {
	case origin == "":
		return nil
	case a.HTTP >= 400 && echo != "":
		return fmt.Errorf("a refused origin is answered Access-Control-Allow-Origin: %s", echo)
	case a.HTTP < 400 && (echo != origin || !strings.Contains(a.Header.Get("Vary"), "Origin")):
		return fmt.Errorf("the origin is answered %q, Vary %q", echo, a.Header.Get("Vary"))
	}
	return nil
}

// sameAsMissing compares the answer about another user's resource with the one about none, byte by byte except for the
// request's id.
func (s *env) sameAsMissing(a testkit.Answer) error {
	if a.HTTP != http.StatusNotFound || a.Error.Class != "AuthError" {
		return nil
	}
	none, err := s.call(s.as, "GET", "/api/agent/runs/nosuchrunnosuchrun0000000", "")
	if err != nil {
		return err
	}
	blank := func(a testkit.Answer) string { return strings.ReplaceAll(string(a.Body), a.Error.RequestID, "") }
	if blank(a) != blank(none) {
		return fmt.Errorf("what is another's is told apart from what is not there: %s, %s", a.Body, none.Body)
	}
	return nil
}

// together sends a request many times at once. With one Idempotency-Key there is one run, whatever the answers.
func (s *env) together(m message) (got, error) {
	answers, err := s.atOnce(m)
	g := got{status: 200, class: "none"}
	for _, a := range answers {
		if a.HTTP != 200 && a.HTTP != 409 {
			g = gotOf(a)
		}
	}
	runs, counting := s.count()
	if err := errors.Join(err, counting); err != nil {
		return g, err
	}
	if m.header.Get("Idempotency-Key") != "" && runs != 1 {
		return g, fmt.Errorf("one key made %d runs", runs)
	}
	return g, nil
}

// sequence sends several requests one after the other; the last one counts.
func (s *env) sequence() (got, error) {
	v, _, err := s.take("sequence")
	list, ok := v.([]any)
	if err != nil || !ok || len(list) == 0 {
		return got{}, errors.Join(err, unknown("sequence: %v", v))
	}
	s.w.SetModel(testkit.Says("Hello."))
	to := routes[strings.TrimPrefix(s.c.Target, "http:")]
	var a testkit.Answer
	for _, one := range list {
		body, ok := one.(map[string]any)
		if !ok {
			return got{}, unknown("a step that is %T", one)
		}
		var header []string
		if key, ok := body["idempotencyKey"]; ok {
			header = []string{"Idempotency-Key", textOf(key)}
			delete(body, "idempotencyKey")
		}
		if a, err = s.call(s.as, to.method, to.path, jsonOf(body), header...); err != nil {
			return got{}, err
		}
	}
	return gotOf(a), nil
}
