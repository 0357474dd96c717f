package loop_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/countersign-run/countersign/shared/agent/policy"
	"github.com/countersign-run/countersign/shared/agent/registry"
	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/agent/tool"
)

// TestTaintAtTheIntent has an agent without approvals that proposes a call with a stranger's text. Before the call's
// turn the operator makes the agent ask. The user always allows the call's recipient, and still gets an approval.
func TestTaintAtTheIntent(t *testing.T) {
	onEachStore(t, func(t *testing.T, open func(testing.TB) *env) {
		s := newScenario(t, open(t))
		maker := s.loop.Agents["maker"]
		asks := s.sendDef("asks")
		asks.Execute = func(context.Context, tool.Call, sendArgs) (sendResult, error) {
			maker.Effects = policy.AskEffects
			return sendResult{}, nil
		}
		s.loop.Tools["asks"] = tool.Define(asks)
		s.play(`$ agent maker
$ model call send {"to":["bob@x.org"],"text":"one"}
$ model text Sent.
$ ask one to bob
$ resolve 1 approve_and_always_allow_recipient
$ deliver
$ anew`)
		maker.Effects = policy.AutoApprove
		got := s.play(`$ model call page {"word":"safe"}
$ model call asks {"to":["cid@x.org"],"text":"x"}; send {"to":["bob@x.org"],"text":"The safe stands behind the picture of the old harbour."}
$ model text Sent.
$ ask tell bob
$ pending`)
		if !strings.Contains(got, `copied from "the page safe"`) || len(s.effects) != 1 {
			t.Errorf("%q were done:\n%s", s.effects, got)
		}
	})
}

// TestTaintOfEarlierRuns has an agent that gets earlier runs word for word. The texts that those runs read count as
// strangers', and the user's words in them as the user's.
func TestTaintOfEarlierRuns(t *testing.T) {
	onEachStore(t, func(t *testing.T, open func(testing.TB) *env) {
		s := newScenario(t, open(t))
		s.loop.Agents["maker"].History = registry.HistoryVerbatim
		got := s.play(`$ agent maker
$ model call send {"to":["bob@x.org"],"text":"one"}
$ model text Sent.
$ ask one to bob
$ resolve 1 approve_and_always_allow_recipient
$ deliver
$ anew
$ model call page {"word":"safe"}
$ model text I see.
$ ask read it; bob should look at https://made.example/up
$ model call send {"to":["bob@x.org"],"text":"Look at https://made.example/up"}
$ model text Sent.
$ ask tell bob`)
		if len(s.effects) != 2 {
			t.Fatalf("%q were done:\n%s", s.effects, got)
		}
		got = s.play(`$ model call send {"to":["bob@x.org"],"text":"The safe stands behind the picture of the old harbour."}
$ ask tell bob more
$ pending`)
		if !strings.Contains(got, `copied from "an earlier result of page"`) || len(s.effects) != 2 {
			t.Errorf("%q were done:\n%s", s.effects, got)
		}
	})
}

// TestTaintOfAlwaysAllowedCommand checks that a command that its user has always allowed, byte for byte, runs without
// an approval, although it contains text that the user has not written.
func TestTaintOfAlwaysAllowedCommand(t *testing.T) {
	onEachStore(t, func(t *testing.T, open func(testing.TB) *env) {
		h := commands(t, open(t), slices.Concat(asksFor("touch evil/tools"), asksFor("touch evil/tools"))...)
		if err := h.decide(t, h.start(t), 1, run.ApproveAlwaysCommand); err != nil {
			t.Fatal(err)
		}
		if err := h.deliver(t.Context()); err != nil {
			t.Fatal(err)
		}
		if v := h.start(t); v.Status != run.Completed || len(h.runs) != 2 {
			t.Errorf("the run is %s, and %v ran", v.Status, h.runs)
		}
	})
}

// TestTaintOfPageResults checks that an answer that depends on the result of a page's tool is marked so for later runs.
func TestTaintOfPageResults(t *testing.T) {
	s := newScenario(t, newEnv(t))
	s.play(`$ brings look Looks at the page.
$ model call look {}
$ model text I see.
$ ask look
$ answer 1 {"balance":7}
$ deliver
$ model text Yes.
$ ask and now`)
	_, events, err := s.loop.Get(t.Context(), s.uid, s.run)
	if err != nil {
		t.Fatal(err)
	}
	told := events[0].Queued.History
	if len(told) != 2 || told[1].Read == nil || !told[1].Read.Private || told[1].Read.Origin != "a result of look" {
		t.Errorf("the run is told %+v", told)
	}
}
