package main

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/countersign-run/countersign/shared/testkit"
)

// served is the local server on a separate port, with its workers, as one of its users.
type served struct {
	t           *testing.T
	base, token string
	s           *server
}

func serve(t *testing.T) *served {
	t.Helper()
	t.Setenv("DATA_DIR", t.TempDir())
	t.Setenv("LOG_LEVEL", "silent")
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	u := &served{t: t, base: "http://" + ln.Addr().String()}
	ctx, cancel := context.WithCancel(context.Background())
	if u.s, err = newServer(ctx, u.base, options{}); err != nil {
		t.Fatal(err)
	}
	web := &http.Server{Handler: u.s, ReadHeaderTimeout: time.Minute}
	go func() { _ = web.Serve(ln) }()
	t.Cleanup(func() {
		cancel()
		u.s.stop(context.Background())
		if err := web.Close(); err != nil {
			t.Error(err)
		}
		if err := u.s.close(); err != nil {
			t.Error(err)
		}
	})
	if err := u.s.start(ctx); err != nil {
		t.Fatal(err)
	}
	var signedIn struct{ Token string }
	u.call(http.MethodPost, "/dev/token", map[string]string{"uid": "ana", "email": "ana@example.com"}, &signedIn)
	u.token = signedIn.Token
	return u
}

func (u *served) call(method, path string, in, out any) {
	u.t.Helper()
	a, err := testkit.Connect(nil, u.base, u.token)(u.t.Context(), method, path, in)
	if err != nil || a.HTTP != http.StatusOK {
		u.t.Fatalf("%s %s: %d %s, %v", method, path, a.HTTP, a.Body, err)
	}
	if err := json.Unmarshal(a.Body, out); err != nil {
		u.t.Fatalf("%s %s: %v", method, path, err)
	}
}

// tab is a page of a shop as a widget reports it, with two products, a cart, and tools.
type tab struct {
	*served
	quantity map[string]string
	cart     map[string]int
	asked    []string // the received calls, in order
}

type callView struct {
	ID, Name, Category, RunID string
	Args                      struct{ Key, Value string }
	Approval                  *struct{ ApprovalID, ArgsHash string }
}

type chatReply struct {
	Type, Message string
	Calls         []callView
	History       []json.RawMessage
}

func (p *tab) state() map[string]any {
	var cart []map[string]string
	for id, n := range p.cart {
		cart = append(cart, map[string]string{"key": id, "name": "Blue Mug", "quantity": strconv.Itoa(n)})
	}
	return map[string]any{"viewState": map[string]any{
		"products": []map[string]string{{"key": "mug-blue", "name": "Blue Mug", "price": "€12.00"}}, "cart": cart},
		"interactions": []any{}, "customEvents": []any{}}
}

func (p *tab) body(more map[string]any) map[string]any {
	def := func(name string, fields ...string) map[string]any {
		properties := map[string]any{}
		for _, f := range fields {
			properties[f] = map[string]string{"type": "string"}
		}
		return map[string]any{"name": name, "description": name, "category": "page-automation",
			"inputSchema": map[string]any{"type": "object", "properties": properties, "required": fields}}
	}
	more["toolDefinitions"] = []any{def("fill-quantity", "key", "value"), def("click-add-to-cart", "key")}
	more["pageState"] = p.state()
	return more
}

// run executes a call on the page.
func (p *tab) run(c callView) string {
	switch c.Name {
	case "fill-quantity":
		p.quantity[c.Args.Key] = c.Args.Value
	case "click-add-to-cart":
		n, err := strconv.Atoi(p.quantity[c.Args.Key])
		if err != nil {
			p.t.Errorf("the quantity is %q", p.quantity[c.Args.Key])
		}
		p.cart[c.Args.Key] += n
	default:
		p.t.Errorf("%s is not a tool of this page", c.Name)
	}
	return `{"ok":true}`
}

// say sends a message, and executes calls until the agent answers in words. It calls decide for each waiting action.
func (p *tab) say(message string, decide func(callView)) string {
	p.t.Helper()
	var r chatReply
	p.call(http.MethodPost, "/api/agent/chat", p.body(map[string]any{"message": message, "history": []any{},
		"agent": "shop"}), &r)
	for range 6 {
		if r.Type == "response" {
			return r.Message
		}
		results := []any{}
		for _, c := range r.Calls {
			p.asked = append(p.asked, c.Name)
			if c.Category == "server-action" {
				decide(c)
				continue
			}
			results = append(results, map[string]any{"callId": c.ID, "result": p.run(c)})
		}
		history := r.History
		r = chatReply{}
		p.call(http.MethodPost, "/api/agent/chat/results",
			p.body(map[string]any{"results": results, "history": history}), &r)
	}
	p.t.Fatal("the agent does not finish")
	return ""
}

func newTab(t *testing.T) *tab {
	return &tab{served: serve(t), quantity: map[string]string{}, cart: map[string]int{}}
}

// TestChatShop makes the demo model use a page through the chat, with the page's tools and the server's search.
func TestChatShop(t *testing.T) {
	p := newTab(t)
	words := p.say("find a blue mug and put two in the cart", nil)
	if p.cart["mug-blue"] != 2 || !slices.Equal(p.asked, []string{"fill-quantity", "click-add-to-cart"}) {
		t.Errorf("the cart holds %v after %v", p.cart, p.asked)
	}
	if want := "I put 2 × Blue Mug into the cart. In the cart: 2 × Blue Mug."; words != want {
		t.Errorf("said %q, want %q", words, want)
	}
}
