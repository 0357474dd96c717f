package loop_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/countersign-run/countersign/shared/agent/model"
	"github.com/countersign-run/countersign/shared/agent/registry"
	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/engine/approval"
	"github.com/countersign-run/countersign/shared/engine/loop"
	"github.com/countersign-run/countersign/shared/engine/records"
	"github.com/countersign-run/countersign/shared/engine/unit"
	"github.com/countersign-run/countersign/shared/store/document"
	"github.com/countersign-run/countersign/shared/testkit/fakegemini"
	"github.com/countersign-run/countersign/shared/testkit/script"
)

// verbatim makes the env's assistant get earlier runs word for word.
func verbatim(w *env) *env {
	w.assistant().History = registry.HistoryVerbatim
	return w
}

// talk is a conversation with the env's assistant.
type talk struct {
	*env
	thread string
}

// ask starts a run, and returns it with the contents of its last request.
func (w *talk) ask(prompt string, turns ...script.Turn) (*run.View, []json.RawMessage) {
	w.t.Helper()
	w.model.Then(turns...)
	v, err := w.loop.Start(context.Background(), loop.StartRequest{UID: "ana", ThreadID: w.thread},
		loop.Prompt{Text: prompt})
	if err != nil {
		w.t.Fatal(err)
	}
	w.thread = v.ThreadID
	return v, w.request()
}

// request returns the contents of the newest request.
func (w *talk) request() []json.RawMessage {
	requests := w.model.Requests()
	return requests[len(requests)-1].Contents
}

// content returns the newest answer as a later run gets it.
func (w *talk) content(v *run.View) json.RawMessage {
	w.t.Helper()
	_, events, err := w.loop.Get(context.Background(), "ana", v.RunID)
	if err != nil {
		w.t.Fatal(err)
	}
	for _, e := range slices.Backward(events) {
		if e.Turn != nil {
			return e.Turn.Content
		}
	}
	w.t.Fatal("no model answered")
	return nil
}

func callOf(tool string) script.Turn {
	args := map[string]any{"word": "ten"}
	if tool != "lookup" {
		args = map[string]any{"to": []string{"bob@x.org"}, "text": "ten"}
	}
	return script.Turn{Text: "Let me see.", Thought: "hm", Calls: []script.Call{{Name: tool, Args: args}}}
}

func words(text string) json.RawMessage {
	return json.RawMessage(fmt.Sprintf(`{"role":"user","parts":[{"text":%q}]}`, text))
}

// joined returns the contents as one text.
func joined(contents []json.RawMessage) string {
	var b strings.Builder
	for _, c := range contents {
		b.Write(c)
		b.WriteByte('\n')
	}
	return b.String()
}

// kept returns contents as a thread keeps them after their run: without the thought of callOf.
func kept(all ...json.RawMessage) (out []json.RawMessage) {
	for _, raw := range all {
		out = append(out, bytes.Replace(raw, []byte(`{"text":"hm","thought":true},`), nil, 1))
	}
	return out
}

// begins checks that got is want, byte for byte, followed by the user's text.
func begins(t *testing.T, got, want []json.RawMessage) {
	t.Helper()
	for i := range max(len(got), len(want)) {
		var a, b []byte
		if i < len(got) {
			a = got[i]
		}
		if i < len(want) {
			b = want[i]
		}
		if !bytes.Equal(a, b) {
			t.Fatalf("content %d is\n%s\nand should be\n%s", i, a, b)
		}
	}
}

// TestVerbatim has runs with calls. Each run gets everything before it but the thoughts, byte for byte, and every
// process builds the same contents.
func TestVerbatim(t *testing.T) {
	onEachStore(t, func(t *testing.T, open func(testing.TB) *env) {
		w := &talk{env: verbatim(open(t))}
		v, told := w.ask("look ten up", callOf("lookup"), script.Turn{Text: "It is ten."})
		for i := range 40 {
			want := append(kept(told...), w.content(v), words(fmt.Sprintf("and again %d", i)))
			_, first := w.ask(fmt.Sprintf("and again %d", i), callOf("lookup"),
				script.Turn{Text: strings.Repeat("It is still ten. ", 100)})
			begins(t, first[:len(want)], want)
			if len(first) != len(want)+2 {
				t.Fatalf("%d contents, want a call and its response more than %d", len(first), len(want))
			}
			v, told = lastOf(t, w), first
		}
		if strings.Contains(joined(told), "[record") {
			t.Error("a record is told in a conversation that needs none")
		}
		if s := w.model.Requests()[3].System; strings.Contains(s, "[record") {
			t.Errorf("the model is told to look for records: %s", s)
		}
	})
}

