package api_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/countersign-run/countersign/shared/accounts/auth"
	"github.com/countersign-run/countersign/shared/agent/registry"
	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/api"
	"github.com/countersign-run/countersign/shared/base/strictjson"
	"github.com/countersign-run/countersign/shared/engine/loop"
	"github.com/countersign-run/countersign/shared/engine/queue"
	"github.com/countersign-run/countersign/shared/engine/records"
	"github.com/countersign-run/countersign/shared/engine/unit"
	"github.com/countersign-run/countersign/shared/store"
	"github.com/countersign-run/countersign/shared/store/document"
	"github.com/countersign-run/countersign/shared/store/embedded"
	"github.com/countersign-run/countersign/shared/testkit/await"
	"github.com/countersign-run/countersign/shared/testkit/issuer"
	"github.com/countersign-run/countersign/shared/testkit/script"
)

const (
	audience  = "test-app"
	pushMail  = "push@test-project.iam.gserviceaccount.com"
	webOrigin = "https://app.example"
)

var signingKey = sync.OnceValue(func() *rsa.PrivateKey {
	k, err := issuer.NewKey()
	if err != nil {
		panic(err)
	}
	return k
})

// env is the HTTP API over an embedded store and a scripted model.
type env struct {
	t      testing.TB
	url    string
	store  store.Store
	model  *script.Model
	loop   *loop.Loop
	api    *api.API
	rec    *records.Records
	issuer *issuer.Issuer
	logs   *bytes.Buffer

	mu     sync.Mutex
	queued []queue.Message

	onResume func(queue.Message) // called with each queued message; can be nil
	sent     []string
	calls    []tool.Call // calls of the e-mail tool
}

func newEnv(t testing.TB) *env {
	st, err := embedded.OpenMemory(time.Now)
	if err != nil {
		t.Fatal(err)
	}
	return newEnvOn(t, st)
}

// newEnvOn returns an env over the store, and closes the store at the end of the test.
func newEnvOn(t testing.TB, st store.Store) *env {
	var err error
	w := &env{t: t, model: script.New(), logs: &bytes.Buffer{}, store: st}
	var h http.Handler
	srv := httptest.NewUnstartedServer(
		http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) { h.ServeHTTP(rw, r) }))
	srv.Config.MaxHeaderBytes = 64 << 10
	srv.Start()
	t.Cleanup(func() { srv.Close(); _ = st.Close() })
	w.url = srv.URL
	if w.issuer, err = issuer.New(srv.URL+"/issuer", signingKey(), time.Now); err != nil {
		t.Fatal(err)
	}
	rec := &records.Records{Store: st, Now: time.Now}
	w.rec = rec
	users, err := auth.New(auth.Config{Issuer: srv.URL + "/issuer", Audience: audience})
	if err != nil {
		t.Fatal(err)
	}
	push, err := auth.NewPush(auth.PushConfig{Issuer: srv.URL + "/issuer", Audience: "push", ServiceAccount: pushMail})
	if err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.NewTextHandler(&syncWriter{w: w.logs}, nil))
	w.loop = loop.New(unit.Env{Store: st, Queue: w, Model: w.model, Tools: tool.NewSet(w.mail()), Log: log,
		Agents: registry.Set{run.Assistant: {Name: run.Assistant, Description: "Sends mail.",
			Instructions: registry.WithRules(registry.Text("A test.")), History: registry.HistoryWords,
			OnReject: registry.RejectCompletes, Limits: registry.Limits{ModelCalls: 3, ApprovalTTL: time.Hour,
				Deadline: 24 * time.Hour, ModelTimeout: 20 * time.Second, ToolTimeout: 10 * time.Second, MaxOpen: 3,
				MaxPerDay: 60}}}})
	a := &api.API{Loop: w.loop, Records: rec, Users: users, Push: push, Origins: []string{webOrigin}, Log: log,
		Budget: time.Minute, Health: map[string]bool{"ok": true}}
	w.api = a
	functions := a.Handler(api.Functions...)
	h = http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/issuer/") {
			w.issuer.ServeHTTP(rw, r)
			return
		}
		functions.ServeHTTP(rw, r)
	})
	return w
}

type syncWriter struct {
	mu sync.Mutex
	w  io.Writer
}

func (s *syncWriter) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.w.Write(b)
}

func (w *env) Resume(_ context.Context, m queue.Message) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.onResume != nil {
		w.onResume(m)
	}
	w.queued = append(w.queued, m)
	return nil
}

func (w *env) Close() error { return nil }

type mailArgs struct {
	To   []string `json:"to"`
	Text string   `json:"text"`
}

type mailResult struct {
	ID string `json:"id"`
}

