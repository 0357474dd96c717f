package loop_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"testing"

	"github.com/countersign-run/countersign/shared/agent/policy"
	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/address"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/base/strictjson"
	"github.com/countersign-run/countersign/shared/engine/approval"
	"github.com/countersign-run/countersign/shared/store"
	"github.com/countersign-run/countersign/shared/store/document"
	"github.com/countersign-run/countersign/shared/testkit/faulty"
)

// asking returns an env in which a run has requested an approval.
func asking(t *testing.T, open func(testing.TB) *env) (*env, *run.View) {
	t.Helper()
	w := open(t)
	w.loop.Model = &asked{tool: "send"}
	v := start(t, w, "tell bob")
	return w, v
}

// edit rewrites a stored document without the loop.
func edit[T any](t *testing.T, w *env, path string, change func(*T)) {
	t.Helper()
	docs, err := w.store.Get(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	var v T
	if err := document.Decode(docs[0], &v); err != nil {
		t.Fatal(err)
	}
	change(&v)
	data, err := strictjson.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.store.Commit(t.Context(), store.Update(path, docs[0].Version, docs[0].Fields, data)); err != nil {
		t.Fatal(err)
	}
}

// kinds returns the kinds of a run's audit entries, in order, with the decision of each.
func (w *env) kinds(t *testing.T, runID string) (kinds []string) {
	t.Helper()
	page, err := w.rec.Audit(t.Context(), "ana", runID, "", 100)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range page.Entries {
		kinds = append(kinds, e.Kind+" "+e.Decision+" "+e.Message)
	}
	return kinds
}

// strict is the tool send under another schema, which refuses the text of the old one.
func strict(w *env, refusesOld bool) *tool.Tool {
	type args struct {
		To   []string `json:"to" jsonschema:"who gets it"`
		Text string   `json:"text" jsonschema:"the words"`
		Loud bool     `json:"loud,omitempty" jsonschema:"in capitals"`
	}
	return tool.Define(tool.Def[args, sendResult]{Name: "send", Description: "Sends a text.", SideEffect: true,
		Normalize: func(in args) (args, error) {
			if refusesOld {
				return in, fault.Invalid("text", "it must be loud")
			}
			return in, nil
		},
		Targets: func(in args) []tool.Target { return tool.Addresses(in.To) },
		Preview: func(in args) tool.Preview { return tool.Preview{Title: "Send loudly " + in.Text} },
		Summary: func(args) string { return "Sent it." },
		Execute: func(_ context.Context, c tool.Call, in args) (sendResult, error) {
			return w.effect(c, sendArgs{To: in.To, Text: in.Text})
		},
	})
}

// TestStaleApprovalReplaced changes the facts behind a waiting approval. Approving it is refused, a present snapshot
// replaces it in the same commit, and approving that one carries out the call.
func TestStaleApprovalReplaced(t *testing.T) {
	tampered := func(change func(*run.Approval)) func(*testing.T, *env, *run.View) {
		return func(t *testing.T, w *env, v *run.View) {
			edit(t, w, document.ApprovalPath(run.ApprovalID(v.RunID, 1)), change)
		}
	}
	for name, c := range map[string]struct {
		change func(*testing.T, *env, *run.View)
		code   fault.Code
	}{
		"arguments": {tampered(func(
			a *run.Approval) {
			a.Args = json.RawMessage(`{"text":"ten","to":["eve@x.org"]}`)
		}), fault.CodeIntegrity},
		"arguments and their hash": {func(t *testing.T, w *env, v *run.View) {
			tampered(func(a *run.Approval) {
				a.Args = json.RawMessage(`{"text":"ten","to":["eve@x.org"]}`)
				a.ArgsHash = run.ArgsHash("ana", w.loop.Tools["send"].Spec, a.Place, a.Args)
			})(t, w, v)
		}, fault.CodeIntegrity},
		"preview": {tampered(func(a *run.Approval) { a.Preview.Title = "Send nothing to nobody" }),
			fault.CodeStaleView},
		"tool":           {tampered(func(a *run.Approval) { a.Tool = "draft" }), fault.CodeIntegrity},
		"policy version": {tampered(func(a *run.Approval) { a.Rule = policy.RuleAllowlisted }), fault.CodeStaleView},
		"policy": {func(t *testing.T, w *env, _ *run.View) {
			p, err := address.ParsePatterns("x.org")
			if err != nil {
				t.Fatal(err)
			}
			w.loop.Rules.AlwaysAsk = p
		}, fault.CodeStaleView},
		"schema": {func(_ *testing.T, w *env, _ *run.View) { w.loop.Tools = tool.NewSet(strict(w, false)) },
			fault.CodeStaleView},
	} {
		t.Run(name, func(t *testing.T) {
			w, v := asking(t, newEnv)
			c.change(t, w, v)
			first := approval.Resolution{UID: "ana", ApprovalID: run.ApprovalID(v.RunID, 1), Decision: run.ApproveOnce}
			for _, want := range []fault.Code{c.code, fault.CodeStaleView} { // after the first refusal it is closed
				if _, err := w.loop.Resolve(t.Context(), first); !fault.Is(err, fault.Policy, want) {
					t.Fatalf("%v, want %s", err, want)
				}
			}
			cards := w.open("ana")
			if len(cards) != 1 || cards[0].ApprovalID != run.ApprovalID(v.RunID, 2) {
				t.Fatalf("these wait: %+v", cards)
			}
			if title := cards[0].Preview.Title; title != `Send "ten" to bob@x.org` && title != "Send loudly ten" {
				t.Errorf("the new card says %s", title)
			}
			if _, err := w.loop.Resolve(t.Context(), approval.Resolution{UID: "ana", ApprovalID: cards[0].ApprovalID,
				Decision: run.ApproveOnce, ArgsHash: cards[0].ArgsHash}); err != nil {
				t.Fatal(err)
			}
			deliver(t, w)
			want := []string{"requested approval ", "refused approve_once " + string(c.code), "requested approval ",
				"refused approve_once stale_view",
				"decided approve_once ", "intent approve_once ", "outcome  "}
			if got := w.kinds(t, v.RunID); !slices.Equal(got, want) {
				t.Errorf("the audit holds\n%q, want\n%q", got, want)
			}
			if !slices.Equal(w.effects, []string{"send bob@x.org: ten"}) {
				t.Errorf("done: %q", w.effects)
			}
		})
	}
}

// TestToolChangedAfterApproval changes the tool between an approval and its call, as a release does. Nothing is done,
// and its user is asked about the call as the tool reads it now. If the call has other arguments than the approved one,
// it fails.
func TestToolChangedAfterApproval(t *testing.T) { onEachStore(t, toolChangedAfterApproval) }

func toolChangedAfterApproval(t *testing.T, open func(testing.TB) *env) {
	for name, tampered := range map[string]bool{"as approved": false, "with other arguments": true} {
		w, v := asking(t, open)
		first := run.ApprovalID(v.RunID, 1)
		if _, err := w.loop.Resolve(t.Context(), approval.Resolution{UID: "ana", ApprovalID: first,
			Decision: run.ApproveOnce}); err != nil {
			t.Fatal(err)
		}
		if tampered {
			edit(t, w, document.RunPath(v.RunID), func(r *run.Run) {
				for i := range r.Log.Tail {
					if p := r.Log.Tail[i].Proposed; p != nil {
						p.Args = json.RawMessage(`{"text":"ten","to":["eve@x.org"]}`)
					}
				}
			})
		}
		w.loop.Tools = tool.NewSet(strict(w, false))
		w.loop.Store = faulty.Wrap(w.store, faulty.Of(func(c *faulty.Call) bool {
			return c.Method == faulty.Get && slices.Equal(c.Paths, []string{document.ApprovalPath(first)})
		}, faulty.Fail(errors.New("the store is down"))))
		if err := w.deliver(t.Context()); err == nil || len(w.effects) > 0 || len(w.open("ana")) > 0 {
			t.Errorf("%s: %v, done: %q; want the store's error and no decision", name, err, w.effects)
		}
		w.loop.Store = w.store
		if _, err := w.loop.Advance(t.Context(), v.RunID, nil); err != nil { // the message comes again
			t.Fatal(err)
		}
		now, _, err := w.loop.Get(t.Context(), "ana", v.RunID)
		if err != nil {
			t.Fatal(err)
		}
		want := fault.CodeStaleView
		if tampered {
			want = fault.CodeIntegrity
		}
		if a := now.Actions[0]; a.ErrorReason != want || a.ExecutionStatus != run.NotStarted ||
			len(w.effects) > 0 {
			t.Errorf("%s: %+v, done: %q; want %s and nothing done", name, a, w.effects, want)
		}
		cards := w.open("ana")
		if tampered {
			if len(cards) > 0 {
				t.Errorf("%s: these wait: %+v; want none", name, cards)
			}
			continue
		}
		if len(cards) != 1 || cards[0].Preview.Title != "Send loudly ten" {
			t.Fatalf("%s: these wait: %+v; want one card of the changed tool", name, cards)
		}
		if _, err := w.loop.Resolve(t.Context(), approval.Resolution{UID: "ana", ApprovalID: cards[0].ApprovalID,
			Decision: run.ApproveOnce, ArgsHash: cards[0].ArgsHash}); err != nil {
			t.Fatal(err)
		}
		deliver(t, w)
		if !slices.Equal(w.effects, []string{"send bob@x.org: ten"}) {
			t.Errorf("%s: done: %q; want one e-mail", name, w.effects)
		}
	}
}

// TestStaleApprovalRefused checks that no new approval is made if its content is unclear, or if the policy denies the
// call. The old approval stays open and can be rejected.
func TestStaleApprovalRefused(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*testing.T, *env, *run.View)
		code   fault.Code
	}{
		"the run's own arguments": {func(t *testing.T, w *env, v *run.View) {
			edit(t, w, document.RunPath(v.RunID), func(r *run.Run) {
				for i := range r.Log.Tail {
					if p := r.Log.Tail[i].Proposed; p != nil {
						p.Args = json.RawMessage(`{"text":"ten","to":["eve@x.org"]}`)
					}
				}
			})
		}, fault.CodeIntegrity},
		"a schema that they do not fit": {func(_ *testing.T, w *env,
			_ *run.View) {
			w.loop.Tools = tool.NewSet(strict(w, true))
		}, fault.CodeStaleView},
		"no such tool any more": {func(_ *testing.T, w *env,
			_ *run.View) {
			w.loop.Tools = tool.NewSet(w.lookup())
		}, fault.CodeStaleView},
		"switched off": {func(_ *testing.T, w *env, _ *run.View) {
			w.loop.Rules.DenySideEffects, w.loop.Tools = true, tool.NewSet(strict(w, false))
		}, "denied"},
	} {
		t.Run(name, func(t *testing.T) {
			w, v := asking(t, newEnv)
			c.change(t, w, v)
			id := run.ApprovalID(v.RunID, 1)
			if _, err := w.loop.Resolve(t.Context(), approval.Resolution{UID: "ana", ApprovalID: id,
				Decision: run.ApproveOnce}); !fault.Is(err, fault.Policy, c.code) {
				t.Fatalf("%v, want %s", err, c.code)
			}
			if cards := w.open("ana"); len(cards) != 1 || cards[0].ApprovalID != id {
				t.Errorf("these wait: %+v", cards)
			}
			if _, err := w.loop.Resolve(t.Context(),
				approval.Resolution{UID: "ana", ApprovalID: id, Decision: run.Reject}); err != nil {
				t.Errorf("it cannot be rejected: %v", err)
			}
		})
	}
}

