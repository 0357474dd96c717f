package script_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/countersign-run/countersign/shared/agent/model"
	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/testkit/script"
)

func contents(t *testing.T) *model.Contents {
	t.Helper()
	c, err := model.NewContents([]model.Message{{Role: model.User, Text: "go"}})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestTurns(t *testing.T) {
	var hooked bool
	m := script.New(
		script.Turn{Thought: "hm", Text: "Let me see.", Calls: []script.Call{{Name: "f", Args: map[string]any{"a": 1}}},
			Hook: func(context.Context, model.Request) { hooked = true }},
		script.Turn{Err: fault.New(fault.Model, model.CodeOverloaded, "Busy.")},
		script.Turn{Correction: "Again.", Calls: []script.Call{{Name: "f"}}},
		script.Turn{Calls: []script.Call{{Name: "f"}}},
		script.Turn{Text: "Done."},
	)
	c := contents(t)
	var shown string
	ask := func(noTools bool) (*model.Reply, error) {
		shown = ""
		return m.Generate(context.Background(), model.Request{Contents: c.JSON(), NoTools: noTools},
			func(s string) { shown += s })
	}
	reply, err := ask(false)
	if err != nil || !hooked || shown != "Let me see." || reply.Text != shown || len(reply.Calls) != 1 ||
		reply.Calls[0].ID == "" || string(reply.Calls[0].Args) != `{"a":1}` {
		t.Fatalf("%+v, %v, shown %q", reply, err, shown)
	}
	if err := c.AddModel(reply.Content); err != nil {
		t.Fatal(err)
	}
	if _, err := ask(false); !fault.Is(err, fault.Model, model.CodeRefused) || m.Left() != 4 {
		t.Fatalf("open calls: %v", err)
	}
	if err := c.AddResponses([]model.Response{{ID: reply.Calls[0].ID, Name: "f"}}); err != nil {
		t.Fatal(err)
	}
	if _, err := ask(false); !fault.Is(err, fault.Model, model.CodeOverloaded) {
		t.Fatalf("scripted error: %v", err)
	}
	if reply, err = ask(false); err != nil || reply.Correction != "Again." || reply.Calls != nil ||
		reply.Content != nil {
		t.Fatalf("correction: %+v, %v", reply, err)
	}
	if reply, err = ask(true); err != nil || reply.Correction == "" || reply.Calls != nil {
		t.Fatalf("a call in mode NONE: %+v, %v", reply, err)
	}
	if reply, err = ask(true); err != nil || reply.Text != "Done." || m.Left() != 0 {
		t.Fatalf("%+v, %v; want reply.Text “Done.”, m.Left() 0", reply, err)
	}
	if _, err = ask(false); !fault.Is(err, fault.Model, model.CodeRefused) || len(m.Requests()) != 7 {
		t.Fatalf("no turn left: %v, %d requests", err, len(m.Requests()))
	}
	m.Then(script.Turn{Text: "More."})
	if reply, err = ask(false); err != nil || reply.Text != "More." {
		t.Fatalf("%+v, %v; want reply.Text “More.”", reply, err)
	}
}

func TestScriptStrict(t *testing.T) {
	for name, req := range map[string]model.Request{
		"nothing asked": {},
		"a missing signature": {Contents: []json.RawMessage{
			json.RawMessage(`{"role":"user","parts":[{"text":"go"}]}`),
			json.RawMessage(`{"role":"model","parts":[{"functionCall":{"name":"f"}}]}`),
			json.RawMessage(`{"role":"user","parts":[{"functionResponse":{"name":"f","response":{}}}]}`)}},
		"a bad schema": {Contents: contents(t).JSON(),
			Tools: []tool.Spec{{Name: "f", Description: "d", Schema: json.RawMessage(`{"type":"string"}`)}}},
	} {
		m := script.New(script.Turn{Text: "hi"})
		_, err := m.Generate(context.Background(), req, nil)
		if !fault.Is(err, fault.Model, model.CodeRefused) || errors.Unwrap(err) == nil || m.Left() != 1 {
			t.Errorf("%s: %v; want error %v %v, errors.Unwrap(err) set, m.Left() 1",
				name, err, fault.Model, model.CodeRefused)
		}
	}
}

func TestContextEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	m := script.New(script.Turn{Text: "late", Hook: func(context.Context, model.Request) { cancel() }})
	if _, err := m.Generate(ctx, model.Request{Contents: contents(t).JSON()}, nil); !errors.Is(err, context.Canceled) ||
		!strings.Contains(err.Error(), string(model.CodeCancelled)) {
		t.Fatal(err)
	}
}
