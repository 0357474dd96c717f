package app_test

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/countersign-run/countersign/shared/app"
	"github.com/countersign-run/countersign/shared/engine/queue"
	"github.com/countersign-run/countersign/shared/store"
	"github.com/countersign-run/countersign/shared/testkit"
	"github.com/countersign-run/countersign/shared/testkit/fakegemini"
	"github.com/countersign-run/countersign/shared/testkit/faulty"
)

var update = flag.Bool("update", false, "write what was counted into infra/cost/counts.json")

// countsFile is the file from which infra/cost reads the counts that it multiplies by prices.
const countsFile = "../../infra/cost/counts.json"

// counts are what a run of one kind uses, from the user's words to its end.
type counts struct {
	Kind        string       `json:"kind"`
	Invocations []invocation `json:"invocations"`
	Reads       int          `json:"reads"`  // documents
	Writes      int          `json:"writes"` // documents
	Messages    int          `json:"messages"`
	LogLines    int          `json:"logLines"`
}

// invocation is one call of a function.
type invocation struct {
	Function   string `json:"function"`
	ModelCalls int    `json:"modelCalls"`
	Effects    int    `json:"effects"`
}

// counter is a deployment that counts.
type counter struct {
	*proved
	store *faulty.Counter

	mu       sync.Mutex
	messages []queue.Message
	asked    int
	got      counts
}

// Resume keeps a message for the counter to push.
func (c *counter) Resume(_ context.Context, m queue.Message) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.messages = append(c.messages, m)
	return nil
}

// Close does nothing: the counter owns no queue.
func (c *counter) Close() error { return nil }

// TestCountsOfRun counts the billable resources of one run of each kind, for a user with a linked account whose access
// token is in memory, and compares them with infra/cost/counts.json. With -update it writes the file.
func TestCountsOfRun(t *testing.T) {
	c := newCounter(t)
	var all []counts
	for _, kind := range []struct {
		name string
		does func()
	}{
		{"words", func() { c.run(fakegemini.Turn{Text: "Hello."}) }},
		{"words after a tool that reads", func() { c.run(call("action_look", `{"id":"mug"}`)) }},
		{"an action that waits for its user", func() { c.approved(call("action_cart_add", `{"id":"mug"}`)) }},
		{"an event that waits for its user", func() {
			c.approved(fakegemini.Turn{Calls: []fakegemini.Call{{Name: "calendar_event_create",
				Args: testkit.Event("x", time.Now().AddDate(0, 1, 0))}}})
		}},
		{"an e-mail that waits for its user", func() {
			c.approved(fakegemini.Turn{Calls: []fakegemini.Call{{Name: "gmail_send",
				Args: testkit.Mail("bob@example.com", "s", "b")}}})
		}},
		{"a message to a page's agent", func() {
			c.says(fakegemini.Turn{Text: "Hello."})
			c.does("chat", func() { c.chat("/api/agent/chat", `{"message":"hello"}`) })
		}},
	} {
		kind.does() // links the account, and caches its access token
		c.take()
		kind.does()
		got := c.take()
		got.Kind = kind.name
		all = append(all, got)
	}
	text, err := json.MarshalIndent(map[string]any{"runs": all}, "", "\t")
	if err != nil {
		t.Fatal(err)
	}
	text = append(text, '\n')
	if *update {
		if err := os.WriteFile(countsFile, text, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if held, err := os.ReadFile(countsFile); err != nil || !bytes.Equal(held, text) {
		t.Errorf("%s is not what a run takes (go test ./shared/app -run CountsOfRun -update, and then "+
			"go test ./infra/cost -update): %v\n%s", countsFile, err, text)
	}
}

func call(name, args string) fakegemini.Turn {
	return fakegemini.Turn{Calls: []fakegemini.Call{{Name: name, Args: json.RawMessage(args)}}}
}

func newCounter(t *testing.T) *counter {
	t.Helper()
	c := &counter{}
	open := app.Embedded
	app.Embedded = func(dir string, now func() time.Time) (store.Store, error) {
		st, err := open(dir, now)
		c.store = faulty.Count(st)
		return c.store, err
	}
	defer func() { app.Embedded = open }()
	c.proved = withActions(t, newEndpoint(t))
	c.App.API.Loop.Queue = c
	return c
}

// does counts one call of a function.
func (c *counter) does(function string, do func()) {
	c.t.Helper()
	before, effects := c.asked, len(c.Effects())
	do()
	c.got.Invocations = append(c.got.Invocations,
		invocation{function, c.asked - before, len(c.Effects()) - effects})
}

// says makes the model take a turn, and then answer with text.
func (c *counter) says(turn fakegemini.Turn) {
	c.SetModel(func(r fakegemini.Request) fakegemini.Turn {
		c.asked++
		if len(r.Responses()) > 0 {
			return fakegemini.Turn{Text: "That is what came of it."}
		}
		return turn
	})
}

// run sends a request, and makes the model take a turn.
func (c *counter) run(turn fakegemini.Turn) (a testkit.Answer) {
	c.t.Helper()
	c.says(turn)
	c.does("run", func() { a = c.ask() })
	return a
}

// approved does the same, and approves what waits.
func (c *counter) approved(turn fakegemini.Turn) {
	c.t.Helper()
	a := c.run(turn)
	if len(a.Approvals) != 1 {
		c.t.Fatalf("%d approvals: %s", len(a.Approvals), a.Body)
	}
	c.does("approvals-resolve", func() {
		if yes, err := c.Resolve(c.t.Context(), "ana", a.Approvals[0], "approve_once"); err != nil || yes.HTTP != 200 {
			c.t.Fatalf("%v %s; want yes.HTTP 200", err, yes.Body)
		}
	})
	for i, m := range c.taken() {
		c.got.Messages++
		c.does("resume", func() {
			if err := c.Push(c.Base)(c.t.Context(), queue.Envelope(m, fmt.Sprint(i), 1, time.Now())); err != nil {
				c.t.Fatal(err)
			}
		})
	}
	c.got.Invocations[len(c.got.Invocations)-1].Effects = 1 // an action has one at its endpoint
}

func (c *counter) taken() []queue.Message {
	c.mu.Lock()
	defer c.mu.Unlock()
	taken := c.messages
	c.messages = nil
	return taken
}

// take returns the counts since the last take.
func (c *counter) take() counts {
	got, st := c.got, c.store.Take()
	got.Reads, got.Writes = st.Get.Docs+st.Query.Docs, st.Commit.Docs
	lines := strings.Count(c.Logs.String(), "\n")
	got.LogLines, c.got = lines-c.got.LogLines, counts{LogLines: lines}
	return got
}
