package api_test

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/store/firestore"
	"github.com/countersign-run/countersign/shared/testkit/emulators"
	"github.com/countersign-run/countersign/shared/testkit/script"
)

// onEachStore runs a test of client-executed calls on both stores.
func onEachStore(t *testing.T, test func(t *testing.T, open func(testing.TB) *env)) {
	t.Run("embedded", func(t *testing.T) {
		test(t, func(t testing.TB) *env { return newEnv(t).withClientTool() })
	})
	t.Run("firestore", func(t *testing.T) {
		t.Setenv("FIRESTORE_EMULATOR_HOST", emulators.Firestore(t))
		test(t, func(t testing.TB) *env {
			st, err := firestore.Open(context.Background(), "demo-"+strings.ToLower(rand.Text()), "")
			if err != nil {
				t.Fatal(err)
			}
			return newEnvOn(t, st).withClientTool()
		})
	})
}

// withClientTool adds a tool that the client executes.
func (w *env) withClientTool() *env {
	scan, err := tool.Remote("scan", "Scans a page.", json.RawMessage(`{"type":"object"}`))
	if err != nil {
		w.t.Fatal(err)
	}
	w.loop.Tools["scan"] = scan
	return w
}

// scans starts a run of ana with calls for pages 1 to n that the client must execute. It returns the IDs of the run and
// of the calls.
func (w *env) scans(n int) (runID string, calls []string) {
	w.t.Helper()
	var turn script.Turn
	for i := range n {
		turn.Calls = append(turn.Calls, script.Call{Name: "scan", Args: map[string]any{"page": i + 1}})
	}
	w.model.Then(turn)
	a := w.send("POST", "/api/agent/run", "ana", `{"prompt":"scan it"}`)
	for i := range n {
		at := string(rune('0' + i))
		if a.at("calls", at, "tool") != "scan" || a.at("calls", at, "args", "page") != fmt.Sprint(i+1) ||
			a.at("calls", at, "callId") != a.at("actions", at, "actionId") {
			w.t.Fatalf("%s %s", a.Status, a.body)
		}
		until, err := time.Parse(time.RFC3339, a.at("calls", at, "expiresAt"))
		if left := time.Until(until); err != nil || left < 4*time.Minute || left > 5*time.Minute {
			w.t.Fatalf("it waits until %s", a.at("calls", at, "expiresAt"))
		}
		calls = append(calls, a.at("calls", at, "callId"))
	}
	return a.at("runId"), calls
}

func (w *env) answers(runID, uid, body string) answer {
	w.t.Helper()
	return w.send("POST", "/api/agent/runs/"+runID+"/answers", uid, body)
}

func result(callID, value string) string {
	b, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	return fmt.Sprintf(`{"callId":%q,"result":%s}`, callID, b)
}

func results(all ...string) string { return `{"results":[` + strings.Join(all, ",") + `]}` }

// TestAnswers answers the calls of a stored run over HTTP, each in its own request.
func TestAnswers(t *testing.T) { onEachStore(t, clientAnswers) }

func clientAnswers(t *testing.T, open func(testing.TB) *env) {
	w := open(t)
	runID, calls := w.scans(3)
	one := results(result(calls[0], `{"text": "one"}`), result(calls[1], "It says <two>."))
	for range 2 { // repeated answers get the first response
		a := w.answers(runID, "ana", one)
		if a.StatusCode != 200 || a.at("status") != "awaiting_confirmation" || a.at("runId") != runID ||
			a.at("calls", "0", "callId") != calls[2] || len(w.queued) != 0 {
			t.Fatalf("%s %s, queued %v", a.Status, a.body, w.queued)
		}
	}
	if a := w.answers(runID, "eve", one); a.StatusCode != 404 || a.at("error", "class") != "AuthError" {
		t.Errorf("a stranger: %s %s", a.Status, a.body)
	}
	mixed := results(result(calls[2], `"three"`), result(calls[0], `{"text":"uno"}`))
	if a := w.answers(runID, "ana", mixed); a.StatusCode != 409 || a.at("error", "code") != "already_resolved" ||
		a.at("error", "class") != "PolicyError" {
		t.Errorf("another answer: %s %s", a.Status, a.body)
	}
	failed := results(`{"callId":"` + calls[2] + `","result":"no paper","isError":true}`)
	for range 2 {
		a := w.answers(runID, "ana", failed)
		if a.StatusCode != 200 || a.at("status") != "planning" || len(w.queued) == 0 {
			t.Fatalf("%s %s, queued %v", a.Status, a.body, w.queued)
		}
	}
	w.model.Then(script.Turn{Text: "Scanned."})
	w.push()
	last := w.answers(runID, "ana", one)
	got := w.send("GET", "/api/agent/runs/"+runID, "ana", "")
	if last.StatusCode != 200 || string(last.body) != string(got.body) || got.at("status") != "completed" ||
		got.at("calls") != "" {
		t.Errorf("%s %s, and then %s", last.Status, last.body, got.body)
	}
	asked := w.model.Requests()
	told := fmt.Sprint(string(asked[len(asked)-1].Contents[len(asked[len(asked)-1].Contents)-1]))
	for _, want := range []string{`{"text":"one"}`, `It says <two>.`, `The client could not do it: no paper`} {
		if !strings.Contains(told, want) {
			t.Errorf("the model is told %s, without %s", told, want)
		}
	}
}

