package infra_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/countersign-run/countersign/shared/testkit"
	"github.com/countersign-run/countersign/shared/testkit/faulty"
)

// plain returns a valid request to the operation, about a resource that does not exist.
func (o operation) plain(t *testing.T) ask {
	q := ask{op: o.OperationID, body: o.example(t)}
	if o.form() {
		q.header = formHeader
	}
	for range strings.Count(o.path, "{") {
		q.params = append(q.params, nobody)
	}
	if o.OperationID == "callAction" {
		q.params, q.body = []string{"cart.add"}, `{"id":"mug"}`
	}
	return q
}

// each sends a changed request to every operation that has the status.
func (s *stand) each(t *testing.T, status int, change func(*ask), except ...string) {
	t.Helper()
	for id, op := range s.ops {
		if op.Responses.Status(status) == nil || strings.Contains(" "+strings.Join(except, " ")+" ", " "+id+" ") {
			continue
		}
		q := op.plain(t)
		change(&q)
		s.want(t, status, q)
	}
}

// refusedByAll provokes the errors that all operations share.
func refusedByAll(t *testing.T, d *described) {
	s := d.open(t, nil)
	const ofSite = "configuration"
	s.each(t, 401, func(q *ask) { q.bare = true }, ofSite, "googleCallback", "githubCallback")
	s.each(t, 403, func(q *ask) { q.header = []string{"Origin", "https://evil.example"} })
	s.each(t, 431, func(q *ask) { q.header = []string{"X-Filler", strings.Repeat("x", 64<<10)} })
	s.store.While(faulty.Down,
		func() {
			s.each(t, 503, func(*ask) {}, ofSite, "googleCallback", "githubCallback", "attachTerminal",
				"receiptKeys", "tell")
		})
	s.store.While(faulty.Fail(errors.New("broken")),
		func() {
			s.each(t, 500, func(*ask) {}, ofSite, "googleCallback", "githubCallback", "health", "sweep",
				"attachTerminal", "receiptKeys", "tell")
		})
	for id, op := range d.ops {
		if id != ofSite && id != "description" && id != "health" { // they accept every method
			s.takesNothingElse(t, op)
		}
	}
	silent := d.open(t, func(c *testkit.Cloud) {
		c.Handle("/issuer/.well-known/",
			http.HandlerFunc(func(w http.ResponseWriter,
				_ *http.Request) {
				w.WriteHeader(http.StatusServiceUnavailable)
			}))
	}, oauth...) // no user can sign in there, so no account can be linked
	silent.each(t, 502, func(*ask) {}, "googleCallback", "githubCallback")
}

// takesNothingElse sends another method.
func (s *stand) takesNothingElse(t *testing.T, op operation) {
	t.Helper()
	a := s.sent(t, http.MethodPut, op, op.plain(t))
	if a.status != http.StatusMethodNotAllowed || !strings.Contains(a.header.Get("Allow"), op.method) {
		t.Errorf("PUT %s answered %d %s, Allow %q", op.path, a.status, a.body, a.header.Get("Allow"))
	}
	if err := matches(t, s.doc.Components.Schemas["Failure"].Value, a.body); err != nil {
		t.Errorf("PUT %s answered %s: %v", op.path, a.body, err)
	}
}

// refusedBodies sends an invalid body to every operation with a body.
func refusedBodies(t *testing.T, d *described) {
	s := d.open(t, nil)
	s.each(t, 415, func(q *ask) { q.header = []string{"Content-Type", "text/plain"} })
	s.each(t, 413, func(q *ask) { q.body = strings.Repeat(" ", 3<<20) + q.body })
	for id, op := range s.ops {
		if op.takesBody() && !op.form() && id != "chatUI" && id != "runAGUI" { // they ignore unknown fields
			q := op.plain(t)
			q.body = strings.Replace(q.body, "{", `{"unheardOf":1,`, 1)
			s.want(t, 400, q)
			// Each action (callAction) and each method of MCP has a separate schema.
			if err := matches(t, op.RequestBody.Value.Content.Get("application/json").Schema.Value,
				q.body); err == nil && id != "callAction" && id != "mcp" {
				t.Errorf("%s: the schema permits any field", id)
			}
		}
	}
}
