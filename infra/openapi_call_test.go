package infra_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/countersign-run/countersign/shared/testkit"
)

// ask is a request to an operation. By default it has the token that the operation needs.
type ask struct {
	op     string
	params []string // of the path, in order
	query  string
	body   string
	header []string // names and values
	uid    string   // empty: ada
	bare   bool     // without a token
}

// answer is an HTTP answer.
type answer struct {
	status int
	header http.Header
	body   string
}

// into decodes the answer.
func (a answer) into(t *testing.T, v any) {
	t.Helper()
	if err := json.Unmarshal([]byte(a.body), v); err != nil {
		t.Fatalf("%s: %v", a.body, err)
	}
}

// last returns the last line of a stream.
func (a answer) last() answer {
	lines := strings.Split(strings.TrimSpace(a.body), "\n")
	return answer{a.status, a.header, lines[len(lines)-1]}
}

// want sends the request, checks the request and the response against the description, and fails if the status differs.
func (s *stand) want(t *testing.T, status int, q ask) answer {
	t.Helper()
	a := s.call(t, q)
	if a.status != status {
		t.Fatalf("%s %v %s %s answered %d %s, want %d", q.op, q.params, q.query, cut(q.body), a.status, a.body, status)
	}
	return a
}

func (s *stand) call(t *testing.T, q ask) answer {
	t.Helper()
	op, ok := s.ops[q.op]
	if !ok {
		t.Fatalf("no operation %s", q.op)
	}
	a := s.sent(t, op.method, op, q)
	if a.status < 400 {
		s.taken(t, op, q)
	}
	s.holds(t, op, a)
	return a
}

// sent sends a request. A redirect counts as a response.
func (s *stand) sent(t *testing.T, method string, op operation, q ask) answer {
	t.Helper()
	path := op.at(q.params...)
	if q.query != "" {
		path += "?" + q.query
	}
	a, err := testkit.Connect(direct, s.Base, s.token(t, op, q))(t.Context(), method, path, q.body, q.header...)
	if err != nil {
		t.Fatal(err)
	}
	return answer{a.HTTP, a.Header, string(a.Body)}
}

func (s *stand) token(t *testing.T, op operation, q ask) string {
	t.Helper()
	switch {
	case q.bare || !op.user() && !op.push() && !op.agent():
		return ""
	case op.agent():
		return s.agent
	}
	uid := q.uid
	if uid == "" {
		uid = "ada"
	}
	if !op.push() {
		return s.signIn(t, uid)
	}
	token, err := s.PushToken(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return token
}

// signIn returns a token of the user. The user's account is linked, unless the test is about linking.
func (s *stand) signIn(t *testing.T, uid string) string {
	t.Helper()
	token, err := s.SignIn(t.Context(), uid)
	if err != nil {
		t.Fatal(err)
	}
	return token
}

var direct = &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}

// taken checks that an accepted body matches the schema.
func (s *stand) taken(t *testing.T, op operation, q ask) {
	t.Helper()
	if op.RequestBody == nil || op.form() || op.push() && q.body == "{}" || // an unreadable push message is dropped
		q.body == "" && !op.RequestBody.Value.Required {
		return
	}
	if err := matches(t, op.RequestBody.Value.Content.Get("application/json").Schema.Value, q.body); err != nil {
		t.Errorf("%s accepted %s, which does not match the schema: %v", q.op, cut(q.body), err)
	}
}

// holds checks a response against the description: its status, headers, media type, and its body or each of its lines.
func (d *described) holds(t *testing.T, op operation, a answer) {
	t.Helper()
	ref := op.Responses.Status(a.status)
	if ref == nil {
		t.Fatalf("%s: the status %d is not described: %s", op.OperationID, a.status, a.body)
	}
	d.seen[op.OperationID][a.status] = true
	headers(t, op.OperationID, ref.Value, a)
	kind, _, _ := strings.Cut(a.header.Get("Content-Type"), ";")
	media := ref.Value.Content.Get(kind)
	switch {
	case len(ref.Value.Content) == 0 && (a.body == "" || a.status == http.StatusSeeOther): // a redirect may have a body
		return
	case media == nil:
		t.Fatalf("%s: %d with %q is not described", op.OperationID, a.status, kind)
	}
	if kind == "application/octet-stream" || kind == "text/plain" {
		return
	}
	schema, lines, of := media.Schema.Value, []string{a.body}, ""
	if kind == "application/x-ndjson" {
		of = strings.TrimPrefix(media.Extensions["x-itemSchema"].(map[string]any)["$ref"].(string),
			"#/components/schemas/")
		schema, lines = d.doc.Components.Schemas[of].Value, strings.Split(strings.TrimSpace(a.body), "\n")
	}
	if kind == "text/event-stream" {
		of = strings.TrimPrefix(media.Extensions["x-itemSchema"].(map[string]any)["$ref"].(string),
			"#/components/schemas/")
		schema, lines = d.doc.Components.Schemas[of].Value, sentEvents(a.body)
	}
	for _, one := range lines {
		d.line(t, of, answer{body: one})
		if err := matches(t, schema, one); err != nil {
			t.Errorf("%s answered %s: %v", op.OperationID, one, err)
		}
		if matches(t, schema, strings.Replace(one, "{", `{"unheardOf":1,`, 1)) == nil && !op.agent() {
			t.Errorf("%s: the schema permits undescribed fields", op.OperationID)
		}
	}
}

// sentEvents returns the JSON objects of a stream of server-sent events.
func sentEvents(body string) (data []string) {
	for line := range strings.Lines(body) {
		if one, ok := strings.CutPrefix(strings.TrimSpace(line), "data: {"); ok {
			data = append(data, "{"+one)
		}
	}
	return data
}

// line records the kind of a stream's line.
func (d *described) line(t *testing.T, of string, a answer) {
	t.Helper()
	if of == "" {
		return
	}
	var l struct{ Type string }
	a.into(t, &l)
	d.lines[of+" "+l.Type] = true
}

// ofOurs lists headers that must be described if they occur.
var ofOurs = []string{"X-Request-Id", "Retry-After", "WWW-Authenticate", "Location", "Set-Cookie", "Idempotency-Key",
	"Preference-Applied"}

func headers(t *testing.T, op string, r *openapi3.Response, a answer) {
	t.Helper()
	for name, h := range r.Headers {
		value := a.header.Get(name)
		if value == "" && h.Value.Required {
			t.Errorf("%s: %d without the header %s", op, a.status, name)
		}
		if value == "" {
			continue
		}
		body := inJSON(t, value)
		if h.Value.Schema.Value.Type.Is("integer") {
			body = value
		}
		if err := matches(t, h.Value.Schema.Value, body); err != nil {
			t.Errorf("%s: %d with the header %s: %v", op, a.status, name, err)
		}
	}
	for _, name := range ofOurs {
		if _, described := r.Headers[name]; !described && a.header.Get(name) != "" {
			t.Errorf("%s: %d with the undescribed header %s", op, a.status, name)
		}
	}
}

func matches(t *testing.T, s *openapi3.Schema, text string) error {
	t.Helper()
	var v any
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatalf("%s: %v", cut(text), err)
	}
	return s.VisitJSON(v, openapi3.EnableJSONSchema2020())
}

// inJSON returns v in JSON.
func inJSON(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func cut(s string) string { return s[:min(len(s), 200)] }
