package api_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/countersign-run/countersign/shared/agent/registry"
	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/api"
	"github.com/countersign-run/countersign/shared/engine/planner"
	"github.com/countersign-run/countersign/shared/engine/queue"
	"github.com/countersign-run/countersign/shared/testkit/await"
	"github.com/countersign-run/countersign/shared/testkit/script"
)

const plansPath = "/api/agent/plans"

// newPlans is an env with the planner, whose runs another request than the user's moves.
func newPlans(t *testing.T) *env {
	w := newEnv(t)
	its := *w.loop.Agents[run.Assistant]
	its.Name, its.Plans, its.Order, its.OnReject = run.Planner, true, registry.Strict, registry.RejectContinues
	its.Limits.ModelCalls, its.Limits.MaxAsks = 200, 100
	its.Worker = api.ResumePlan.Name
	w.loop.Agents[run.Planner] = &its
	door := *w.loop
	door.Function = api.Plans.Name
	w.api.Plans = &planner.Planner{Loop: &door, GitHubURL: "https://github.com", MaxDeadline: 7 * 24 * time.Hour}
	return w
}

func calls(name, args string) script.Turn {
	return script.Turn{Calls: []script.Call{{Name: name, Args: json.RawMessage(args)}}}
}

// proposes returns a plan of one task whose side effect needs approval.
func proposes(title string) script.Turn {
	return calls("propose_plan", fmt.Sprintf(
		`{"tasks":[{"title":%q,"goal":"Bob knows.","tools":["mail"],"effects":["mail"]}],"questions":["Why?"]}`, title))
}

var (
	acts = calls("mail", `{"to":["bob@x.org"],"text":"It is broken.","reasoning":"Bob is to know."}`)
	ends = calls("reflect", `{"is_task_complete":true,"reflection":"He knows.","result":"Mail m1."}`)
)

// wish is the body of a request to plan.
func wish(more string) string {
	return fmt.Sprintf(`{"prompt":"tell bob","repoUrl":"https://github.com/acme/web.git","deadline":%q%s}`,
		time.Now().Add(time.Hour).Format(time.RFC3339), more)
}

func (a answer) is(t testing.TB, status int, values ...string) {
	t.Helper()
	if a.StatusCode != status {
		t.Fatalf("%s instead of %d: %s", a.Status, status, a.body)
	}
	for i := 0; i < len(values); i += 2 {
		if got := a.at(strings.Split(values[i], ".")...); got != values[i+1] {
			t.Fatalf("%s is %q and not %q: %s", values[i], got, values[i+1], a.body)
		}
	}
}

// planned starts a session and waits for its plan.
func (w *env) planned() (id string) {
	w.t.Helper()
	w.model.Then(proposes("Tell him"))
	a := w.send("POST", plansPath, "ana", wish(""))
	a.is(w.t, http.StatusAccepted, "status", "PLANNING")
	w.push()
	return a.at("sessionId")
}

