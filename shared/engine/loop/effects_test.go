package loop_test

import (
	"context"
	"strings"
	"testing"

	"github.com/countersign-run/countersign/shared/agent/policy"
	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/base/address"
	"github.com/countersign-run/countersign/shared/engine/loop"
	"github.com/countersign-run/countersign/shared/store"
	"github.com/countersign-run/countersign/shared/store/audit"
	"github.com/countersign-run/countersign/shared/store/document"
	"github.com/countersign-run/countersign/shared/testkit/faulty"
	"github.com/countersign-run/countersign/shared/testkit/script"
)

// TestEffectsOfAnAgent carries out two effects of one turn in each mode of the agent. The operator denies the address
// of one. The audit names the rule for each.
func TestEffectsOfAnAgent(t *testing.T) {
	denied, err := address.ParsePatterns("x.com")
	if err != nil {
		t.Fatal(err)
	}
	for effects, want := range map[policy.Effects]struct{ done, audit string }{
		policy.AutoApprove: {"send bob@x.org: hello", "denied recipient_denied, intent non_interactive allow, " +
			"outcome non_interactive"},
		policy.NoEffects: {"", "denied recipient_denied, denied no_effects"},
	} {
		ctx, w := context.Background(), newEnv(t)
		w.loop.Rules.Denied = denied
		w.assistant().Effects = effects
		w.model.Then(script.Turn{Calls: []script.Call{
			{Name: "send", Args: map[string]any{"to": []string{"eve@x.com"}, "text": "hello"}},
			{Name: "send", Args: map[string]any{"to": []string{"bob@x.org"}, "text": "hello"}},
		}}, script.Turn{Text: "Well."})
		v, err := w.loop.Start(ctx, loop.StartRequest{UID: "ana"}, loop.Prompt{Text: "write"})
		if err != nil || v.Status != run.Completed || len(w.open("ana")) != 0 {
			t.Errorf("%q: %v %+v; want v.Status %v, len(w.open(\"ana\")) 0", effects, err, v, run.Completed)
			continue
		}
		if done := strings.Join(w.effects, "; "); done != want.done {
			t.Errorf("%q: done: %s", effects, done)
		}
		var said []string
		page, err := w.rec.Audit(ctx, "ana", v.RunID, "", 100)
		if err != nil {
			t.Errorf("%q: %v %+v", effects, err, page)
		}
		for _, e := range page.Entries {
			line := e.Kind + " " + e.Rule
			if e.Kind == audit.Intent {
				line += " " + e.Decision
			}
			said = append(said, line)
		}
		if got := strings.Join(said, ", "); got != want.audit {
			t.Errorf("%q: the audit says %s", effects, got)
		}
	}
}

// TestAutoApproveOfDisabledUser checks that each effect without an approval writes its user's document once. The
// document records the effect, to detect repeated equal calls. An effect is not executed if its user is disabled at the
// last moment.
func TestAutoApproveOfDisabledUser(t *testing.T) {
	onEachStore(t, func(t *testing.T, open func(testing.TB) *env) {
		ctx, w := context.Background(), open(t)
		w.assistant().Effects = policy.AutoApprove
		write := func() *run.View {
			w.model.Then(script.Turn{Calls: []script.Call{{Name: "send",
				Args: map[string]any{"to": []string{"bob@x.org"}, "text": "hello"}}}}, script.Turn{Text: "Well."})
			v := start(t, w, "write")
			return v
		}
		var users int
		intact := w.loop.Store
		w.loop.Store = faulty.Wrap(intact, faulty.Commits(faulty.Before(func(c *faulty.Call) {
			for _, o := range c.Writes {
				if o.Op != store.OpCheck && o.Doc.Path == document.UserPath("ana") {
					users++
				}
			}
		})))
		for range 3 {
			write()
		}
		if users != 3 || len(w.effects) != 3 {
			t.Errorf("%d effects, and the user was written %d times", len(w.effects), users)
		}
		w.loop.Store = faulty.Wrap(intact, faulty.Commits(faulty.Nth(2, faulty.Before(func(*faulty.Call) {
			if _, err := w.rec.SetDisabled(ctx, "ana", true); err != nil {
				t.Error(err)
			}
		}))))
		if v := write(); len(w.effects) != 3 || v.Actions[0].Status != run.ActionFailed {
			t.Errorf("%d effects, %+v", len(w.effects), v.Actions[0])
		}
	})
}
