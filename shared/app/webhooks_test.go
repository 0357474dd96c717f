package app_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/store/document"
	"github.com/countersign-run/countersign/shared/testkit"
	"github.com/countersign-run/countersign/shared/testkit/await"
)

// receiver is an endpoint that accepts notifications signed with its key.
type receiver struct {
	t   *testing.T
	key []byte
	url string

	mu     sync.Mutex
	down   bool
	events []received
}

type received struct {
	ID, Type, Subject string
	Data              struct{ UID, Agent, Tool, ApprovalID, Decision, Status, Link string }
}

func newReceiver(t *testing.T) *receiver {
	r := &receiver{t: t, key: []byte("a key of 32 bytes for the tests!")}
	srv := httptest.NewServer(r)
	t.Cleanup(srv.Close)
	r.url = srv.URL + "/CANARY-path"
	return r
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	body, err := io.ReadAll(req.Body)
	mac := hmac.New(sha256.New, r.key)
	mac.Write([]byte(req.Header.Get("Webhook-Id") + "." + req.Header.Get("Webhook-Timestamp") + "." + string(body)))
	var e received
	switch {
	case r.down:
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	case err != nil || json.Unmarshal(body, &e) != nil || e.ID != req.Header.Get("Webhook-Id") ||
		req.Header.Get("Webhook-Signature") != "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)):
		r.t.Errorf("it got %v %s", req.Header, body)
	case strings.Contains(string(body), "CANARY") || strings.Contains(string(body), "bob@example.com"):
		r.t.Errorf("it got too much: %s", body)
	}
	r.events = append(r.events, e)
}

// took returns the types of the events that it has accepted.
func (r *receiver) took() (types []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range r.events {
		types = append(types, strings.TrimPrefix(e.Type, "run.countersign."))
	}
	return types
}

// isTold waits until it has received exactly these.
func (r *receiver) isTold(want ...string) {
	r.t.Helper()
	await.That(r.t, "it is told "+strings.Join(want, ", "), func() bool { return len(r.took()) >= len(want) })
	if got := r.took(); !slices.Equal(got, want) {
		r.t.Errorf("told %v, want %v", got, want)
	}
}

func (r *receiver) set(down bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.down = down
}

// settings returns the settings that send it events.
func (r *receiver) settings(t *testing.T, types string) []string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "webhooks.json")
	text := `{"webhooks":[{"name":"crm","url":"` + r.url + `"` + types + `}]}`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return []string{"WEBHOOKS=" + file,
		`WEBHOOK_KEYS={"crm":["whsec_` + base64.StdEncoding.EncodeToString(r.key) + `"]}`}
}

// TestWebhook checks the events about a waiting e-mail, its approval and its end, without content. Events that failed
// while the endpoint was down arrive later.
func TestWebhook(t *testing.T) {
	r := newReceiver(t)
	w := deployWith(t, testkit.Options{Settings: r.settings(t, "")})
	w.mail()
	asked := w.ask()
	r.isTold("approval.requested")
	first := r.events[0]
	if first.Subject != asked.RunID || first.Data.UID != "ana" || first.Data.Tool != "gmail_send" ||
		first.Data.ApprovalID != asked.Approvals[0].ApprovalID || first.Data.Link != w.Base+"/#/t/"+asked.ThreadID {
		t.Errorf("told %+v", first)
	}
	r.set(true)
	if got := w.approve(asked); got.Status != "completed" {
		t.Fatalf("a webhook that is down keeps a mail from being sent: %s", got.Body)
	}
	r.isTold("approval.requested")
	if strings.Contains(w.Logs.String(), "CANARY-path") {
		t.Error("the log says where the webhook is")
	}
	r.set(false)
	advance := func() { // as the sweep does later
		if _, err := w.App.API.Loop.Advance(t.Context(), asked.RunID, nil); err != nil {
			t.Fatal(err)
		}
	}
	await.That(t, "all is told", func() bool { // a try in progress may have failed before the first of these
		advance()
		return len(r.took()) >= 3
	})
	r.isTold("approval.requested", "approval.decided", "run.ended")
	await.That(t, "it is on record that all was told", func() bool {
		advance()
		docs, err := w.App.Store.Get(t.Context(), document.RunPath(asked.RunID))
		var got run.Run
		return err == nil && document.Decode(docs[0], &got) == nil && got.Delivered > 0
	})
}

// TestWebhookTypes checks that it gets only the types that it wants.
func TestWebhookTypes(t *testing.T) {
	r := newReceiver(t)
	w := deployWith(t, testkit.Options{Settings: r.settings(t, `,"types":["run.countersign.run.ended"]`)})
	w.mail()
	w.approve(w.ask())
	r.isTold("run.ended")
}

// TestNotify checks that each push of the topic is sent once to its webhook, and that an unknown webhook is refused.
func TestNotify(t *testing.T) {
	r := newReceiver(t)
	w := deployWith(t, testkit.Options{Settings: r.settings(t, "")})
	const event = `{"specversion":"1.0","id":"run1.8","type":"run.countersign.run.ended","subject":"run1","data":{}}`
	push := `{"message":{"data":"` + base64.StdEncoding.EncodeToString([]byte(event)) + `","messageId":"1"},` +
		`"subscription":"projects/p/subscriptions/webhook-crm","deliveryAttempt":1}`
	token, err := w.PushToken(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	users, err := w.SignIn(t.Context(), "ana")
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		token, webhook, body string
		down                 bool
		want                 int
		sent                 int
	}{
		"taken":           {token, "crm", push, false, http.StatusNoContent, 1},
		"not taken":       {token, "crm", push, true, http.StatusBadGateway, 0},
		"another webhook": {token, "pager", push, false, http.StatusNotFound, 0},
		"no event":        {token, "crm", strings.Replace(push, `"data":"`, `"data":"AAAA`, 1), false, http.StatusNoContent, 0},
		"a user's token":  {users, "crm", push, false, http.StatusUnauthorized, 0},
		"no token at all": {"", "crm", push, false, http.StatusUnauthorized, 0},
	} {
		r.set(c.down)
		before := len(r.took())
		a, err := testkit.Connect(nil, w.Base, c.token)(t.Context(), "POST", "/api/agent/notify/"+c.webhook, c.body)
		if err != nil || a.HTTP != c.want || len(r.took())-before != c.sent {
			t.Errorf("%s: %v, %d %s, sent %d", name, err, a.HTTP, a.Body, len(r.took())-before)
		}
	}
}

// TestWebhookFileInvalid checks that an invalid file stops the start with a precise error.
func TestWebhookFileInvalid(t *testing.T) {
	r := newReceiver(t)
	_, err := testkit.New(t.Context(), testkit.Options{Dir: t.TempDir(),
		Settings: r.settings(t, `,"types":["run.countersign.run.begun"]`)})
	if err == nil || !strings.Contains(err.Error(), "WEBHOOKS") || !strings.Contains(err.Error(), "types") ||
		strings.Contains(err.Error(), "CANARY") || strings.Contains(err.Error(), "\n") {
		t.Errorf("the start ends with %v", err)
	}
}