// TestPlan makes a plan over HTTP, refines it, confirms exactly that plan, and executes it.
func TestPlan(t *testing.T) {
	w := newPlans(t)
	id := w.planned()
	path := plansPath + "/" + id
	first := w.send("GET", path, "ana", "")
	first.is(t, 200, "status", "AWAITING_CONFIRMATION", "revision", "1", "tasks.0.title", "Tell him",
		"tasks.0.status", "PENDING", "questions.0", "Why?", "approvals.0.kind", "plan", "repoUrl",
		"https://github.com/acme/web")
	if first.at("planHash") != first.at("approvals", "0", "argsHash") || first.at("planHash") == "" ||
		!strings.Contains(first.at("rawPlan"), `"title":"Tell him"`) {
		t.Errorf("the plan that waits is %s", first.body)
	}
	w.model.Then(proposes("Write to him"))
	w.send("POST", path+"/refine", "ana", `{"refinementPrompt":"in writing","planHash":"`+first.at("planHash")+`"}`).
		is(t, 202, "status", "PLANNING")
	w.push()
	second := w.send("GET", path, "ana", "")
	second.is(t, 200, "status", "AWAITING_CONFIRMATION", "revision", "2", "tasks.0.title", "Write to him")
	for hash, want := range map[string]string{"": "400 planHash", first.at("planHash"): "409 "} {
		a := w.send("POST", path+"/execute", "ana", `{"planHash":"`+hash+`"}`)
		if got := fmt.Sprint(a.StatusCode, " ", a.at("error", "field")); got != want {
			t.Errorf("the hash %q is answered %s: %s", hash, got, a.body)
		}
	}
	w.model.Then(acts, ends)
	hash, card := second.at("planHash"), first.at("approvals", "0", "approvalId")
	w.send("POST", path+"/execute", "ana", `{"planHash":"`+hash+`","approvalId":"`+card+`"}`).
		is(t, 409, "error.code", "stale_view") // the hash of another card
	yes := `{"planHash":"` + hash + `","approvalId":"` + second.at("approvals", "0", "approvalId") + `"}`
	w.send("POST", path+"/execute", "ana", yes).is(t, 202, "status", "EXECUTING")
	w.send("POST", path+"/execute", "ana", yes).is(t, 202, "status", "EXECUTING") // a repeat gets the same response
	w.push()
	asks := w.send("GET", path, "ana", "")
	asks.is(t, 200, "status", "EXECUTING", "approvals.0.tool", "mail", "log.0.reason", "Bob is to know.")
	w.send("POST", "/api/agent/approvals/resolve", "ana", `{"approvalId":"`+asks.at("approvals", "0", "approvalId")+
		`","decision":"approve_once"}`).is(t, 200)
	w.push()
	over := w.send("GET", path, "ana", "")
	over.is(t, 200, "status", "COMPLETED", "tasks.0.status", "COMPLETED", "tasks.0.result", "Mail m1.",
		"log.0.executionStatus", "succeeded")
	if len(w.sent) != 1 || !strings.Contains(over.at("tasks", "0", "rawReactHistory"), "Bob is to know.") {
		t.Errorf("%v was sent, and it ended as %s", w.sent, over.body)
	}
	w.send("GET", plansPath, "ana", "").is(t, 200, "sessions.0.sessionId", id, "sessions.0.status", "COMPLETED")
	w.send("POST", path+"/refine", "ana", `{"refinementPrompt":"again"}`).is(t, 409, "error.code", "already_resolved")
}

// TestPlanOfAnother checks that a stranger's request is answered as not found, and a disabled user's is refused.
func TestPlanOfAnother(t *testing.T) {
	w := newPlans(t)
	id := w.planned()
	missing := w.send("GET", plansPath+"/abcdefghijklmnop", "eve", "")
	hash := w.send("GET", plansPath+"/"+id, "ana", "").at("planHash")
	for _, r := range [][3]string{{"GET", "", ""}, {"POST", "/refine", `{"refinementPrompt":"x"}`},
		{"POST", "/execute", `{"planHash":"` + hash + `"}`}, {"DELETE", "/grants/g1", ""}} {
		a := w.send(r[0], plansPath+"/"+id+r[1], "eve", r[2])
		a.is(t, 404, "error.code", missing.at("error", "code"), "error.message", missing.at("error", "message"))
	}
	w.send("GET", plansPath, "eve", "").is(t, 200, "sessions.0", "")
	w.disable("ana")
	for _, path := range []string{"", "/" + id} {
		w.send("GET", plansPath+path, "ana", "").is(t, 401)
	}
	w.send("POST", plansPath, "ana", wish("")).is(t, 401)
}

