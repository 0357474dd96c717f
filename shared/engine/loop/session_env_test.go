package loop_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/countersign-run/countersign/shared/agent/plan"
	"github.com/countersign-run/countersign/shared/agent/registry"
	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/engine/approval"
	"github.com/countersign-run/countersign/shared/engine/loop"
	"github.com/countersign-run/countersign/shared/store/document"
)

// architect is the agent of sessions in these tests.
const architect = "architect"

// addArchitect adds the agent that plans, and an effect that a grant can allow.
func addArchitect(w *env) {
	agent := testAgent(architect, "You are an architect.")
	agent.Plans, agent.Order, agent.OnReject = true, registry.Strict, registry.RejectContinues
	agent.Tools = []string{"lookup", "page", "fetch", "send", "scratch", "issue"}
	agent.Limits.ModelCalls, agent.Limits.MaxAsks = 200, 100
	w.loop.Agents[architect] = agent
	w.loop.Tools["issue"] = w.issue()
}

type issueArgs struct {
	Owner string `json:"owner"`
	Repo  string `json:"repo"`
	Title string `json:"title"`
}

// issue is an effect with a title as its only free text.
func (w *env) issue() *tool.Tool { return tool.Define(w.issueDef("issue")) }

func (w *env) issueDef(name string) tool.Def[issueArgs, sendResult] {
	return tool.Def[issueArgs, sendResult]{
		Name: name, Description: "Opens an issue.", SideEffect: true,
		Targets: func(in issueArgs) []tool.Target {
			return []tool.Target{{Kind: tool.TargetRepository, Value: in.Owner + "/" + in.Repo}}
		},
		Pinned: func(in issueArgs) any {
			return struct {
				Owner string `json:"owner"`
				Repo  string `json:"repo"`
			}{in.Owner, in.Repo}
		},
		Preview: func(in issueArgs) tool.Preview {
			return tool.Preview{Title: fmt.Sprintf("Open %q in %s/%s", in.Title, in.Owner, in.Repo)}
		},
		Summary: func(in issueArgs) string { return "Opened an issue in " + in.Owner + "/" + in.Repo + "." },
		Execute: func(_ context.Context, c tool.Call, in issueArgs) (sendResult, error) {
			return w.effect(c, sendArgs{To: []string{in.Owner + "/" + in.Repo}, Text: in.Title})
		},
		Reconcile: func(context.Context, tool.Call, issueArgs) (tool.Verdict, sendResult, string, error) {
			w.mu.Lock()
			defer w.mu.Unlock()
			if len(w.settle) == 0 {
				return tool.Unknown, sendResult{}, "The list may lag.", nil
			}
			v := tool.Verdict(w.settle[0])
			w.settle = w.settle[1:]
			return v, sendResult{}, "", nil
		},
	}
}

// wish starts a session for the scenario's user.
func (s *scenario) wish(ctx context.Context, prompt string) (*run.View, error) {
	within := 48 * time.Hour
	if first, rest, _ := strings.Cut(prompt, " "); rest != "" {
		if d, err := time.ParseDuration(first); err == nil {
			within, prompt = d, rest
		}
	}
	req, in := s.session(prompt, within)
	if s.state != "" {
		in.State = s.state
	}
	return s.loop.Start(ctx, req, in)
}

func (w *env) session(prompt string, within time.Duration) (loop.StartRequest, loop.Session) {
	return loop.StartRequest{UID: "ana", Agent: architect}, loop.Session{Prompt: prompt, Session: run.Session{
		Repo: "https://github.com/acme/web", Deadline: w.clock().Add(within).UTC(), State: "README: a site"}}
}

// confirm parses "<n> [strict]", "<n> {edited plan}" or "<n> hash <hash>". n is the approval's number within the run.
func (s *scenario) confirm(ctx context.Context, rest string) (*run.View, error) {
	n, how, _ := strings.Cut(rest, " ")
	i, err := strconv.Atoi(n)
	if err != nil {
		s.t.Fatal(err)
	}
	r := approval.Resolution{UID: s.uid, ApprovalID: run.ApprovalID(s.run, i), Decision: run.ApproveOnce}
	r.ArgsHash = s.approval(r.ApprovalID).ArgsHash
	switch hash, given := strings.CutPrefix(how, "hash "); {
	case given:
		r.ArgsHash = strings.TrimSpace(hash)
	case how == "strict":
		r.Strict = true
	case how != "":
		r.Decision, r.EditedArgs = run.ApproveEdited, json.RawMessage(how)
	}
	return s.loop.Resolve(ctx, r)
}

// approval returns a stored approval.
func (w *env) approval(id string) (ap run.Approval) {
	w.t.Helper()
	docs, err := w.store.Get(context.Background(), document.ApprovalPath(id))
	if err == nil {
		err = document.Decode(docs[0], &ap)
	}
	if err != nil {
		w.t.Fatal(err)
	}
	return ap
}

// planned prints the recorded session.
func (s *scenario) planned(ctx context.Context) {
	p := s.sessionOf(ctx, s.run)
	s.say("%s, revision %d", p.Status(), p.Revision)
	for _, t := range p.Tasks {
		line := fmt.Sprintf("%s %s: %s", t.ID, t.Title, t.Status)
		for _, more := range []string{t.Result, t.Error} {
			if more != "" {
				line += " (" + more + ")"
			}
		}
		s.say("%s", line)
	}
	for _, g := range p.Grants() {
		s.say("%s %s %s: %d of %d used, taken back: %v", g.ID, g.Tool, g.Target, g.Used, g.MaxCalls, g.Revoked)
	}
}

func (w *env) sessionOf(ctx context.Context, id string) *plan.Session {
	w.t.Helper()
	_, events, err := w.loop.Get(ctx, "ana", id)
	if err != nil {
		w.t.Fatal(err)
	}
	state, err := run.Fold(events)
	if err != nil {
		w.t.Fatal(err)
	}
	return state.Plan
}

// card prints the card of the waiting plan.
func (s *scenario) card() {
	for _, a := range s.open(s.uid) {
		if a.Kind != run.KindPlan {
			continue
		}
		s.say("%s: %s", a.Kind, a.Preview.Title)
		for _, f := range a.Preview.Fields {
			s.say("  %s: %s", f.Label, strings.ReplaceAll(f.Value, "\n", " / "))
		}
		for _, warning := range a.Preview.Warnings {
			s.say("  careful: %s", warning)
		}
		s.findings(a)
		s.say("  %v", a.Decisions)
	}
}

// findings prints the findings on a card.
func (s *scenario) findings(a run.ApprovalView) {
	for _, f := range a.Findings {
		s.say("   %s from %q: %s", f.Reason, f.Origin, f.Text)
	}
}

// planLine returns the text of a session's event, without the texts in it.
func planLine(e plan.Event) string {
	switch {
	case e.Closed != nil:
		return string(e.Closed.How)
	case e.Started != nil:
		return e.Started.TaskID
	case e.Reflected != nil && e.Reflected.Refused != "":
		return e.Reflected.TaskID + " refused"
	case e.Reflected != nil:
		return e.Reflected.TaskID
	case e.Finished != nil:
		return e.Finished.TaskID + " " + string(e.Finished.Status)
	case e.Revoked != nil:
		return e.Revoked.GrantID
	case e.Changed != nil:
		var all []string
		for _, c := range e.Changed.Changes {
			id := c.TaskID
			if c.Task != nil {
				id = c.Task.ID
			}
			all = append(all, string(c.Op)+" "+id)
		}
		return strings.Join(all, ", ")
	}
	return ""
}
