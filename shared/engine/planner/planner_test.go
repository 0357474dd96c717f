package planner_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/countersign-run/countersign/shared/agent/plan"
	"github.com/countersign-run/countersign/shared/agent/registry"
	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/engine/loop"
	"github.com/countersign-run/countersign/shared/engine/planner"
	"github.com/countersign-run/countersign/shared/engine/queue"
	"github.com/countersign-run/countersign/shared/engine/unit"
	"github.com/countersign-run/countersign/shared/store/memory"
	"github.com/countersign-run/countersign/shared/testkit/fields"
	"github.com/countersign-run/countersign/shared/testkit/script"
)

// messages is a queue that stores the newest message.
type messages struct{ last chan queue.Message }

func (m messages) Resume(_ context.Context, msg queue.Message) error {
	select {
	case <-m.last:
	default:
	}
	m.last <- msg
	return nil
}

func (messages) Close() error { return nil }

type made struct {
	URL string `json:"html_url"`
}

type wanted struct {
	Owner string `json:"owner"`
	Repo  string `json:"repo"`
	Title string `json:"title"`
}

// newPlanner returns a planner with a memory store, and a function that advances its sessions.
func newPlanner(t *testing.T, turns ...script.Turn) (*planner.Planner, func()) {
	t.Helper()
	issue := tool.Define(tool.Def[wanted, made]{Name: "issue", Description: "Opens an issue.", SideEffect: true,
		Pinned:  func(in wanted) any { return map[string]string{"owner": in.Owner, "repo": in.Repo} },
		Preview: func(in wanted) tool.Preview { return tool.Preview{Title: "Open " + in.Title} },
		Place: func(context.Context, tool.Scope) (tool.Place, error) {
			return tool.Place{Label: "Account", Name: "ana-dev", ID: "7"}, nil
		},
		Execute: func(_ context.Context, _ tool.Call, in wanted) (made, error) {
			if in.Title == "In doubt" {
				return made{}, tool.Ambiguous(errors.New("the connection was cut"))
			}
			return made{"https://github.com/" + in.Owner + "/" + in.Repo + "/issues/1"}, nil
		}})
	agent := &registry.Agent{Name: run.Planner, Instructions: registry.Text("You plan."), Plans: true,
		Order: registry.Strict, OnReject: registry.RejectContinues,
		Limits: registry.Limits{ModelCalls: 200, ApprovalTTL: 24 * time.Hour,
			Deadline: time.Hour, ModelTimeout: time.Minute, ToolTimeout: time.Minute}}
	q := messages{make(chan queue.Message, 1)}
	l := loop.New(unit.Env{Store: memory.New(time.Now), Queue: q, Model: script.New(turns...),
		Tools: tool.NewSet(issue), Agents: registry.Set{run.Planner: agent}, Now: time.Now})
	move := func() {
		for {
			select {
			case m := <-q.last:
				if _, err := l.Resume(context.Background(), m, nil); err != nil {
					t.Fatal(err)
				}
			default:
				return
			}
		}
	}
	return &planner.Planner{Loop: l, GitHubURL: "https://github.com", MaxDeadline: 7 * 24 * time.Hour}, move
}

func call(name, args string) script.Turn {
	return script.Turn{Calls: []script.Call{{Name: name, Args: json.RawMessage(args)}}}
}

const proposal = `{"tasks":[{"title":"Open it","goal":"It is open.","tools":["issue"],"effects":["issue"]}],` +
	`"grants":[{"tool":"issue","target":{"owner":"acme","repo":"web"},"maxCalls":1}],"questions":["Which label?"]}`

