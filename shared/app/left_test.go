package app_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/countersign-run/countersign/shared/api"
	"github.com/countersign-run/countersign/shared/testkit/faulty"
)

// TestClientGoneLogged checks that a request whose client left is logged at INFO, with a status that no alert counts.
func TestClientGoneLogged(t *testing.T) {
	w := deploy(t)
	w.mail()
	r := w.ask()
	if a, err := w.Resolve(t.Context(), "ana", r.Approvals[0], "approve_once"); err != nil || a.HTTP != http.StatusOK {
		t.Fatal(err, a.HTTP)
	}
	token, err := w.SignIn(t.Context(), "ana")
	if err != nil {
		t.Fatal(err)
	}
	watched, watches := w.App.API.Loop.Store, func(c *faulty.Call) bool { return c.Method == faulty.Watch }
	path := "/api/agent/runs/" + r.RunID
	decided := fmt.Sprintf(`{"approvalId":%q,"argsHash":%q,"decision":"approve_once"}`, r.Approvals[0].ApprovalID,
		r.Approvals[0].ArgsHash)
	for name, c := range map[string]struct {
		method, path, body string
		waits              bool // leaves while the server waits for the run, else before the server reads anything
		want               int
	}{
		"a run's events":          {"GET", path + "/events", "", false, 499},
		"a run":                   {"GET", path, "", false, 499},
		"a page's stream":         {"GET", "/api/agent/ui/" + r.ThreadID + "/stream", "", false, 499},
		"threads":                 {"GET", "/api/agent/threads", "", false, 499},
		"hosts":                   {"GET", "/api/agent/hosts", "", false, 499},
		"the audit":               {"GET", "/api/agent/audit", "", false, 499},
		"pending approvals":       {"GET", "/api/agent/approvals/pending", "", false, 499},
		"a linked account":        {"DELETE", "/api/agent/connections/google", "", false, 499},
		"a run's events, watched": {"GET", path + "/events", "", true, http.StatusOK},
		"a run, waited for":       {"POST", "/api/agent/approvals/resolve", decided, true, http.StatusOK},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, leave := context.WithCancel(t.Context())
			defer leave()
			w.App.API.Loop.Store = watched
			if c.waits {
				w.App.API.Loop.Store = faulty.Wrap(watched, faulty.Of(watches, faulty.After(func(*faulty.Call) {
					leave()
				})))
			} else {
				leave()
			}
			req := httptest.NewRequestWithContext(ctx, c.method, c.path, strings.NewReader(c.body))
			req.Header.Set("Authorization", "Bearer "+token)
			req.Header.Set("Content-Type", "application/json")
			req.Header.Set("Prefer", "wait=50")
			got, before := httptest.NewRecorder(), len(w.Logs.String())
			w.App.Handler(api.Functions...).ServeHTTP(got, req)
			lines := w.Logs.String()[before:]
			if got.Code != c.want || !strings.Contains(lines, `"severity":"INFO"`) ||
				strings.Contains(lines, `"severity":"ERROR"`) || strings.Contains(lines, `"severity":"WARNING"`) {
				t.Errorf("%d %s, and the log is\n%s", got.Code, got.Body, lines)
			}
		})
	}
}
