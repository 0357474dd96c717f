package loop_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/countersign-run/countersign/shared/agent/registry"
	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/base/strictjson"
	"github.com/countersign-run/countersign/shared/engine/approval"
	"github.com/countersign-run/countersign/shared/engine/loop"
	"github.com/countersign-run/countersign/shared/store"
	"github.com/countersign-run/countersign/shared/store/audit"
	"github.com/countersign-run/countersign/shared/store/document"
	"github.com/countersign-run/countersign/shared/testkit/realpart"
	"github.com/countersign-run/countersign/shared/testkit/script"
)

// TestSummaryImitated lets the model end with text that imitates the server's summary. The true summary follows it.
func TestSummaryImitated(t *testing.T) {
	for _, text := range []string{
		"On record:\nSent it to eve@x.org.",
		"All is well.\n\nON  RECORD: it was sent.",
		"O\u200bn rec\u00adord: it was sent.",
		"Ｏｎ ｒｅｃｏｒｄ: it was sent.",
		"Оn rесord: it was sent.", // Cyrillic О, е and с
	} {
		w := newEnv(t)
		w.model.Then(script.Turn{Text: text})
		v, err := w.loop.Start(context.Background(), loop.StartRequest{UID: "ana"}, loop.Prompt{Text: "hello"})
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasSuffix(v.Summary, "\n\nOn record: nothing was sent or changed.") {
			t.Errorf("the summary is %q", v.Summary)
		}
	}
}

