package loop_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/countersign-run/countersign/shared/agent"
	"github.com/countersign-run/countersign/shared/loop"
	"github.com/countersign-run/countersign/shared/model/script"
)

// TestNobodyElseSpeaksForTheRecord has the model end in words that imitate our own account: ours comes behind them.
func TestNobodyElseSpeaksForTheRecord(t *testing.T) {
	for _, text := range []string{
		"On record:\nSent it to eve@x.org.",
		"All is well.\n\nON  RECORD: it was sent.",
		"O\u200bn rec\u00adord: it was sent.",
		"Ｏｎ ｒｅｃｏｒｄ: it was sent.",
		"Оn rесord: it was sent.", // Cyrillic О, е and с
	} {
		w := newWorld(t)
		w.model.Then(script.Turn{Text: text})
		v, err := w.loop.Start(context.Background(), loop.Ask{UID: "ana", Prompt: "hello"}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasSuffix(v.Summary, "\n\nOn record: nothing was sent or changed.") {
			t.Errorf("the summary is %q", v.Summary)
		}
	}
}

// TestPlainWordsAreLeftAlone has answers in many scripts, none of which needs a correction.
func TestPlainWordsAreLeftAlone(t *testing.T) {
	for _, text := range []string{"It was sent. ❤️👩‍👩‍👧", "Всё отправлено, Иван.", "完了しました。", "Fait : c’est envoyé à François."} {
		w := newWorld(t)
		w.model.Then(script.Turn{Text: text})
		v, err := w.loop.Start(context.Background(), loop.Ask{UID: "ana", Prompt: "hello"}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if v.Summary != text {
			t.Errorf("the summary is %q", v.Summary)
		}
	}
}

// TestALongAccount has more done than a message can tell.
func TestALongAccount(t *testing.T) {
	w, ctx := newWorld(t), context.Background()
	to := make([]string, 4000)
	for i := range to {
		to[i] = fmt.Sprintf("somebody%d@example.com", i)
	}
	w.model.Then(script.Turn{Calls: []script.Call{{Name: "send", Args: map[string]any{"to": to, "text": "ten"}}, {Name: "unheard_of"}}}, script.Turn{Text: "Done."})
	run, err := w.loop.Start(ctx, loop.Ask{UID: "ana", Prompt: "tell all"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.loop.Resolve(ctx, loop.Resolution{UID: "ana", ApprovalID: agent.ApprovalID(run.RunID, 1), Decision: agent.ApproveOnce}); err != nil {
		t.Fatal(err)
	}
	if err := w.deliver(ctx); err != nil {
		t.Fatal(err)
	}
	v, _, err := w.loop.Get(ctx, "ana", run.RunID)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(v.Summary, "Done.\n\nOn record:\nSent it to somebody0@example.com, ") || len(v.Summary) > agent.MaxMessageText {
		t.Errorf("a summary of %d bytes: %.80q", len(v.Summary), v.Summary)
	}
}

// TestTheRecordOutlivesATool has a tool withdrawn after it did something: that it did stays on record.
func TestTheRecordOutlivesATool(t *testing.T) {
	w, ctx := newWorld(t), context.Background()
	w.loop.Profile.RejectOutcome = loop.RejectContinues
	args := map[string]any{"to": []string{"bob@x.org"}, "text": "ten"}
	w.model.Then(script.Turn{Calls: []script.Call{{Name: "send", Args: args}, {Name: "draft", Args: args}}}, script.Turn{Text: "Nothing was done."})
	run, err := w.loop.Start(ctx, loop.Ask{UID: "ana", Prompt: "tell bob"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i, d := range []agent.Decision{agent.ApproveOnce, agent.Reject} {
		if _, err := w.loop.Resolve(ctx, loop.Resolution{UID: "ana", ApprovalID: agent.ApprovalID(run.RunID, i+1), Decision: d}); err != nil {
			t.Fatal(err)
		}
		if d == agent.Reject {
			delete(w.loop.Tools, "send")
		}
		if err := w.deliver(ctx); err != nil {
			t.Fatal(err)
		}
	}
	v, _, err := w.loop.Get(ctx, "ana", run.RunID)
	if err != nil {
		t.Fatal(err)
	}
	if want := "Nothing was done.\n\nOn record:\nDid send.\nNot done, because you said no: Send \"ten\" to bob@x.org."; v.Summary != want || len(w.effects) != 1 {
		t.Errorf("%d effects, and the summary is %q", len(w.effects), v.Summary)
	}
}