// TestAnswersNotWaitedFor sends answers that no run waits for, and unreadable ones.
func TestAnswersNotWaitedFor(t *testing.T) { onEachStore(t, answersRefused) }

func answersRefused(t *testing.T, open func(testing.TB) *env) {
	w := open(t)
	runID, calls := w.scans(1)
	w.model.Then(script.Turn{Text: "Hello."})
	idle := w.send("POST", "/api/agent/run", "ana", `{"prompt":"hi"}`).at("runId")
	w.wants("ten")
	mail := w.send("POST", "/api/agent/run", "ana", `{"prompt":"mail bob"}`)
	many := make([]string, 17)
	for i := range many {
		many[i] = result(fmt.Sprintf("does-not-exist-%04d", i), "1")
	}
	huge := strings.Repeat("x", 64<<10+1)
	for name, c := range map[string]struct {
		run, body   string
		status      int
		code, field string
	}{
		"no results": {runID, `{}`, 400, "invalid", "results"},
		"none":       {runID, `{"results":[]}`, 400, "invalid", "results"},
		"too many":   {runID, results(many...), 400, "invalid", "results"},
		"not a list": {runID, `{"results":{"callId":"x"}}`, 400, "invalid", "results"},
		"a number": {runID, `{"results":[{"callId":"` + calls[0] + `","result":1}]}`, 400, "invalid",
			"results/0/result"},
		"odd isError": {runID, `{"results":[{"callId":"` + calls[0] + `","result":"1","isError":"no"}]}`, 400,
			"invalid", "results/0/isError"},
		"another field": {runID, `{"results":[{"callId":"` + calls[0] + `","result":"1","uid":"eve"}]}`, 400, "invalid",
			"results/0/uid"},
		"no id":     {runID, results(result("x", "1")), 400, "invalid", "results/0/callId"},
		"too large": {runID, results(result(calls[0], huge)), 400, "invalid", "results/0/result"},
		"twice": {runID, results(result(calls[0], "1"), result(calls[0], "1")), 400, "invalid",
			"results/1/callId"},
		"of no call":    {runID, results(result(calls[0], "1"), many[0]), 400, "invalid", "results/1/callId"},
		"huge body":     {runID, strings.Repeat(" ", 1<<20+1), 413, "body_too_large", ""},
		"a run is over": {idle, results(many[0]), 410, "not_waiting", ""},
		"of an approval": {mail.at("runId"), results(result(mail.at("actions", "0", "actionId"), "1")), 410,
			"not_waiting", ""},
		"another's id": {mail.at("runId"), results(result(calls[0], "1")), 410, "not_waiting", ""},
	} {
		a := w.answers(c.run, "ana", c.body)
		if a.StatusCode != c.status || a.at("error", "code") != c.code || a.at("error", "field") != c.field {
			t.Errorf("%s: %s %s, want %d %s %q", name, a.Status, a.body, c.status, c.code, c.field)
		}
	}
	if a := w.answers(runID, "", results(result(calls[0], "1"))); a.StatusCode != 401 {
		t.Errorf("nobody: %s", a.Status)
	}
	if a := w.send("GET", "/api/agent/runs/"+runID, "ana", ""); a.at("calls", "0", "callId") != calls[0] {
		t.Errorf("a refused answer has changed the run: %s", a.body)
	}
	w.send("POST", "/api/agent/runs/"+runID+"/cancel", "ana", "")
	if a := w.answers(runID, "ana", results(result(calls[0], "1"))); a.StatusCode != 410 {
		t.Errorf("after a cancel: %s %s", a.Status, a.body)
	}
	w.disable("ana")
	if a := w.answers(runID, "ana", results(result(calls[0], "1"))); a.StatusCode != 401 {
		t.Errorf("a disabled user: %s %s", a.Status, a.body)
	}
}

// TestAnswersRace has many clients answer one call at once, each with a different answer.
func TestAnswersRace(t *testing.T) { onEachStore(t, oneAnswerAmongMany) }

func oneAnswerAmongMany(t *testing.T, open func(testing.TB) *env) {
	w := open(t)
	runID, calls := w.scans(1)
	var mu sync.Mutex
	won, lost := []int{}, 0
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			a := w.answers(runID, "ana", results(result(calls[0], fmt.Sprint(i))))
			mu.Lock()
			defer mu.Unlock()
			switch a.StatusCode {
			case http.StatusOK:
				won = append(won, i)
			case http.StatusConflict:
				lost++
			default:
				t.Errorf("%s %s", a.Status, a.body)
			}
		})
	}
	wg.Wait()
	if len(won) != 1 || lost != 19 {
		t.Fatalf("%v won and %d lost", won, lost)
	}
	w.model.Then(script.Turn{Text: "Scanned."})
	w.push()
	asked := w.model.Requests()
	if told := string(asked[1].Contents[len(asked[1].Contents)-1]); len(asked) != 2 ||
		!strings.Contains(told, fmt.Sprintf(`:%d}`, won[0])) {
		t.Errorf("%d requests; %d has won, and the model is told %s", len(asked), won[0], told)
	}
}