func (w *env) mail() *tool.Tool {
	return tool.Define(tool.Def[mailArgs, mailResult]{
		Name: "mail", Description: "Sends an e-mail.", SideEffect: true,
		Targets: func(in mailArgs) []tool.Target { return tool.Addresses(in.To) },
		Preview: func(in mailArgs) tool.Preview {
			return tool.Preview{Title: "Mail to " + strings.Join(in.To, ", "),
				Fields: []tool.Field{{Label: "Text", Value: in.Text}}}
		},
		Execute: func(_ context.Context, c tool.Call, in mailArgs) (mailResult, error) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.calls = append(w.calls, c)
			w.sent = append(w.sent, strings.Join(in.To, ",")+": "+in.Text)
			return mailResult{ID: "m1"}, nil
		},
	})
}

// wants makes the model request an e-mail to bob and then report success.
func (w *env) wants(text string) {
	w.asks(text)
	w.model.Then(script.Turn{Text: "It is sent."})
}

// asks makes the model request an e-mail to bob.
func (w *env) asks(text string) {
	w.model.Then(script.Turn{
		Calls: []script.Call{{Name: "mail", Args: mailArgs{To: []string{"bob@x.org"}, Text: text}}}})
}

func (w *env) token(uid string) string {
	t, err := w.issuer.Token(uid, uid+"@example.com", audience, time.Hour)
	if err != nil {
		w.t.Fatal(err)
	}
	return t
}

// answer is an HTTP response with its body read.
type answer struct {
	*http.Response
	body []byte
	json map[string]any
}

// send makes a request. edit can change it before it is sent.
func (w *env) send(method, path, uid, body string, edit ...func(*http.Request)) answer {
	w.t.Helper()
	req, err := http.NewRequest(method, w.url+path, strings.NewReader(body))
	if err != nil {
		w.t.Fatal(err)
	}
	if uid != "" {
		req.Header.Set("Authorization", "Bearer "+w.token(uid))
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	for _, e := range edit {
		e(req)
	}
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	res, err := client.Do(req)
	if err != nil {
		w.t.Fatal(err)
	}
	defer res.Body.Close()
	a := answer{Response: res}
	if a.body, err = io.ReadAll(res.Body); err != nil {
		w.t.Fatal(err)
	}
	_ = json.Unmarshal(a.body, &a.json) // streams and empty bodies are not JSON objects
	return a
}

// at returns the value at the path of keys in the answer.
func (a answer) at(keys ...string) string {
	var v any = a.json
	for _, k := range keys {
		switch x := v.(type) {
		case map[string]any:
			v = x[k]
		case []any:
			i := int(k[0] - '0')
			if i >= len(x) {
				return ""
			}
			v = x[i]
		}
	}
	if v == nil {
		return ""
	}
	return fmt.Sprint(v)
}

// items returns a list in the answer.
func (a answer) items(key string) []any {
	list, _ := a.json[key].([]any)
	return list
}

// push delivers the queued messages, as Pub/Sub does.
func (w *env) push() {
	w.t.Helper()
	for {
		w.mu.Lock()
		if len(w.queued) == 0 {
			w.mu.Unlock()
			return
		}
		m := w.queued[0]
		w.queued = w.queued[1:]
		w.mu.Unlock()
		if a := w.pushBody(string(queue.Envelope(m, "m1", 1, time.Now()))); a.StatusCode != http.StatusNoContent {
			w.t.Fatalf("push: %s %s", a.Status, a.body)
		}
	}
}

func (w *env) pushBody(body string, edit ...func(*http.Request)) answer {
	w.t.Helper()
	token, err := w.issuer.PushToken(pushMail, "push")
	if err != nil {
		w.t.Fatal(err)
	}
	edit = append([]func(*http.Request){header("Authorization", "Bearer "+token)}, edit...)
	return w.send("POST", "/api/agent/resume", "", body, edit...)
}

func header(k, v string) func(*http.Request) {
	return func(r *http.Request) { r.Header.Set(k, v) }
}

// disable disables a user, as an operator would.
func (w *env) disable(uid string) {
	ctx := context.Background()
	docs, err := w.store.Get(ctx, document.UserPath(uid))
	if err != nil {
		w.t.Fatal(err)
	}
	var u run.User
	if err := json.Unmarshal(docs[0].Data, &u); err != nil {
		w.t.Fatal(err)
	}
	u.Disabled = true
	data, err := strictjson.Marshal(u)
	if err != nil {
		w.t.Fatal(err)
	}
	if _, err := w.store.Commit(ctx, store.Update(docs[0].Path, docs[0].Version, docs[0].Fields, data)); err != nil {
		w.t.Fatal(err)
	}
}

func b64(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }

// slow sends the headers of a request and one byte of its body, and returns the status line.
func (w *env) slow(body string) string {
	conn, err := net.Dial("tcp", strings.TrimPrefix(w.url, "http://"))
	if err != nil {
		w.t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(await.Most)); err != nil {
		w.t.Fatal(err)
	}
	fmt.Fprintf(conn, "POST /api/agent/run HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Type: "+
		"application/json\r\nContent-Length: %d\r\n\r\n%s", w.token("ana"), len(body), body[:1])
	line, err := bufio.NewReader(conn).ReadString('\n')
	if err != nil {
		w.t.Fatal(err)
	}
	return line
}
