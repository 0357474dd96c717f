package loop_test

import (
	"context"
	"strings"
	"testing"

	"github.com/countersign-run/countersign/shared/agent/model"
	"github.com/countersign-run/countersign/shared/agent/policy"
	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/engine/loop"
	"github.com/countersign-run/countersign/shared/testkit/script"
)

// TestAdvanceWithoutCaller cancels the context of the caller that advances a run, in each kind of step. The step in
// progress is finished or repeated, nothing is done twice, no time of a lease is lost, and the run ends in the same way
// as without the cancellation.
func TestAdvanceWithoutCaller(t *testing.T) {
	sending := script.Turn{Calls: []script.Call{{Name: "send", Args: map[string]any{"to": []string{"bob@x.org"},
		"text": "hello"}}}}
	reading := script.Turn{Calls: []script.Call{{Name: "read"}}}
	for name, c := range map[string]struct {
		turns  []script.Turn // while the caller is there
		then   []script.Turn // afterwards
		during string        // the step in which the caller leaves
		want   string
	}{
		"the model's call": {turns: []script.Turn{{Text: "never heard"}}, then: []script.Turn{{Text: "Well."}},
			during: "model", want: ""},
		"an effect": {turns: []script.Turn{sending}, then: []script.Turn{{Text: "Well."}}, during: "send",
			want: "send bob@x.org: hello"},
		"a call that can be cut short": {turns: []script.Turn{reading}, then: []script.Turn{{Text: "Well."}},
			during: "read", want: "read, read"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newEnv(t)
			ctx, leave := context.WithCancel(t.Context())
			leaveIn := func(acting context.Context, step string) {
				if step == c.during && ctx.Err() == nil {
					leave()
					if step != "send" {
						<-acting.Done()
					}
				}
			}
			w.assistant().Effects = policy.AutoApprove
			send := w.sendDef("send")
			send.Execute = func(ctx context.Context, call tool.Call, in sendArgs) (sendResult, error) {
				leaveIn(ctx, "send")
				if err := ctx.Err(); err != nil {
					return sendResult{}, err
				}
				return w.effect(call, in)
			}
			w.loop.Tools = tool.NewSet(tool.Define(send), tool.Define(tool.Def[struct{}, lookupResult]{Name: "read",
				Description: "Reads.", Interruptible: true,
				Execute: func(ctx context.Context, _ tool.Call, _ struct{}) (lookupResult, error) {
					w.did("read")
					leaveIn(ctx, "read")
					return lookupResult{Found: "it"}, ctx.Err()
				}}))
			c.turns[0].Hook = func(ctx context.Context, _ model.Request) { leaveIn(ctx, "model") }
			w.model.Restart(c.turns...)
			v, err := w.loop.Start(ctx, loop.StartRequest{UID: "ana"}, loop.Prompt{Text: "go"})
			if err != nil || v.Status == run.Completed || v.Status == run.Failed || ctx.Err() == nil {
				t.Fatalf("left with %+v, %v", v, err)
			}
			w.model.Restart(c.then...)
			v, err = w.loop.Advance(t.Context(), v.RunID, nil)
			if err != nil || v.Status != run.Completed || v.Summary != "Well." {
				t.Fatalf("%+v, %v; want v.Status %v, v.Summary “Well.”", v, err, run.Completed)
			}
			if did := strings.Join(w.effects, ", "); did != c.want || w.model.Left() != 0 {
				t.Errorf("did %q, and %d turns are left", did, w.model.Left())
			}
		})
	}
}
