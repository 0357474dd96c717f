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

// held is a model that answers when it is let go.
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

// TestOverload: an instance serves as many requests of users as it may; whoever comes beyond that is told when to come
// again, and has begun nothing. What was admitted ends, and the queue's and the monitor's requests are always answered.
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
