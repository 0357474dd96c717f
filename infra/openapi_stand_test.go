package infra_test

import (
	"context"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/countersign-run/countersign/shared/app"
	"github.com/countersign-run/countersign/shared/engine/records"
	"github.com/countersign-run/countersign/shared/engine/unit"
	"github.com/countersign-run/countersign/shared/testkit"
	"github.com/countersign-run/countersign/shared/testkit/faulty"
)

// described is the description, with the statuses that occurred.
type described struct {
	doc  *openapi3.T
	ops  map[string]operation
	seen map[string]map[int]bool // statuses by operation

	lines map[string]bool // kinds of stream lines that occurred, such as "StreamLine delta"
}

// operation is a described operation with its path and method.
type operation struct {
	*openapi3.Operation
	method, path string
}

func newDescribed(t *testing.T) *described {
	d := &described{description(t), map[string]operation{}, map[string]map[int]bool{}, map[string]bool{}}
	for path, item := range d.doc.Paths.Map() {
		for method, op := range item.Operations() {
			d.ops[op.OperationID] = operation{op, method, path}
			d.seen[op.OperationID] = map[int]bool{}
		}
	}
	return d
}

// user reports whether the operation needs a user's token. push reports whether it needs Google's.
func (o operation) user() bool { return o.Security == nil }
func (o operation) push() bool { return o.Security != nil && len(*o.Security) > 0 && !o.agent() }

// agent reports whether the operation needs an agent's token.
func (o operation) agent() bool {
	return o.Security != nil && len(*o.Security) > 0 && (*o.Security)[0]["agentToken"] != nil
}

// takesBody reports whether the operation reads a JSON body defined by this API.
func (o operation) takesBody() bool {
	return o.RequestBody != nil && o.Responses.Status(http.StatusUnsupportedMediaType) != nil
}

// form reports whether the operation reads a form with a file.
func (o operation) form() bool {
	return o.RequestBody != nil && o.RequestBody.Value.Content.Get("multipart/form-data") != nil
}

// formOf returns a form with a file, whose boundary formHeader names.
func formOf(data string) string {
	return "--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.txt\"\r\n\r\n" + data + "\r\n--b--\r\n"
}

var formHeader = []string{"Content-Type", "multipart/form-data; boundary=b"}

// example returns a body that the operation accepts.
func (o operation) example(t *testing.T) string {
	t.Helper()
	if o.RequestBody == nil {
		return ""
	}
	if o.form() {
		return formOf("a")
	}
	return inJSON(t, o.RequestBody.Value.Content.Get("application/json").Example)
}

// at returns the operation's path with the parameters replaced, in order.
func (o operation) at(params ...string) string {
	path := o.path
	for _, p := range params {
		begin, end := strings.Index(path, "{"), strings.Index(path, "}")
		path = path[:begin] + p + path[end+1:]
	}
	return path
}

// stand is Countersign over a separate cloud, with a clock that can be advanced and a store that can be made to fail.
type stand struct {
	*described
	*testkit.Deployment
	store *faulty.Store
	shift atomic.Int64 // nanoseconds added to the clock
	agent string       // the token of ada's agent
}

// settingsOf holds the settings of every stand; {cloud} is the cloud's URL.
var settingsOf = []string{"ALLOWED_ORIGINS=https://app.example", "APPROVAL_TTL=1m", "TERMINAL=on",
	"MCP_ISSUER={cloud}/issuer",
	"ACTION_KEY=0123456789abcdef0123456789abcdef"}

// open starts a stand. before can change the cloud.
func (d *described) open(t *testing.T, before func(*testkit.Cloud), settings ...string) *stand {
	t.Helper()
	c, err := testkit.NewCloud()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closed(t, c.Close) })
	if before != nil {
		before(c)
	}
	s := &stand{described: d, Deployment: &testkit.Deployment{Cloud: c, Logs: &testkit.Log{}}}
	all := []string{"ACTIONS=" + declare(t, c.URL)}
	for _, line := range append(settingsOf, settings...) {
		all = append(all, strings.ReplaceAll(line, "{cloud}", c.URL))
	}
	unlinked := slices.ContainsFunc(settings,
		func(line string) bool { return strings.HasPrefix(line, "GOOGLE_OAUTH_CLIENT_ID=") })
	err = s.Start(t.Context(), testkit.Options{Dir: t.TempDir(), Settings: all, Unlinked: unlinked,
		App: []app.Option{app.WithClock(s.now), app.WithEnv(s.between)}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closed(t, s.Stop) })
	s.App.API.Records = &records.Records{Store: s.store, Now: s.now, Files: s.App.API.Records.Files}
	s.App.API.Chat.Ledger = s.App.API.Records
	s.signIn(t, "ada") // before a test makes the store fail
	if _, s.agent, err = s.App.API.Records.AddToken(t.Context(), "ada", "editor", nil); err != nil {
		t.Fatal(err)
	}
	return s
}

func closed(t *testing.T, end func() error) {
	t.Helper()
	if err := end(); err != nil {
		t.Error(err)
	}
}

func (s *stand) now() time.Time { return time.Now().Add(time.Duration(s.shift.Load())) }

// between puts the failing store under the engine, and removes the waits between retries.
func (s *stand) between(l *unit.Env) {
	s.store = faulty.Wrap(l.Store)
	l.Store = s.store
	l.Sleep = func(ctx context.Context, _ time.Duration) error { return ctx.Err() }
}

// declare writes two actions, one with a side effect and one without. The cloud's /shop/ runs them.
func declare(t *testing.T, cloud string) string {
	t.Helper()
	dir := t.TempDir()
	const action = "name: NAME\ndescription: Something in the shop.\ninputSchema:\n  type: object\n  required: " +
		"[id]\n  properties:\n    id: {type: string}\n" +
		"outputSchema: {type: object, required: [items], properties: {items: {type: integer}}}\nbinding:\n  url: URL\n"
	for name, text := range map[string]string{
		"plugin.yaml": "name: shop\nactions:\n  - {name: cart.add, action: ./cart.add.jay-action}\n  - " +
			"{name: look, action: ./look.jay-action}\n  - later\n",
		"cart.add.jay-action": strings.NewReplacer("NAME", "cart.add", "URL", cloud+"/shop/add").Replace(action),
		"look.jay-action": strings.NewReplacer("NAME", "look", "URL", cloud+"/shop/look").Replace(action) +
			"  method: GET\nsideEffect: false\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// shop runs the declared actions.
func shop(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, `{"items":1}`)
}