// TestPlanRefused checks that the error of each invalid request names the field.
func TestPlanRefused(t *testing.T) {
	w := newPlans(t)
	id := w.planned()
	for _, r := range [][3]string{
		{"", wish(`,"threadId":"x"`), "threadId"},
		{"", wish(`,"continueFrom":"x"`), "continueFrom"},
		{"", wish(`,"continueFrom":"` + id + `"`), "continueFrom"},
		{"", wish(`,"timeZone":"Mars/Olympus"`), "timeZone"},
		{"", wish(`,"more":1`), "more"},
		{"", `{"prompt":"x","repoUrl":"https://github.com/acme/web?x","deadline":"2030-01-01T00:00:00Z"}`, "repoUrl"},
		{"", strings.Replace(wish(""), "T", " ", 1), "deadline"},
		{"/" + id + "/refine", `{"refinementPrompt":" "}`, "refinementPrompt"},
		{"/" + id + "/refine", `{"refinementPrompt":"x","planHash":""}`, "planHash"},
		{"/" + id + "/execute", `{}`, "planHash"},
		{"/x/execute", `{"planHash":"x"}`, "sessionId"},
	} {
		w.send("POST", plansPath+r[0], "ana", r[1]).is(t, 400, "error.field", r[2])
	}
	hash := w.send("GET", plansPath+"/"+id, "ana", "").at("planHash")
	w.send("POST", plansPath+"/"+id+"/execute", "ana", `{"planHash":"`+hash+`","editedPlan":{"tasks":[]}}`).
		is(t, 400, "error.field", "editedPlan/tasks")
	a := w.send("POST", "/api/agent/run", "ana", `{"prompt":"x","agent":"planner"}`)
	if a.is(t, 400, "error.field", "agent"); !strings.Contains(a.at("error", "message"), "/plans") {
		t.Errorf("a run of the planner is answered %s", a.body)
	}
	w.api.Plans = nil
	w.send("GET", plansPath, "ana", "").is(t, 404)
}

// moving sends a request while another one advances the session.
func (w *env) moving(send func() answer) answer {
	w.t.Helper()
	asked := make(chan struct{}, 1)
	w.mu.Lock()
	w.onResume = func(queue.Message) {
		select {
		case asked <- struct{}{}:
		default:
		}
	}
	w.mu.Unlock()
	ctx, cancel := context.WithTimeout(w.t.Context(), await.Most)
	defer cancel()
	moved := make(chan struct{})
	go func() {
		defer close(moved)
		select {
		case <-asked:
			w.push()
		case <-ctx.Done():
			w.t.Error("nobody was asked to move the session")
		}
	}()
	a := send()
	<-moved
	return a
}

// TestPlanKeyAndWait checks that one key starts one session, and that a request waits until the session rests if the
// client prefers that, for at most 300 s.
func TestPlanKeyAndWait(t *testing.T) {
	w := newPlans(t)
	w.api.Budget = time.Hour
	body, key, prefer := wish(""), header("Idempotency-Key", "one"), header("Prefer", "wait=400")
	w.model.Then(proposes("Tell him"))
	a := w.moving(func() answer { return w.send("POST", plansPath, "ana", body, key, prefer) })
	a.is(t, 200, "status", "AWAITING_CONFIRMATION",
		"summary", "Waiting for your approval: "+a.at("approvals", "0", "preview", "title"))
	if got := a.Header.Get("Preference-Applied"); got != "wait=300" {
		t.Errorf("the preference was applied as %q", got)
	}
	w.send("POST", plansPath, "ana", body, key).is(t, 200, "sessionId", a.at("sessionId"))
	w.send("POST", plansPath, "ana", wish(`,"locale":"de"`), key).is(t, 409, "error.code", "idempotency_key_reused")
	path := plansPath + "/" + a.at("sessionId")
	w.model.Then(proposes("Write to him"))
	a = w.moving(func() answer {
		return w.send("POST", path+"/refine", "ana", `{"refinementPrompt":"in writing"}`, prefer)
	})
	a.is(t, 200, "status", "AWAITING_CONFIRMATION", "revision", "2")
	w.model.Then(acts)
	w.moving(func() answer {
		return w.send("POST", path+"/execute", "ana", `{"planHash":"`+a.at("planHash")+`"}`, prefer)
	}).is(t, 200, "status", "EXECUTING", "approvals.0.tool", "mail")
}

