package app_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/countersign-run/countersign/scripts/dev/issuer"
	"github.com/countersign-run/countersign/scripts/dev/localgoogle"
	"github.com/countersign-run/countersign/shared/api"
	"github.com/countersign-run/countersign/shared/app"
	"github.com/countersign-run/countersign/shared/config"
	"github.com/countersign-run/countersign/shared/model/fakegemini"
	"github.com/countersign-run/countersign/shared/obs"
	queueembedded "github.com/countersign-run/countersign/shared/queue/embedded"
)

const (
	account  = "ana@example.com"
	pushMail = "push@test-project.iam.gserviceaccount.com"
)

var key = sync.OnceValues(issuer.NewKey)

// world is all of Countersign as it is deployed, with Google's services played by servers that speak their protocols.
type world struct {
	t      *testing.T
	url    string
	app    *app.App
	google *localgoogle.Server
	issuer *issuer.Issuer
	logs   *syncBuffer

	mu     sync.Mutex
	brain  fakegemini.Brain
	fault  func(op string) localgoogle.Fault
	scopes []string
}

type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

var allScopes = []string{"https://www.googleapis.com/auth/gmail.compose", "https://www.googleapis.com/auth/gmail.send", "https://www.googleapis.com/auth/calendar.events"}

// newWorld starts it with further settings.
func newWorld(t *testing.T, settings ...string) *world {
	w := &world{t: t, logs: &syncBuffer{}, scopes: allScopes}
	mux := http.NewServeMux()
	srv := httptest.NewServer(mux)
	t.Cleanup(srv.Close)
	w.url = srv.URL
	k, err := key()
	if err != nil {
		t.Fatal(err)
	}
	if w.issuer, err = issuer.New(srv.URL+"/issuer", k, time.Now); err != nil {
		t.Fatal(err)
	}
	w.google, err = localgoogle.New(localgoogle.Options{
		User: func(string) (string, []string, bool) { return account, w.scopes, true },
		Fault: func(op string) localgoogle.Fault {
			w.mu.Lock()
			defer w.mu.Unlock()
			if w.fault == nil {
				return localgoogle.Fault{}
			}
			return w.fault(op)
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	mux.Handle("/issuer/", w.issuer)
	mux.Handle("/google/", http.StripPrefix("/google", w.google))
	mux.Handle("/gemini/", http.StripPrefix("/gemini", fakegemini.New(func(r fakegemini.Request) fakegemini.Turn {
		w.mu.Lock()
		defer w.mu.Unlock()
		return w.brain(r)
	})))
	w.open(append(settings, "DATA_DIR="+t.TempDir()))
	var names []string
	for _, f := range api.Functions {
		names = append(names, f.Name)
	}
	mux.Handle("/api/", w.app.Handler(names...))
	return w
}

func (w *world) open(settings []string) {
	env := map[string]string{"STORE": "embedded", "GEMINI_API_KEY": "a-key-of-the-fake-gemini", "GEMINI_MODEL": "fake", "GOOGLE_GEMINI_BASE_URL": w.url + "/gemini",
		"AUTH_ISSUER": w.url + "/issuer", "AUTH_AUDIENCE": "test", "PUSH_ISSUER": w.url + "/issuer", "PUSH_AUDIENCE": "https://resume.example", "PUSH_SERVICE_ACCOUNT": pushMail,
		"GMAIL_API_ENDPOINT": w.url + "/google/", "CALENDAR_API_ENDPOINT": w.url + "/google/calendar/v3/", "PUBLIC_URL": w.url}
	for _, s := range settings {
		k, v, _ := strings.Cut(s, "=")
		env[k] = v
	}
	cfg, err := config.Load(func(name string) string { return env[name] })
	if err != nil {
		w.t.Fatal(err)
	}
	w.app, err = app.New(context.Background(), cfg, obs.New(w.logs, cfg.Log()), app.WithLocalAccounts(w))
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = w.app.Close() })
}

// Client and Check make the world the users' linked accounts.
func (w *world) Client(context.Context, string, ...string) (*http.Client, error) {
	return localgoogle.Bearer("token"), nil
}

func (w *world) Check(context.Context, string, []string) error { return nil }

// wants has the model call a tool once, and then say what came of it.
func (w *world) wants(tool string, args any) {
	w.brain = func(r fakegemini.Request) fakegemini.Turn {
		if len(r.Responses()) > 0 || r.NoTools {
			return fakegemini.Turn{Text: "That is what came of it."}
		}
		return fakegemini.Turn{Calls: []fakegemini.Call{{Name: tool, Args: args}}}
	}
}

func (w *world) mail() {
	w.wants("gmail_send", map[string]any{"to": []string{"bob@example.com"}, "subject": "s", "body": "CANARY-body"})
}

func (w *world) event() {
	start := time.Now().AddDate(0, 1, 0).UTC()
	w.wants("calendar_event_create", map[string]any{"summary": "x", "start": start.Format(time.RFC3339), "end": start.Add(time.Hour).Format(time.RFC3339)})
}

func (w *world) faults(f func(op string) localgoogle.Fault) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.fault = f
}

// run is an answer of the API as far as these tests look at it.
type run struct {
	RunID, Status, Summary, ErrorCode, Message string
	Actions                                    []struct{ Tool, Status, ErrorCode, ErrorReason, ExecutionStatus, ApprovalID, Message string }
	Approvals                                  []struct {
		ApprovalID, ArgsHash, Kind string
	}
	Error struct{ Class, Code, Message string }
}

func (w *world) call(method, path, body string) (int, run) {
	w.t.Helper()
	token, err := w.issuer.Token("ana", account, "test", time.Hour)
	if err != nil {
		w.t.Fatal(err)
	}
	req, err := http.NewRequest(method, w.url+path, strings.NewReader(body))
	if err != nil {
		w.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+token)
	req.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		w.t.Fatal(err)
	}
	defer res.Body.Close()
	data, err := io.ReadAll(res.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	var r run
	if err := json.Unmarshal(data, &r); err != nil {
		w.t.Fatalf("%s %s: %v: %s", method, path, err, data)
	}
	return res.StatusCode, r
}

func (w *world) ask() run {
	w.t.Helper()
	status, r := w.call("POST", "/api/agent/run", `{"prompt":"please do it"}`)
	if status != http.StatusOK {
		w.t.Fatalf("%d %+v", status, r)
	}
	return r
}

// approve says yes to everything that waits, and has the run moved as Pub/Sub would.
func (w *world) approve(r run) run {
	w.t.Helper()
	for _, a := range r.Approvals {
		if status, got := w.call("POST", "/api/agent/approvals/resolve", `{"approvalId":"`+a.ApprovalID+`","decision":"approve_once","argsHash":"`+a.ArgsHash+`"}`); status != http.StatusOK {
			w.t.Fatalf("%d %+v", status, got)
		}
	}
	w.deliver()
	_, got := w.call("GET", "/api/agent/runs/"+r.RunID, "")
	return got
}

func (w *world) deliver() {
	w.t.Helper()
	push := queueembedded.HTTPPush(w.url+"/api/agent/resume", func(context.Context) (string, error) {
		return w.issuer.PushToken(pushMail, "https://resume.example")
	}, http.DefaultClient)
	if _, err := w.app.Queue.(*queueembedded.Queue).Deliver(context.Background(), push); err != nil {
		w.t.Fatal(err)
	}
}