// TestRefusalsInAudit lets the loser of a race repeat its decision. A few first attempts are in the audit, and a
// repetition of the winner's decision writes nothing.
func TestRefusalsInAudit(t *testing.T) { onEachStore(t, refusedAreOnRecord) }

func refusedAreOnRecord(t *testing.T, open func(testing.TB) *env) {
	w, v := asking(t, open)
	counter := faulty.Count(w.store)
	w.loop.Store = counter
	resolve := func(d run.Decision) error {
		_, err := w.loop.Resolve(t.Context(),
			approval.Resolution{UID: "ana", ApprovalID: run.ApprovalID(v.RunID, 1), Decision: d})
		return err
	}
	if err := resolve(run.Reject); err != nil {
		t.Fatal(err)
	}
	for range 20 {
		if err := resolve(run.ApproveOnce); !fault.Is(err, fault.Policy, fault.CodeAlreadyResolved) {
			t.Fatal(err)
		}
	}
	counter.Take()
	for range 3 {
		if err := resolve(run.Reject); err != nil {
			t.Fatal(err)
		}
	}
	if n := counter.Take().Commit.Trips; n != 0 {
		t.Errorf("repetitions made %d commits", n)
	}
	want := append([]string{"requested approval ", "decided reject "},
		slices.Repeat([]string{"refused approve_once already_resolved"}, 10)...)
	if got := w.kinds(t, v.RunID); !slices.Equal(got, want) {
		t.Errorf("the audit holds\n%q, want\n%q", got, want)
	}
}

// TestRefusalDuringOutage lets the store accept no more writes. The answer is still the right one.
func TestRefusalDuringOutage(t *testing.T) {
	w, v := asking(t, newEnv)
	r := approval.Resolution{UID: "ana", ApprovalID: run.ApprovalID(v.RunID, 1), Decision: run.Reject}
	if _, err := w.loop.Resolve(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	w.loop.Store = faulty.Wrap(w.store, faulty.Commits(faulty.Down))
	r.Decision = run.ApproveOnce
	if _, err := w.loop.Resolve(t.Context(), r); !fault.Is(err, fault.Policy, fault.CodeAlreadyResolved) {
		t.Errorf("%v; want error %v %v", err, fault.Policy, fault.CodeAlreadyResolved)
	}
}