// lastOf returns the newest run of the conversation.
func lastOf(t *testing.T, w *talk) *run.View {
	t.Helper()
	page, err := w.rec.Messages(context.Background(), "ana", w.thread, 1<<40, 1)
	if err != nil {
		t.Fatal(err)
	}
	v, _, err := w.loop.Get(context.Background(), "ana", page.Messages[0].RunID)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// TestVerbatimAfterEachEnd ends a run in each way. The service accepts the contents of the next run, which have all the
// text and an answer for every call.
func TestVerbatimAfterEachEnd(t *testing.T) {
	ctx := context.Background()
	decide := func(d run.Decision) func(*talk, *run.View) error {
		return func(w *talk, v *run.View) error {
			r := approval.Resolution{UID: "ana", ApprovalID: run.ApprovalID(v.RunID, 1), Decision: d}
			_, err := w.loop.Resolve(ctx, r)
			return err
		}
	}
	later := func(d time.Duration) func(*talk, *run.View) error {
		return func(w *talk, _ *run.View) error {
			w.tick(d)
			_, err := w.loop.Sweep(ctx)
			return err
		}
	}
	for name, c := range map[string]struct {
		turns []script.Turn
		end   func(*talk, *run.View) error
		told  string
	}{
		"rejected": {[]script.Turn{callOf("send")}, decide(run.Reject), "The user rejected this"},
		"expired":  {[]script.Turn{callOf("send")}, later(30 * time.Hour), "expired"},
		"deadline": {[]script.Turn{callOf("send")}, later(80 * time.Hour), "This reached its deadline"},
		"cancelled": {[]script.Turn{callOf("send")},
			func(w *talk, v *run.View) error { _, err := w.loop.Cancel(ctx, "ana", v.RunID); return err }, "cancelled"},
		"the model failed at once": {[]script.Turn{{Err: fault.New(fault.Model, model.CodeBlocked, "Withheld.")}}, nil,
			"the question"},
		"the model failed later": {[]script.Turn{callOf("lookup"),
			{Err: fault.New(fault.Model, model.CodeBlocked, "Withheld.")}}, nil, "functionResponse"},
		"out of calls": {[]script.Turn{callOf("lookup"), callOf("lookup"), callOf("lookup")}, nil, "functionResponse"},
		"corrected to the end": {[]script.Turn{{Correction: "Do not."}, {Correction: "Do not."},
			{Correction: "Do not."}},
			nil, "Do not."},
		"an unknown outcome": {[]script.Turn{callOf("send")}, func(w *talk, v *run.View) error {
			w.next = []string{"lost"}
			if err := decide(run.ApproveOnce)(w, v); err != nil {
				return err
			}
			if err := w.deliver(ctx); err != nil {
				return err
			}
			return later(80*time.Hour)(w, v)
		}, "functionResponse"},
	} {
		t.Run(name, func(t *testing.T) {
			w := &talk{env: verbatim(newEnv(t))}
			v, _ := w.ask("the question", c.turns...)
			if c.end != nil {
				if err := c.end(w, v); err != nil {
					t.Fatal(err)
				}
				deliver(t, w.env)
			}
			if got, _, err := w.loop.Get(ctx, "ana", v.RunID); err != nil || got.Status != run.Completed &&
				got.Status != run.Failed {
				t.Fatalf("%v: the run is %+v", err, got)
			}
			w.model.Restart()
			v, told := w.ask("another question", script.Turn{Text: "An answer."})
			if v.Status != run.Completed {
				t.Fatalf("%+v\nwith %s", v, joined(told))
			}
			if all := joined(told); !strings.Contains(all, c.told) || !strings.Contains(all, "another question") {
				t.Errorf("the next run is told %s", all)
			}
		})
	}
}

// TestVerbatimOfAnotherModel changes the model, the service and the tools between runs. A run that another model
// answered is repeated as text, whole, and runs of the same model stay as they are.
func TestVerbatimOfAnotherModel(t *testing.T) {
	for name, change := range map[string]func(*talk){
		"model":    func(w *talk) { w.model.Become("scripts", "script-2") },
		"service":  func(w *talk) { w.model.Become("vertex", "script") },
		"settings": func(w *talk) { w.assistant().Model.Name = "script-3" },
	} {
		t.Run(name, func(t *testing.T) {
			w := &talk{env: verbatim(newEnv(t))}
			_, _ = w.ask("look ten up", callOf("lookup"), script.Turn{Text: "It is ten."})
			change(w)
			v, told := w.ask("and again", callOf("lookup"), script.Turn{Text: "It is still ten."})
			all := joined(told)
			for _, want := range []string{"look ten up", "Let me see.", `You called lookup with {\"word\":\"ten\"}`,
				"It is ten.", "and again"} {
				if !strings.Contains(all, want) {
					t.Errorf("%q is missing of %s", want, all)
				}
			}
			if n := strings.Count(all, "thoughtSignature"); v.Status != run.Completed || n != 1 {
				t.Fatalf("%d signatures, %+v", n, v)
			}
			requests := w.model.Requests()
			if mark := "[record "; !strings.Contains(requests[len(requests)-1].System, mark) {
				t.Error("the model is not told what a record is")
			}
			if _, next := w.ask("once more", script.Turn{Text: "Ten."}); strings.Count(joined(next),
				"thoughtSignature") != 1 {
				t.Errorf("its own run does not stay as it is: %s", joined(next))
			}
		})
	}
	t.Run("tools", func(t *testing.T) {
		w := &talk{env: verbatim(newEnv(t))}
		v, told := w.ask("look ten up", callOf("lookup"), script.Turn{Text: "It is ten."})
		want := append(kept(told...), w.content(v), words("and now?"))
		delete(w.loop.Tools, "lookup")
		_, next := w.ask("and now?", script.Turn{Text: "Ten."})
		begins(t, next, want)
	})
}

// TestVerbatimReferred has a run with more text than its last commit could carry. Later runs read it from the run
// itself.
func TestVerbatimReferred(t *testing.T) {
	w := &talk{env: verbatim(newEnv(t))}
	w.assistant().Limits.ModelCalls = 8
	var turns []script.Turn
	for range 5 {
		turn := callOf("lookup")
		turn.Text = strings.Repeat("x", 300<<10)
		turns = append(turns, turn)
	}
	v, told := w.ask("the question", append(turns, script.Turn{Text: "So be it."})...)
	want := append(told, w.content(v), words("and?"))
	_, next := w.ask("and?", script.Turn{Text: "That is all."})
	begins(t, next, want)
	th := w.threadDoc()
	if len(th.Contents.Tail) != 3 || th.Contents.Tail[0].Raw != nil || th.Window.Count != int64(len(want)+1) {
		t.Errorf("the thread keeps %d entries, of %d contents", len(th.Contents.Tail), th.Window.Count)
	}
}

func (w *talk) threadDoc() (th run.Thread) {
	w.t.Helper()
	docs, err := w.store.Get(context.Background(), document.ThreadPath(w.thread))
	if err == nil {
		err = document.Decode(docs[0], &th)
	}
	if err != nil {
		w.t.Fatal(err)
	}
	return th
}

// TestVerbatimAfterWords changes an agent to verbatim contents in a conversation that used text. No text is lost, in
// later runs too. An agent with text writes no contents.
func TestVerbatimAfterWords(t *testing.T) {
	w := &talk{env: newEnv(t)}
	w.ask("my name is Ana", script.Turn{Text: "Hello, Ana."})
	if th := w.threadDoc(); th.Contents.Count != 0 || th.Mark != "" {
		t.Fatalf("an agent that is told words has written %+v", th)
	}
	verbatim(w.env)
	for _, prompt := range []string{"who am I?", "and now?"} {
		_, told := w.ask(prompt, script.Turn{Text: "You are Ana."})
		all := joined(told)
		if !strings.Contains(all, "my name is Ana") || !strings.Contains(all, "Hello, Ana.") {
			t.Errorf("%s: it is told %s", prompt, all)
		}
	}
}

// TestVerbatimDeleted checks that a user's export contains the contents, and that none are left after the
// conversation is deleted.
func TestVerbatimDeleted(t *testing.T) {
	ctx := context.Background()
	w := &talk{env: verbatim(newEnv(t))}
	for i := range 12 {
		w.ask(fmt.Sprintf("question %d", i), script.Turn{Text: strings.Repeat("x", 30<<10)})
	}
	th := w.threadDoc()
	paths := th.Contents.ChunkPaths(document.ThreadPath(th.ID), run.ContentChunks)
	if len(paths) < 3 {
		t.Fatalf("only %d chunks", len(paths))
	}
	n := 0
	err := w.rec.Each(ctx, "ana", func(i records.Item) error {
		if i.Kind == records.ItemContent && i.In == w.thread {
			n++
		}
		return nil
	})
	if err != nil || n != 24 {
		t.Errorf("%v: %d contents are handed out, want 24", err, n)
	}
	if gone, err := w.rec.DeleteThread(ctx, "ana", w.thread); err != nil || !gone {
		t.Fatal(gone, err)
	}
	docs, err := w.store.Get(ctx, paths...)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range docs {
		if d.Exists() {
			t.Errorf("%s is left", d.Path)
		}
	}
}

// learned is a model whose answer depends only on its request, as strict as the service: it calls a tool, and then
// answers.
type learned struct{ requests [][]json.RawMessage }

func (*learned) Name() string { return "learned" }

func (m *learned) Generate(_ context.Context, req model.Request, _ func(string)) (*model.Reply, error) {
	if _, err := fakegemini.CheckBy("learned", req.Contents, fakegemini.Gemini3); err != nil {
		return nil, fault.New(fault.Model, model.CodeRefused, "%s", err)
	}
	m.requests = append(m.requests, req.Contents)
	turn := fakegemini.Turn{Text: "It is so."}
	if last := string(req.Contents[len(req.Contents)-1]); !strings.Contains(last, "functionResponse") {
		turn = fakegemini.Turn{Calls: []fakegemini.Call{{Name: "send",
			Args: map[string]any{"to": []string{"bob@x.org"}, "text": "ten"}}}}
	}
	content := turn.ContentBy("learned", fmt.Append(nil, len(req.Contents)), fakegemini.Gemini3)
	p, err := model.Parse(content)
	if err != nil {
		return nil, err
	}
	return &model.Reply{Content: content, Text: p.Text, Calls: p.Calls, Finish: "STOP", Model: "learned"}, nil
}

// TestVerbatimKilledAtEveryCommit kills the process before and after each commit of two runs of a conversation, and
// lets others take them up. The third run gets the same contents as without a kill.
func TestVerbatimKilledAtEveryCommit(t *testing.T) {
	uncut := afterKill(t, newEnv(t), 0, false)
	for _, after := range []bool{false, true} {
		for n := 1; n <= 12; n++ {
			t.Run(fmt.Sprintf("after=%v/%d", after, n), func(t *testing.T) {
				begins(t, afterKill(t, newEnv(t), n, after), uncut)
			})
		}
	}
}

// liveOn lets other processes work after one has died: often times, some minutes apart, they sweep, deliver the
// messages, and call life.
func (w *env) liveOn(ctx context.Context, often int, life func() error) {
	w.t.Helper()
	for range often {
		w.tick(3 * time.Minute)
		if _, err := w.loop.Sweep(ctx); err != nil {
			w.t.Fatal(err)
		}
		for _, f := range []func() error{func() error { return w.deliver(ctx) }, life} {
			if err := f(); err != nil && !unit.Held(err) {
				w.t.Fatal(err)
			}
		}
	}
}

// afterKill returns the contents of the third run if the process dies at the n-th commit of the two before it.
func afterKill(t *testing.T, w *env, n int, after bool) []json.RawMessage {
	t.Helper()
	ctx, m := context.Background(), &learned{}
	verbatim(w).loop.Model = m
	if n > 0 {
		w.loop.Store = mortal(w.store, n, after)
	}
	thread := run.NewThreadID(run.KeyedRunID("ana", "k0"))
	life := func() error {
		for i := range 2 {
			req := loop.StartRequest{UID: "ana", Key: fmt.Sprintf("k%d", i), BodyHash: "h"}
			if i > 0 {
				req.ThreadID = thread
			}
			v, err := w.loop.Start(ctx, req, loop.Prompt{Text: fmt.Sprintf("tell bob %d", i)})
			if err != nil {
				return err
			}
			for _, a := range w.open("ana") {
				r := approval.Resolution{UID: "ana", ApprovalID: a.ApprovalID, Decision: run.ApproveOnce}
				if a.Kind == run.KindReview {
					r.Decision = run.ConfirmDone
				}
				if _, err := w.loop.Resolve(ctx, r); err != nil {
					return err
				}
			}
			if err := w.deliver(ctx); err != nil {
				return err
			}
			if v, _, err = w.loop.Get(ctx, "ana", v.RunID); err != nil || v.Status != run.Completed {
				return err // the next one begins after this one
			}
		}
		return nil
	}
	if died, err := mortally(life); err != nil || died != (n > 0) {
		t.Fatal(died, err)
	}
	w.liveOn(ctx, 4, life)
	if _, err := w.loop.Start(ctx, loop.StartRequest{UID: "ana", ThreadID: thread},
		loop.Prompt{Text: "and?"}); err != nil {
		t.Fatal(err)
	}
	told := m.requests[len(m.requests)-1]
	output := regexp.MustCompile(`"output":("[^"]*"|\{"id":"[a-z0-9]*"\})`)
	for i, c := range told { // the user has confirmed the effects whose outcome the provider did not know
		told[i] = output.ReplaceAll(c, []byte(`"output":"done"`))
	}
	return told
}
