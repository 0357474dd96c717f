package loop_test

import (
	"cmp"
	"strings"
	"testing"

	"github.com/countersign-run/countersign/shared/agent/registry"
	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/engine/approval"
	"github.com/countersign-run/countersign/shared/engine/loop"
	"github.com/countersign-run/countersign/shared/engine/unit"
	"github.com/countersign-run/countersign/shared/testkit/script"
)

// TestAnswerText compares a run's answer for its program with the message for people. The record is part of the answer
// only if an effect took place.
func TestAnswerText(t *testing.T) {
	bob := func(text string) script.Call {
		return script.Call{Name: "send", Args: map[string]any{"to": []string{"bob@x.org"}, "text": text}}
	}
	calls := func(c ...script.Call) script.Turn { return script.Turn{Calls: c} }
	says := func(text string) script.Turn { return script.Turn{Text: text} }
	long := strings.Repeat("é", 50<<10)
	half := long[:40<<10] // a call's result is cut before the model's text is
	const nothing = "\n\nOn record: nothing was sent or changed."
	for name, c := range map[string]struct {
		turns     []script.Turn
		typed     string
		onReject  registry.OnReject
		decisions []run.Decision
		provider  []string
		want      string
		summary   string // if it differs
	}{
		"words": {turns: []script.Turn{says("Hello.")}, want: "Hello."},
		"what could be taken for the record": {turns: []script.Turn{says("It is on record.")},
			want: "It is on record.", summary: "It is on record." + nothing},
		"a call that failed": {turns: []script.Turn{calls(script.Call{Name: "unheard_of"}), says("I sent it.")},
			want: "I sent it.", summary: "I sent it." + nothing},
		"an effect that failed": {turns: []script.Turn{calls(bob("one")), says("I sent it.")},
			decisions: []run.Decision{run.ApproveOnce}, provider: []string{"refuse"},
			want: "I sent it.", summary: "I sent it." + nothing},
		"an effect": {turns: []script.Turn{calls(bob("one")), says("I sent it.")},
			decisions: []run.Decision{run.ApproveOnce}, want: "I sent it."},
		"an effect beside one that was rejected": {turns: []script.Turn{calls(bob("one"), bob("two")),
			says("I sent " + long)}, decisions: []run.Decision{run.ApproveOnce, run.Reject},
			want: "I sent " + long + "\n\nOn record:\nSent it to bob@x.org.\nNot done, because you rejected it: " +
				`Send "two" to bob@x.org.`,
			summary: "-"},
		"a long answer": {turns: []script.Turn{says(long)}, want: long, summary: "-"},
		"a final call": {turns: []script.Turn{calls(script.Call{Name: "answer",
			Args: map[string]string{"text": half}})}, want: half, summary: "-"},
		"a final call beside an effect": {turns: []script.Turn{calls(bob("one"),
			script.Call{Name: "answer", Args: map[string]string{"text": half}})},
			decisions: []run.Decision{run.ApproveOnce}, want: "Sent it to bob@x.org.\n" + half, summary: "-"},
		"a typed answer": {typed: sumForm, turns: []script.Turn{says("Four."),
			calls(script.Call{Name: "final_answer", Args: map[string]int{"sum": 4}})}, want: `{"sum":4}`},
		"none": {turns: []script.Turn{{Err: fault.New(fault.Model, "busy", "The model is busy.")}},
			summary: "The model is busy."},
		"the server's own words": {turns: []script.Turn{calls(bob("one"))}, onReject: registry.RejectCompletes,
			decisions: []run.Decision{run.Reject}, want: "You rejected this, so it was not done."},
	} {
		t.Run(name, func(t *testing.T) {
			w := newEnv(t)
			w.assistant().OnReject, w.next = cmp.Or(c.onReject, registry.RejectContinues), c.provider
			for _, declared := range w.declared() {
				w.loop.Tools[declared.Name] = declared
			}
			w.model.Then(c.turns...)
			in := loop.Prompt{Text: "go"}
			if c.typed != "" {
				in.Answer = []byte(c.typed)
			}
			var shown, read strings.Builder
			v, err := w.loop.Start(t.Context(), loop.StartRequest{UID: "ana", Sink: func(u unit.Update) {
				shown.WriteString(u.Delta)
				read.WriteString(u.Delta + u.Beyond)
			}}, in)
			for i, d := range c.decisions {
				if err == nil {
					_, err = w.loop.Resolve(t.Context(), approval.Resolution{UID: "ana",
						ApprovalID: run.ApprovalID(v.RunID, i+1), Decision: d})
				}
			}
			if err == nil {
				v, err = w.loop.Advance(t.Context(), v.RunID, nil)
			}
			if err != nil {
				t.Fatal(err)
			}
			if got := v.Text(); got != c.want {
				t.Errorf("%d bytes: %.300q\nwant %d: %.300q", len(got), got, len(c.want), c.want)
			}
			if c.summary == "" {
				c.summary = c.want
			}
			if c.summary != "-" && !strings.HasSuffix(v.Summary, c.summary) {
				t.Errorf("the message is %.200q, want %q", v.Summary, c.summary)
			}
			if name == "a long answer" && (read.String() != long || len(shown.String()) > run.MaxMessageText) {
				t.Errorf("%d of %d bytes came, and %d are shown", read.Len(), len(long), shown.Len())
			}
		})
	}
}
