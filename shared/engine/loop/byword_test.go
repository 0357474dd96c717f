package loop_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/engine/approval"
	"github.com/countersign-run/countersign/shared/engine/loop"
	"github.com/countersign-run/countersign/shared/engine/toolbox"
	"github.com/countersign-run/countersign/shared/testkit/script"
)

// chatting is a conversation with proposals in it.
type chatting struct {
	*env
	t      *testing.T
	thread string
}

func (c *chatting) say(prompt string, turns ...script.Turn) *run.View {
	c.t.Helper()
	c.model.Then(turns...)
	v, err := c.loop.Start(context.Background(), loop.StartRequest{UID: "ana", ThreadID: c.thread},
		loop.Prompt{Text: prompt})
	if err != nil {
		c.t.Fatal(err)
	}
	c.thread = v.ThreadID
	return v
}

// proposes says words of the user to which the model proposes a message to the address.
func (c *chatting) proposes(to string) *run.View {
	c.t.Helper()
	v := c.say("tell "+to, script.Turn{Calls: []script.Call{{Name: "send",
		Args: map[string]any{"to": []string{to}, "text": "ten"}}}})
	if len(v.Waiting) != 1 {
		c.t.Fatalf("%+v; want len(v.Waiting) 1", v)
	}
	return v
}

func takesBack(which ...int) script.Turn {
	return script.Turn{Calls: []script.Call{{Name: toolbox.TakeBackTool, Args: map[string]any{"which": which}}}}
}

// offered reports whether the model was offered the tool in its n-th request from the end.
func (c *chatting) offered(n int) bool {
	all := c.model.Requests()
	return slices.ContainsFunc(all[len(all)-n].Tools, func(t tool.Spec) bool { return t.Name == toolbox.TakeBackTool })
}

// now returns the state of the run's action.
func (c *chatting) now(v *run.View) run.ActionView {
	c.t.Helper()
	got, _, err := c.loop.Get(context.Background(), "ana", v.RunID)
	if err != nil {
		c.t.Fatal(err)
	}
	return *got.Actions[0]
}

// TestTakenBackByWord has a message of the user withdraw one waiting call, and no other. The call is not done, and its
// record says that the user withdrew it.
func TestTakenBackByWord(t *testing.T) {
	onEachStore(t, func(t *testing.T, open func(testing.TB) *env) {
		c := &chatting{env: open(t), t: t}
		first := c.proposes("bob@x.org")
		if c.offered(1) {
			t.Error("the tool is offered before anything waits")
		}
		second := c.proposes("eve@x.org")
		v := c.say("no, cancel", takesBack(), script.Turn{Text: "Which of the two?"})
		if a := c.now(first); !c.offered(2) || c.offered(1) || a.Decision != "" || c.now(second).Decision != "" ||
			v.Actions[0].Status != run.ActionFailed {
			t.Errorf("with two that wait: %+v", a)
		}
		c.say("the second", takesBack(2), script.Turn{Text: "It is off."})
		if a := c.now(second); a.Decision != run.TakeBack || a.Status != run.ActionRejected {
			t.Errorf("%+v; want a.Decision %v, a.Status %v", a, run.TakeBack, run.ActionRejected)
		}
		if a := c.now(first); a.Decision != "" {
			t.Errorf("the other one: %+v", a)
		}
		v, _, err := c.loop.Get(context.Background(), "ana", second.RunID)
		if err != nil || v.Status != run.Completed ||
			!strings.Contains(v.Text(), "You took this back, so it was not done.") {
			t.Errorf("%v %+v; want v.Status %v, v.Text() with “You took this back, so it was not done.”",
				err, v, run.Completed)
		}
		if len(c.effects) != 0 {
			t.Errorf("done is %v", c.effects)
		}
	})
}

// TestTakeBackRefused sends such a message too late, in a result that the model has read, and from another program.
func TestTakeBackRefused(t *testing.T) {
	onEachStore(t, func(t *testing.T, open func(testing.TB) *env) {
		c := &chatting{env: open(t), t: t}
		waits := c.proposes("bob@x.org")
		c.say("what is new?", script.Turn{Calls: []script.Call{{Name: "lookup", Args: map[string]any{"word": "Bob"}}}},
			takesBack(1), script.Turn{Text: "Nothing."})
		if a := c.now(waits); a.Decision != "" {
			t.Errorf("after a result: %+v", a)
		}
		ctx := context.Background()
		c.model.Then(script.Turn{Text: "Well."})
		byHelper := loop.StartRequest{UID: "ana", ThreadID: c.thread,
			DelegatedBy: &run.Delegate{TokenID: "t1", Name: "helper"}}
		if _, err := c.loop.Start(ctx, byHelper, loop.Prompt{Text: "no, cancel"}); err != nil || c.offered(1) {
			t.Errorf("another program's words: %v, and the tool is offered: %t", err, c.offered(1))
		}
		if _, err := c.loop.Resolve(ctx, approval.Resolution{UID: "ana", ApprovalID: run.ApprovalID(waits.RunID, 1),
			Decision: run.ApproveOnce}); err != nil {
			t.Fatal(err)
		}
		c.say("no, cancel", takesBack(1), script.Turn{Text: "It is too late."})
		requests := c.model.Requests()
		last := requests[len(requests)-1].Contents
		if reads := string(last[len(last)-1]); !strings.Contains(reads, `"takenBack":[]`) ||
			!strings.Contains(reads, `"alreadyDecided":["`) || c.now(waits).Decision != run.ApproveOnce {
			t.Errorf("after the yes: %s", reads)
		}
	})
}