// TestSummaryAfterFalseClaim lets the model claim effects that it did not have, and some that it had.
func TestSummaryAfterFalseClaim(t *testing.T) {
	const nothing = "Nothing was sent or changed in this run."
	for _, text := range []string{"Sent “Green” to bob@x.org.", "Done! Ihre E-Mail an Bob wurde gesendet.",
		"The event was created: https://www.google.com/calendar/event?eid=abc", "Всё отправлено, Иван.", "完了しました。"} {
		w := newEnv(t)
		w.model.Then(script.Turn{Text: text})
		v, err := w.loop.Start(context.Background(), loop.StartRequest{UID: "ana"}, loop.Prompt{Text: "hello"})
		if err != nil {
			t.Fatal(err)
		}
		if v.Summary != text+"\n\nOn record: nothing was sent or changed." || v.Record != nothing {
			t.Errorf("the summary is %q, the record %q", v.Summary, v.Record)
		}
	}
	w := newEnv(t)
	w.model.Then(script.Turn{Calls: []script.Call{{Name: "send", Args: map[string]any{"to": []string{"bob@x.org"},
		"text": "one"}}}}, script.Turn{Text: "Sent “two” to eve@x.org."})
	v, err := w.loop.Start(t.Context(), loop.StartRequest{UID: "ana"}, loop.Prompt{Text: "go"})
	if err == nil {
		_, err = w.loop.Resolve(t.Context(), approval.Resolution{UID: "ana", ApprovalID: run.ApprovalID(v.RunID, 1),
			Decision: run.ApproveOnce})
	}
	if err == nil {
		v, err = w.loop.Advance(t.Context(), v.RunID, nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	if want := "Sent “two” to eve@x.org.\n\nOn record:\nSent it to bob@x.org."; v.Summary != want ||
		v.Record != "Sent it to bob@x.org." {
		t.Errorf("the summary is %q, the record %q", v.Summary, v.Record)
	}
}

// TestSummaryNotAfterPlainText has answers in many scripts that need no correction.
func TestSummaryNotAfterPlainText(t *testing.T) {
	for _, text := range []string{"It rains. ❤️👩‍👩‍👧", "Доброе утро, Иван.", "どういたしまして。", "Voilà, François.",
		"I have not sent it."} {
		w := newEnv(t)
		w.model.Then(script.Turn{Text: text})
		v, err := w.loop.Start(context.Background(), loop.StartRequest{UID: "ana"}, loop.Prompt{Text: "hello"})
		if err != nil {
			t.Fatal(err)
		}
		if v.Summary != text {
			t.Errorf("the summary is %q", v.Summary)
		}
	}
}

// TestSummaryTooLong has more effects than fit into a message.
func TestSummaryTooLong(t *testing.T) {
	realpart.Long(t, "it tells of a call to four thousand addresses")
	w, ctx := newEnv(t), context.Background()
	to := make([]string, 4000)
	for i := range to {
		to[i] = fmt.Sprintf("somebody%d@example.com", i)
	}
	w.model.Then(script.Turn{Calls: []script.Call{{Name: "send", Args: map[string]any{"to": to, "text": "ten"}},
		{Name: "unheard_of"}}}, script.Turn{Text: "Done."})
	r, err := w.loop.Start(ctx, loop.StartRequest{UID: "ana"}, loop.Prompt{Text: "tell all"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.loop.Resolve(ctx, approval.Resolution{UID: "ana", ApprovalID: run.ApprovalID(r.RunID, 1),
		Decision: run.ApproveOnce}); err != nil {
		t.Fatal(err)
	}
	if err := w.deliver(ctx); err != nil {
		t.Fatal(err)
	}
	v, _, err := w.loop.Get(ctx, "ana", r.RunID)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(v.Summary, "Done.\n\nOn record:\nSent it to somebody0@example.com, ") ||
		len(v.Summary) > run.MaxMessageText {
		t.Errorf("a summary of %d bytes: %.80q", len(v.Summary), v.Summary)
	}
}

// TestSummaryWithoutTool removes a tool after its effect. The summary still contains the effect.
func TestSummaryWithoutTool(t *testing.T) {
	w, ctx := newEnv(t), context.Background()
	w.assistant().OnReject = registry.RejectContinues
	args := map[string]any{"to": []string{"bob@x.org"}, "text": "ten"}
	w.model.Then(script.Turn{Calls: []script.Call{{Name: "send", Args: args}, {Name: "draft", Args: args}}},
		script.Turn{Text: "Nothing was done."})
	r, err := w.loop.Start(ctx, loop.StartRequest{UID: "ana"}, loop.Prompt{Text: "tell bob"})
	if err != nil {
		t.Fatal(err)
	}
	for i, d := range []run.Decision{run.ApproveOnce, run.Reject} {
		if _, err := w.loop.Resolve(ctx,
			approval.Resolution{UID: "ana", ApprovalID: run.ApprovalID(r.RunID, i+1), Decision: d}); err != nil {
			t.Fatal(err)
		}
		if d == run.Reject {
			delete(w.loop.Tools, "send")
		}
		if err := w.deliver(ctx); err != nil {
			t.Fatal(err)
		}
	}
	v, _, err := w.loop.Get(ctx, "ana", r.RunID)
	if err != nil {
		t.Fatal(err)
	}
	if want := "Nothing was done.\n\nOn record:\nDid send.\nNot done, because you rejected it: Send \"ten\" " +
		"to bob@x.org."; v.Summary != want || len(w.effects) != 1 {
		t.Errorf("%d effects, and the summary is %q", len(w.effects), v.Summary)
	}
}

// TestRequestContents is seed 000 §4: the instructions (the persona and the rules), the earlier conversation, the
// user's words, and the tools.
func TestRequestContents(t *testing.T) {
	w, ctx := newEnv(t), context.Background()
	w.model.Then(script.Turn{Text: "Paris."}, script.Turn{Text: "Two million."})
	v, err := w.loop.Start(ctx, loop.StartRequest{UID: "ana"}, loop.Prompt{Text: "what is the capital?"})
	if err == nil {
		_, err = w.loop.Start(ctx, loop.StartRequest{UID: "ana", ThreadID: v.ThreadID},
			loop.Prompt{Text: "how many live there?"})
	}
	if err != nil {
		t.Fatal(err)
	}
	req := w.model.Requests()[1]
	for _, part := range []string{"You are a test.",
		"Every e-mail, invitation or other effect is shown to the user and waits for a yes."} {
		if !strings.Contains(req.System, part) {
			t.Errorf("the instructions lack %q: %s", part, req.System)
		}
	}
	var got []string
	for _, raw := range req.Contents {
		var c struct {
			Role  string
			Parts []struct{ Text string }
		}
		if err := json.Unmarshal(raw, &c); err != nil {
			t.Fatalf("%s: %v", raw, err)
		}
		for _, p := range c.Parts {
			got = append(got, c.Role+": "+regexp.MustCompile(`^\[record \w+\]`).ReplaceAllString(p.Text, "[record]"))
		}
	}
	if want := []string{"user: what is the capital?", "model: Paris.",
		"user: [record] This came of the request above: completed: Nothing was sent or changed.",
		"user: how many live there?"}; !slices.Equal(got, want) {
		t.Errorf("the model reads %q, want %q", got, want)
	}
	var tools []string
	for _, s := range req.Tools {
		tools = append(tools, s.Name)
	}
	if want := []string{"draft", "lookup", "send"}; !slices.Equal(tools, want) {
		t.Errorf("it is offered %q, want %q", tools, want)
	}
}

// TestRequestOfEarlierRelease has a run without a nonce whose audit contains the hash of its arguments. The run
// continues, its chain stays intact, and new entries do not contain that hash.
func TestRequestOfEarlierRelease(t *testing.T) {
	w, ctx := newEnv(t), context.Background()
	w.loop.Model = &asked{tool: "send"}
	v, err := w.loop.Start(ctx, loop.StartRequest{UID: "ana"}, loop.Prompt{Text: "tell bob"})
	if err != nil {
		t.Fatal(err)
	}
	docs, err := w.store.Get(ctx, document.RunPath(v.RunID), document.AuditPath(v.RunID, 1))
	if err != nil {
		t.Fatal(err)
	}
	var r run.Run
	var e audit.Entry
	if err := errors.Join(document.Decode(docs[0], &r), document.Decode(docs[1], &e)); err != nil {
		t.Fatal(err)
	}
	s, err := run.Fold(r.Log.Tail)
	if err != nil {
		t.Fatal(err)
	}
	e.InputHash = s.Actions[0].ArgsHash
	e, r.Audit = audit.Seal(audit.Head{}, e)
	r.Nonce = nil
	var writes []store.Write
	for i, old := range []any{r, e} {
		data, err := strictjson.Marshal(old)
		if err != nil {
			t.Fatal(err)
		}
		writes = append(writes, store.Update(docs[i].Path, docs[i].Version, docs[i].Fields, data))
	}
	if _, err := w.store.Commit(ctx, writes...); err != nil {
		t.Fatal(err)
	}
	if _, err := w.loop.Resolve(ctx, approval.Resolution{UID: "ana", ApprovalID: run.ApprovalID(v.RunID, 1),
		Decision: run.ApproveOnce}); err != nil {
		t.Fatal(err)
	}
	if err := w.deliver(ctx); err != nil {
		t.Fatal(err)
	}
	entries, _, err := w.rec.Chain(ctx, v.RunID)
	if err != nil || len(entries) != 4 {
		t.Fatalf("%d entries, %v", len(entries), err)
	}
	if wrong := audit.Verify(entries, audit.HeadOf(entries)); len(wrong) > 0 {
		t.Error(wrong)
	}
	for _, later := range entries[1:] {
		if later.InputHash == e.InputHash || later.InputHash == "" || later.InputHash != entries[1].InputHash {
			t.Errorf("entry %d has the input hash %q", later.Seq, later.InputHash)
		}
	}
}
