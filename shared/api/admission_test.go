package api_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"testing"

	"github.com/countersign-run/countersign/shared/agent/model"
)

// held is a model that answers only after it is released.
type held struct {
	asked chan struct{}
	let   chan struct{}
}

func (*held) Name() string { return "held" }

func (m *held) Generate(ctx context.Context, _ model.Request, _ func(string)) (*model.Reply, error) {
	m.asked <- struct{}{}
	select {
	case <-m.let:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	return &model.Reply{Content: json.RawMessage(`{"role":"model","parts":[{"text":"Hello."}]}`), Text: "Hello.",
		Finish: "STOP", Model: "held"}, nil
}

// TestOverload checks that an instance serves its maximum number of user requests. Further requests get a Retry-After
// and start nothing. Admitted requests finish, and requests of the queue and of the monitor are always answered.
func TestOverload(t *testing.T) {
	const most, more = 5, 20
	w := newEnv(t)
	w.api.Concurrency = most
	m := &held{make(chan struct{}, most+more), make(chan struct{})}
	w.loop.Model = m
	ask := func(uid string) answer { return w.send("POST", "/api/agent/run", uid, `{"prompt":"hello"}`) }

	admitted := make([]answer, most)
	var group sync.WaitGroup
	for i := range admitted {
		group.Go(func() { admitted[i] = ask(fmt.Sprint("user", i)) })
	}
	defer group.Wait()
	let := sync.OnceFunc(func() { close(m.let) })
	defer let()
	for range admitted {
		<-m.asked
	}
	for range more {
		a := ask("late")
		if a.StatusCode != http.StatusServiceUnavailable || a.Header.Get("Retry-After") == "" ||
			a.at("error", "code") != "overloaded" {
			t.Fatalf("beyond the bound: %d %s", a.StatusCode, a.body)
		}
	}
	if a := w.send("GET", "/health", "", ""); a.StatusCode != http.StatusOK {
		t.Errorf("the health of a busy server: %d", a.StatusCode)
	}
	if a := w.pushBody(`{"message":{"data":"bm9ib2R5","messageId":"m1"}}`); a.StatusCode >= 500 {
		t.Errorf("a message of the queue to a busy server: %d %s", a.StatusCode, a.body)
	}
	let()
	group.Wait()
	for i, a := range admitted {
		if a.StatusCode != http.StatusOK || a.at("status") != "completed" {
			t.Errorf("the admitted request %d: %d %s", i, a.StatusCode, a.body)
		}
	}
	if a := ask("late"); a.at("status") != "completed" {
		t.Errorf("afterwards: %d %s", a.StatusCode, a.body)
	}
	if threads := w.send("GET", "/api/agent/threads", "late", ""); len(threads.json["threads"].([]any)) != 1 {
		t.Errorf("refused requests have left something: %s", threads.body)
	}
}
