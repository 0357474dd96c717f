package action

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/testkit/fakegoogle"
	"github.com/countersign-run/countersign/shared/testkit/toolstest"
)

// order is an action with an argument of each type.
const order = `name: order
description: Orders. In full.
inputSchema:
  type: object
  required: [product]
  properties:
    product: {type: string}
    note: {type: string}
    quantity: {type: integer, default: 1}
    gift: {type: boolean}
    colours: {type: array, items: {type: string}}
    options: {type: object}
    people: {type: array, items: {type: string}}
targets:
  - {kind: address, field: people}
bound: [product, quantity, gift, colours, options, people]
preview:
  - {label: Product, field: product}
  - {label: Note, field: note}
binding:
  url: https://shop.example/order
  timeout: 30s
`

// ordering returns the action's tool.
func ordering(t *testing.T, url, more string, h Handlers) *tool.Tool {
	t.Helper()
	text := strings.Replace(order, "https://shop.example/order", url, 1) + more
	if h != nil {
		text, _, _ = strings.Cut(text, "binding:")
	}
	_, m, err := ParseMetadata("order.jay-action", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	r, err := New([]Action{{Name: "order", Metadata: m}}, Options{Keys: [][]byte{key}, Handlers: h})
	if err != nil {
		t.Fatal(err)
	}
	return r.Tool("order")
}

func TestSuite(t *testing.T) {
	toolstest.Suite{
		Tool: ordering(t, "https://shop.example/order", "", nil),
		Args: map[string]any{"product": "mug", "note": "b"},
		Other: map[string]map[string]any{"product": {"product": "cup"}, "note": {"note": "c"},
			"quantity": {"quantity": 2},
			"gift":     {"gift": true}, "colours": {"colours": []string{"red"}},
			"options": {"options": map[string]any{"a": 1}},
			"people":  {"people": []string{"a@example.com", "b@example.com"}}},
		Fixed:     map[string]any{"quantity": 1},
		Free:      []string{"note"},
		Labels:    []string{"Product", "Note", "quantity", "gift", "colours", "options", "people"},
		Addresses: []toolstest.Addresses{{Argument: "people"}},
		Texts:     map[string]string{"product": "Product", "note": "Note"},
		Previews: map[string]toolstest.Shown{
			"every argument": {Change: map[string]any{"gift": false, "colours": []string{"red", "blue"}},
				Want: []string{"Orders\n", "Product: mug", "quantity: 1", "gift: false", `colours: ["red","blue"]`}},
			"a long text": {Change: map[string]any{"note": "a\n" + strings.Repeat("b", 200)},
				Want: []string{"Note: a\n" + strings.Repeat("b", 200)}},
			"another script": {Change: map[string]any{"note": "p\u0430ypal"}, Want: []string{"! Note: "}},
		},
		Refused: map[string]toolstest.Refused{
			"a fraction":      {Change: map[string]any{"quantity": 1.5}, Field: "quantity"},
			"another element": {Change: map[string]any{"colours": []any{1}}, Field: "colours"},
		},
		Unsaid: []string{"mug"},
	}.Run(t)
}

// endpoint is an endpoint whose requests fail as a test says. If it is idempotent, it acts once on each
// Idempotency-Key.
type endpoint struct {
	idempotent bool
	mu         sync.Mutex
	faults     []fakegoogle.Fault
	calls      int
	acted      []string
}

func (e *endpoint) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if _, err := io.Copy(io.Discard, r.Body); err != nil {
		return
	}
	e.mu.Lock()
	e.calls++
	var f fakegoogle.Fault
	if len(e.faults) > 0 {
		f, e.faults = e.faults[0], e.faults[1:]
	}
	e.mu.Unlock()
	f.Serve(w, r, func() (http.HandlerFunc, bool) {
		e.act(r.Header.Get("Idempotency-Key"))
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `{"ok":true}`)
		}, true
	})
}

func (e *endpoint) act(key string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.idempotent && len(e.acted) > 0 && e.acted[0] == key {
		return
	}
	e.acted = append(e.acted, key)
}

// TestReconcileEachFault checks that a request to an idempotent endpoint is repeated, and that the user must review a
// call to any other one.
func TestReconcileEachFault(t *testing.T) {
	const op = "POST"
	status, kind := toolstest.Status, toolstest.Kind
	done := toolstest.Settled{Want: toolstest.Completed, Effects: 1}
	review := func(effects int) toolstest.Settled {
		return toolstest.Settled{Want: toolstest.Review, Effects: effects, Asked: map[string]int{op: 1}}
	}
	for name, s := range map[string]struct {
		more  string
		cases map[string]toolstest.Settled
	}{
		"any": {"", map[string]toolstest.Settled{
			"503 before":  review(0).After(op, status(503, "")),
			"503 after":   review(1).After(op, kind(fakegoogle.StatusAfter)),
			"reset after": review(1).After(op, kind(fakegoogle.ResetAfter)), "429": done.After(op, status(429, "")),
			"an odd answer": done.After(op, kind(fakegoogle.OddAfter)),
			"half of one":   done.After(op, kind(fakegoogle.CutAfter)),
		}},
		"idempotent": {"  idempotent: true\n", map[string]toolstest.Settled{
			"503 before": done.After(op, status(503, "")), "503 after": done.After(op, kind(fakegoogle.StatusAfter)),
			"reset after": done.After(op, kind(fakegoogle.ResetAfter)),
			"hangs":       done.After(op, kind(fakegoogle.HangAfter)),
		}},
	} {
		t.Run(name, func(t *testing.T) {
			toolstest.Settling{
				Open: func(t *testing.T) *toolstest.Provider {
					e := &endpoint{idempotent: s.more != ""}
					return &toolstest.Provider{Tool: ordering(t, serve(t, e.ServeHTTP), s.more+outputOK, nil),
						Call: tool.Call{UID: "ana", ActionID: "action-1",
							Args: json.RawMessage(`{"product":"mug"}`)},
						Break:   func(_ string, f ...fakegoogle.Fault) { e.faults = f },
						Calls:   func(string) int { e.mu.Lock(); defer e.mu.Unlock(); return e.calls },
						Effects: func() int { e.mu.Lock(); defer e.mu.Unlock(); return len(e.acted) }}
				},
				Broken: ordering(t, "", "", Handlers{"order": Handle(
					func(context.Context, tool.Call, map[string]any) (rated, error) { panic("CANARY") })}),
				Acts: []string{op}, Cases: s.cases,
			}.Run(t)
		})
	}
}