func start(t *testing.T, p *planner.Planner, o planner.StartOptions) *run.View {
	t.Helper()
	if o.Prompt == "" {
		o.Prompt = "open an issue"
	}
	o.UID, o.RepoURL = "ana", "https://github.com/acme/web.git"
	o.Deadline = time.Now().Add(time.Hour).Format(time.RFC3339)
	v, err := p.StartPlanning(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func view(t *testing.T, v *run.View) *planner.Session {
	t.Helper()
	s, err := planner.View(v, v.Waiting)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestSeedInterface makes, refines and executes a plan with the three functions of the seed.
func TestSeedInterface(t *testing.T) {
	p, move := newPlanner(t, call("propose_plan", proposal),
		call("propose_plan", strings.Replace(proposal, "Open it", "Open one", 1)),
		call("issue", `{"owner":"acme","repo":"web","title":"Broken","reasoning":"It is what is wanted."}`),
		call("reflect", `{"is_task_complete":true,"reflection":"It is open.","result":"Issue 1."}`))
	ctx := context.Background()
	s := view(t, start(t, p, planner.StartOptions{}))
	if len(s.Tasks) != 1 || len(s.Approvals) != 1 || len(s.Questions) != 1 {
		t.Fatalf("%d tasks, %d approvals, %d questions; want 1 of each", len(s.Tasks), len(s.Approvals),
			len(s.Questions))
	}
	fields.Check(t, *s, planner.Session{Status: plan.StatusAwaiting, Revision: 1, PlanHash: s.Approvals[0].ArgsHash,
		RawPlan: string(s.Approvals[0].Args)})
	if _, err := p.RefinePlan(ctx, planner.RefineOptions{UID: "ana", SessionID: s.SessionID,
		RefinementPrompt: "call it one"}); err != nil {
		t.Fatal(err)
	}
	move()
	v, err := p.Get(ctx, "ana", s.SessionID)
	if err != nil {
		t.Fatal(err)
	}
	revised := view(t, v)
	if revised.Revision != 2 || revised.PlanHash == s.PlanHash || revised.Tasks[0].Title != "Open one" {
		t.Errorf("refined session: %+v", revised)
	}
	_, err = p.Confirm(ctx, planner.ExecuteOptions{UID: "ana", SessionID: s.SessionID, PlanHash: s.PlanHash})
	if !fault.Is(err, fault.Policy, fault.CodeStaleView) {
		t.Errorf("an older revision was confirmed: %v", err)
	}
	v, err = p.Confirm(ctx, planner.ExecuteOptions{UID: "ana", SessionID: s.SessionID, PlanHash: revised.PlanHash})
	if err != nil {
		t.Fatal(err)
	}
	_, err = p.Confirm(ctx, planner.ExecuteOptions{UID: "ana", SessionID: s.SessionID, PlanHash: s.PlanHash})
	if !fault.Is(err, fault.Policy, fault.CodeStaleView) {
		t.Errorf("an older revision, after the confirmation of another: %v", err)
	}
	if _, err = p.Confirm(ctx, planner.ExecuteOptions{UID: "ana", SessionID: s.SessionID,
		PlanHash: revised.PlanHash}); err != nil {
		t.Errorf("the repeated confirmation: %v", err)
	}
	move()
	if v, err = p.Wait(ctx, "ana", v); err != nil {
		t.Fatal(err)
	}
	over := view(t, v)
	if over.Status != plan.StatusCompleted || len(over.Artifacts) != 1 || len(over.Log) != 1 {
		t.Fatalf("%s with artifacts %q and log %+v; want completed with one of each", over.Status, over.Artifacts,
			over.Log)
	}
	if over.Log[0].GrantID != "g1" || over.Grants[0].Used != 1 {
		t.Errorf("the call used the grant %q, and g1 is used %d times; want once", over.Log[0].GrantID,
			over.Grants[0].Used)
	}
	const grant, reason = "May make 1 call of issue in acme/web until ", `"reason":"It is what is wanted."`
	if words := over.Grants[0].Words; !strings.HasPrefix(words, grant) {
		t.Errorf("the grant is %q; want the beginning %q", words, grant)
	}
	if history := over.Tasks[0].RawReactHistory; !strings.Contains(history, reason) {
		t.Errorf("the history is %s; want %s in it", history, reason)
	}
	_, err = p.RefinePlan(ctx, planner.RefineOptions{UID: "ana", SessionID: s.SessionID, RefinementPrompt: "another"})
	if !fault.Is(err, fault.Policy, fault.CodeAlreadyResolved) {
		t.Errorf("a plan was refined after its confirmation: %v", err)
	}
	listed, err := p.List(ctx, "ana")
	if err != nil || len(listed) != 1 || listed[0].Status != plan.StatusCompleted ||
		listed[0].Prompt != "open an issue" {
		t.Errorf("list %+v: %v", listed, err)
	}
	if listed, err := p.List(ctx, "eve"); err != nil || len(listed) != 0 {
		t.Errorf("another user's list has %+v: %v", listed, err)
	}
}

// TestContinue proposes the unfinished tasks of a session as the first revision of another session, without a model
// call.
func TestContinue(t *testing.T) {
	p, _ := newPlanner(t, call("propose_plan", proposal))
	ctx := context.Background()
	first := start(t, p, planner.StartOptions{})
	o := planner.StartOptions{UID: "ana", Prompt: "go on", RepoURL: "https://github.com/acme/web",
		Deadline: time.Now().Add(time.Hour).Format(time.RFC3339), ContinueFrom: first.RunID}
	if _, err := p.StartPlanning(ctx, o); err == nil || fault.As(err).Field != "continueFrom" {
		t.Errorf("a session in progress was continued: %v", err)
	}
	s := view(t, first)
	if _, err := p.Confirm(ctx, planner.ExecuteOptions{UID: "ana", SessionID: first.RunID,
		PlanHash: s.PlanHash}); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Loop.Cancel(ctx, "ana", first.RunID); err != nil {
		t.Fatal(err)
	}
	again := view(t, start(t, p, planner.StartOptions{Prompt: "go on", ContinueFrom: first.RunID}))
	proposed(t, again, "Open it")
	yes := planner.ExecuteOptions{UID: "ana", SessionID: again.SessionID, PlanHash: again.PlanHash}
	if _, err := p.Confirm(ctx, yes); err != nil {
		t.Errorf("the first confirmation of a plan that the server proposes: %v", err)
	}
	o.UID = "eve"
	if _, err := p.StartPlanning(ctx, o); !fault.Is(err, fault.Auth, fault.CodeNotFound) {
		t.Errorf("another user's session was continued: %v", err)
	}
}

// TestContinueUnconfirmed proposes a plan again that was not confirmed when its session ended.
func TestContinueUnconfirmed(t *testing.T) {
	p, _ := newPlanner(t, call("propose_plan", proposal))
	first := start(t, p, planner.StartOptions{})
	if _, err := p.Loop.Cancel(context.Background(), "ana", first.RunID); err != nil {
		t.Fatal(err)
	}
	again := view(t, start(t, p, planner.StartOptions{Prompt: "go on", ContinueFrom: first.RunID}))
	proposed(t, again, "Open it")
}

// proposed checks that a continued session proposes tasks with these titles, without grants and without a model call.
func proposed(t *testing.T, s *planner.Session, titles ...string) {
	t.Helper()
	var got []string
	for _, task := range s.Tasks {
		got = append(got, task.Title)
	}
	if s.Status != plan.StatusAwaiting || !slices.Equal(got, titles) {
		t.Errorf("%s with the tasks %q; want %s with %q", s.Status, got, plan.StatusAwaiting, titles)
	}
	if len(s.Grants) != 0 || s.ModelCalls != 0 {
		t.Errorf("%d model calls and the grants %+v; want none", s.ModelCalls, s.Grants)
	}
}

// TestOverWithoutPlan distinguishes a session that has ended without a plan from one whose plan is still being made.
func TestOverWithoutPlan(t *testing.T) {
	p, move := newPlanner(t, call("propose_plan", proposal))
	ctx := context.Background()
	s := view(t, start(t, p, planner.StartOptions{}))
	if _, err := p.RefinePlan(ctx, planner.RefineOptions{UID: "ana", SessionID: s.SessionID,
		RefinementPrompt: "smaller"}); err != nil {
		t.Fatal(err)
	}
	_, err := p.Confirm(ctx, planner.ExecuteOptions{UID: "ana", SessionID: s.SessionID, PlanHash: s.PlanHash})
	if !fault.Is(err, fault.Policy, fault.CodeNotWaiting) {
		t.Errorf("while another plan is being made: %v", err)
	}
	if _, err := p.Loop.Cancel(ctx, "ana", s.SessionID); err != nil {
		t.Fatal(err)
	}
	move()
	_, err = p.Confirm(ctx, planner.ExecuteOptions{UID: "ana", SessionID: s.SessionID, PlanHash: s.PlanHash})
	if !fault.Is(err, fault.Policy, fault.CodeAlreadyResolved) {
		t.Errorf("after its end: %v", err)
	}
}

// TestRefused checks that the error for each invalid field has the field's name.
func TestRefused(t *testing.T) {
	p, _ := newPlanner(t)
	good := planner.StartOptions{UID: "ana", Prompt: "x", RepoURL: "https://github.com/acme/web",
		Deadline: time.Now().Add(time.Hour).Format(time.RFC3339)}
	for field, change := range map[string]func(*planner.StartOptions){
		"prompt":   func(o *planner.StartOptions) { o.Prompt = "  " },
		"repoUrl":  func(o *planner.StartOptions) { o.RepoURL = "http://github.com/acme/web" },
		"deadline": func(o *planner.StartOptions) { o.Deadline = "tomorrow" },
	} {
		o := good
		change(&o)
		if _, err := p.StartPlanning(context.Background(), o); err == nil || fault.As(err).Field != field {
			t.Errorf("invalid %s: %v", field, err)
		}
	}
	p.Repository = func(context.Context, string, plan.Repo) (planner.Repository, error) {
		return planner.Repository{}, fault.New(fault.Auth, fault.CodeReauth, "Please link your GitHub account.")
	}
	if _, err := p.StartPlanning(context.Background(), good); !fault.Is(err, fault.Auth, fault.CodeReauth) {
		t.Errorf("a user without a linked account: %v", err)
	}
}

// TestEditOfOneRevision repeats an edit. With the hash of the edited revision, it gets the same answer. With the hash
// of an older revision, it is refused, although it would confirm the same plan.
func TestEditOfOneRevision(t *testing.T) {
	p, move := newPlanner(t, call("propose_plan", proposal),
		call("propose_plan", strings.Replace(proposal, "Open it", "Open one", 1)))
	ctx := context.Background()
	older := view(t, start(t, p, planner.StartOptions{}))
	if _, err := p.RefinePlan(ctx, planner.RefineOptions{UID: "ana", SessionID: older.SessionID,
		RefinementPrompt: "call it one"}); err != nil {
		t.Fatal(err)
	}
	move()
	v, err := p.Get(ctx, "ana", older.SessionID)
	if err != nil {
		t.Fatal(err)
	}
	newest := view(t, v)
	edit := func(hash string) error {
		_, err := p.Confirm(ctx, planner.ExecuteOptions{UID: "ana", SessionID: older.SessionID, PlanHash: hash,
			EditedPlan: json.RawMessage(`{"tasks":[{"id":"t1","title":"Open two","goal":"They are open.","tools":["issue"]}]}`)})
		return err
	}
	for _, when := range []string{"before", "after"} {
		if err := edit(older.PlanHash); !fault.Is(err, fault.Policy, fault.CodeStaleView) {
			t.Errorf("an edit of an older revision, %s the confirmation: %v", when, err)
		}
		if err := edit(newest.PlanHash); err != nil {
			t.Errorf("the edit, %s the confirmation: %v", when, err)
		}
	}
}
