package gauntlet

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/countersign-run/countersign/scripts/prove/gauntlet/trial"
	"github.com/countersign-run/countersign/shared/testkit"
	"github.com/countersign-run/countersign/shared/testkit/fakegemini"
)

// stock is a server action that only reads.
const stock = `name: stock
description: How many there are.
inputSchema:
  type: object
  properties:
    product: {type: string}
  required: [product]
outputSchema:
  type: object
  properties:
    left: {type: integer}
sideEffect: false
approval: not_required
binding: {method: POST, url: "URL/stock"}
`

// withStock returns a deployment with the action. Its endpoint counts its requests.
func withStock(t *testing.T, asked *int) *proved {
	t.Helper()
	cloud, err := testkit.NewCloud()
	if err != nil {
		t.Fatal(err)
	}
	actions := t.TempDir()
	for name, text := range map[string]string{"plugin.yaml": "name: shop\nactions:\n  - name: stock\n    action: " +
		"./stock.jay-action\n", "stock.jay-action": strings.Replace(stock, "URL", cloud.URL, 1)} {
		if err := os.WriteFile(filepath.Join(actions, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cloud.Handle("/stock", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		*asked++
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"left":7}`)) // a disconnected client is noticed elsewhere
	}))
	w := &testkit.Deployment{Cloud: cloud, Logs: &testkit.Log{}}
	if err := w.Start(t.Context(),
		testkit.Options{Dir: t.TempDir(),
			Settings: []string{"ACTIONS=" + actions, "ACTION_KEY=" + strings.Repeat("k", 40)}}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
		if refused := w.Gemini.Refused(); len(refused) > 0 {
			t.Errorf("requests that Gemini would refuse: %q", refused)
		}
	})
	return &proved{w, t, &sync.Map{}}
}

// TestMixedBatchOfServerAndPageTools is case 19. In one turn, the server's action runs at once, and the page's calls
// wait. The model gets one response for each call, in its order, and the server's result is unchanged.
func TestMixedBatchOfServerAndPageTools(t *testing.T) {
	asked := 0
	w := withStock(t, &asked)
	w.SetModel(func(r fakegemini.Request) fakegemini.Turn {
		if len(r.Responses()) > 0 {
			return fakegemini.Turn{Text: "That is what came of it."}
		}
		return fakegemini.Turn{Calls: []fakegemini.Call{
			{Name: "click-add", Args: map[string]any{"key": "mug"}},
			{Name: "action_stock", Args: map[string]any{"product": "mug"}},
			{Name: "click-add", Args: map[string]any{"key": "cup"}}}}
	})
	tools := []any{map[string]any{"name": "click-add", "description": "Add it.",
		"inputSchema": map[string]any{"type": "object",
			"properties": map[string]any{"key": map[string]any{"type": "string"}}}}}
	var reply struct {
		Calls []struct {
			ID   string
			Args struct{ Key string }
		}
		History []json.RawMessage
		Message string
	}
	chat := func(path string, pairs ...any) {
		t.Helper()
		a, err := w.Call(t.Context(), "ana", "POST", "/api/agent"+path,
			trial.Object(append(pairs, "toolDefinitions", tools, "pageState", map[string]any{})...))
		if err == nil {
			err = json.Unmarshal(a.Body, &reply)
		}
		if err != nil || a.HTTP != http.StatusOK {
			t.Fatalf("%v: %d %s; want a.HTTP %v", err, a.HTTP, a.Body, http.StatusOK)
		}
	}
	chat("/chat", "message", "two of them, please", "history", []any{})
	if len(reply.Calls) != 2 || asked != 1 {
		t.Fatalf("the page got the calls %+v, and the server %d requests", reply.Calls, asked)
	}
	var results []any
	for _, c := range []int{1, 0} { // the page answers in another order
		results = append(results,
			map[string]any{"callId": reply.Calls[c].ID, "result": trial.Object("added", reply.Calls[c].Args.Key)})
	}
	chat("/chat/results", "results", results, "history", reply.History)
	told := w.Gemini.Requests()
	got := told[len(told)-1].Responses()
	want := []string{`"mug"`, `"left":7`, `"cup"`}
	if len(got) != len(want) || asked != 1 || !strings.HasPrefix(reply.Message, "That is what came of it.") {
		t.Fatalf("%d responses, the server was asked %d times, and the end is %q", len(got), asked, reply.Message)
	}
	for i := range want {
		if body, err := json.Marshal(got[i]); err != nil ||
			!strings.Contains(strings.ReplaceAll(string(body), `\"`, `"`), want[i]) {
			t.Errorf("response %d is %s, want %s", i, body, want[i])
		}
	}
}