// TestPlanInLines streams a plan from its confirmation on, and continues when the function's time is up. No event is
// missing or repeated.
func TestPlanInLines(t *testing.T) {
	w := newPlans(t)
	id := w.planned()
	path := plansPath + "/" + id + "/execute"
	yes := `{"planHash":"` + w.send("GET", plansPath+"/"+id, "ana", "").at("planHash") + `","strict":true}`
	lines := header("Accept", "application/x-ndjson")
	w.send("POST", path, "ana", `{"planHash":"0"}`, lines).is(t, 409, "error.code", "stale_view")
	w.api.Budget = 15 * time.Second // ten seconds of it are reserved for the end
	w.model.Then(acts)
	cut := w.moving(func() answer { return w.send("POST", path, "ana", yes, lines) })
	events := numbered(t, cut)
	last := events[len(events)-1]
	if events[0].Type != "plan.confirmed" || last.Type != "continue" || last.After != events[len(events)-2].Seq {
		t.Fatalf("the stream was %s", cut.body)
	}
	if !strings.Contains(string(cut.body), `"strict":true`) {
		t.Errorf("the plan was confirmed as %s", cut.body)
	}
	card := w.send("GET", plansPath+"/"+id, "ana", "").at("approvals", "0", "approvalId")
	w.model.Then(ends)
	w.send("POST", "/api/agent/approvals/resolve", "ana", `{"approvalId":"`+card+`","decision":"approve_once"}`)
	w.push()
	rest := numbered(t, w.send("GET", fmt.Sprintf("/api/agent/runs/%s/events?after=%d", id, last.After), "ana", ""))
	whole := w.send("POST", path, "ana", yes, lines)
	seq := events[0].Seq
	for i, e := range slices.Concat(events[:len(events)-1], rest) {
		if e.Seq != seq+int64(i) {
			t.Fatalf("event %d stands where %d should be", e.Seq, seq+int64(i))
		}
	}
	if all := numbered(t, whole); len(all) != len(events)-1+len(rest) || all[len(all)-1].Type != "run.ended" {
		t.Errorf("the whole stream was %s", whole.body)
	}
}

type planLine struct {
	Seq, After int64
	Type       string
}

// numbered returns the lines of a stream without its pings.
func numbered(t *testing.T, a answer) (lines []planLine) {
	t.Helper()
	for line := range strings.Lines(string(a.body)) {
		var l planLine
		if err := json.Unmarshal([]byte(line), &l); err != nil {
			t.Fatal(err)
		}
		if l.Type != "ping" {
			lines = append(lines, l)
		}
	}
	return lines
}

// TestPlanAtTheInbox decides a plan through the general route for approvals.
func TestPlanAtTheInbox(t *testing.T) {
	w := newPlans(t)
	id := w.planned()
	card := w.send("GET", "/api/agent/approvals/pending", "ana", "")
	card.is(t, 200, "approvals.0.kind", "plan")
	decide := func(rest string) answer {
		return w.send("POST", "/api/agent/approvals/resolve", "ana",
			`{"approvalId":"`+card.at("approvals", "0", "approvalId")+`",`+rest+`}`)
	}
	hash := `,"argsHash":"` + card.at("approvals", "0", "argsHash") + `"`
	decide(`"decision":"approve_once"`).is(t, 400, "error.field", "argsHash")
	decide(`"decision":"refine"`).is(t, 400, "error.field", "comment")
	decide(`"decision":"reject","strict":true`).is(t, 400, "error.field", "strict")
	decide(`"decision":"refine","comment":"`+strings.Repeat("x", planner.MaxPrompt+1)+`"`).
		is(t, 400, "error.field", "comment")
	w.model.Then(proposes("Write to him"))
	decide(`"decision":"refine","comment":"`+strings.Repeat("x", planner.MaxPrompt)+`"`+hash).is(t, 200)
	w.push()
	decide(`"decision":"approve_once"`+hash).is(t, 409, "error.code", "stale_view")
	card = w.send("GET", "/api/agent/approvals/pending", "ana", "")
	hash = `,"argsHash":"` + card.at("approvals", "0", "argsHash") + `"`
	decide(`"decision":"approve_with_edits","editedArgs":{"tasks":[{"title":"Tell bob","goal":"x","tools":["mail"],`+
		`"effects":["mail"]}]},"strict":true`+hash).is(t, 200)
	w.send("GET", plansPath+"/"+id, "ana", "").is(t, 200, "status", "EXECUTING", "tasks.0.title", "Tell bob")
	w.send("POST", "/api/agent/runs/"+id+"/cancel", "ana", "{}")
	w.push()
	events := w.send("GET", "/api/agent/runs/"+id+"/events?after=0", "ana", "")
	if !strings.Contains(string(events.body), `"strict":true`) {
		t.Errorf("the yes was not strict: %s", events.body)
	}
}
