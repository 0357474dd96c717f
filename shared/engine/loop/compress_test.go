package loop_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/countersign-run/countersign/shared/agent/model"
	"github.com/countersign-run/countersign/shared/agent/registry"
	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/engine/loop"
	"github.com/countersign-run/countersign/shared/testkit/fakegemini"
	"github.com/countersign-run/countersign/shared/testkit/realpart"
	"github.com/countersign-run/countersign/shared/testkit/script"
)

// compressing makes the env's assistant compress above half of a context window of 10,000 tokens.
func compressing(w *env) *env {
	verbatim(w).assistant().Compression = registry.Compression{Window: 10_000, Threshold: 0.5}
	return w
}

// counted is a turn of text, with the service's token count of its request.
func counted(text string, prompt int) script.Turn {
	return script.Turn{Text: text, Usage: model.Usage{Prompt: prompt, Output: len(text)/4 + 1}}
}

// compressions returns the run's compressions.
func (w *talk) compressions(v *run.View) (all []run.Compressed) {
	w.t.Helper()
	_, events, err := w.loop.Get(context.Background(), "ana", v.RunID)
	if err != nil {
		w.t.Fatal(err)
	}
	for _, e := range events {
		if e.Type == run.ContextCompressed {
			all = append(all, *e.Compressed)
		}
	}
	return all
}

// TestCompress lets a conversation grow above the threshold. Closed turns before its newest part become a summary,
// marked as information, which the model gets from then on, in later runs too. The question in progress stays as it is.
func TestCompress(t *testing.T) {
	onEachStore(t, func(t *testing.T, open func(testing.TB) *env) {
		w := &talk{env: compressing(open(t))}
		long := strings.Repeat("word ", 800) // about 1,000 tokens
		for i := range 4 {
			w.ask(fmt.Sprintf("question %d", i), counted(long, 1200*(i+1)))
		}
		v, told := w.ask("the last question", counted("A SUMMARY", 4000), callOf("lookup"), counted("So be it.", 1500))
		all := w.compressions(v)
		if len(all) != 1 || all[0].Turns != 3 || all[0].Summary != "A SUMMARY" || all[0].Model != "script" ||
			all[0].Before <= 5000 || all[0].After >= 3000 {
			t.Fatalf("%+v", all)
		}
		for _, want := range []string{"A SUMMARY", "question 3", "the last question"} {
			if !strings.Contains(joined(told), want) {
				t.Errorf("%q is not told: %s", want, joined(told))
			}
		}
		requests := w.model.Requests()
		if strings.Contains(joined(told), "question 2") ||
			!strings.Contains(requests[len(requests)-1].System, "[record ") {
			t.Errorf("it is told %s", joined(told))
		}
		summary := requests[4]
		if len(summary.Tools) > 0 || strings.Contains(joined(summary.Contents), "question 3") ||
			!strings.Contains(joined(summary.Contents), "question 0") || summary.System == requests[0].System {
			t.Errorf("the summary is asked for with %+v", summary)
		}
		if v.ModelCalls != 2 || v.Usage.Prompt != 5500 {
			t.Errorf("%d calls of the model in turns, and %+v in all", v.ModelCalls, v.Usage)
		}
		want := append(kept(told...), w.content(v), words("and?"))
		_, next := w.ask("and?", counted("Ok.", 1600))
		begins(t, next, want)
		if th := w.threadDoc(); th.Window.First != 7 || th.Contents.Count != 14 ||
			!strings.Contains(string(th.Contents.Tail[0].Raw), "question 0") {
			t.Errorf("of %d contents the thread tells those from %d on", th.Contents.Count, th.Window.First)
		}
		views, err := run.ViewEvents(nil, nil, w.eventsOf(v), 0)
		if err != nil || !strings.Contains(fmt.Sprint(views), "context.compressed") {
			t.Errorf("%v: %+v; want fmt.Sprint(views) with “context.compressed”", err, views)
		}
	})
}

func (w *talk) eventsOf(v *run.View) []run.Event {
	_, events, err := w.loop.Get(context.Background(), "ana", v.RunID)
	if err != nil {
		w.t.Fatal(err)
	}
	return events
}

// TestCompressResults lets tools return long results, also in the turn in progress. Results beyond the newest 50,000
// tokens are cut to their beginning and end. IDs, names, order and every byte of the model's text stay.
func TestCompressResults(t *testing.T) {
	w := &talk{env: compressing(newEnv(t))}
	w.assistant().Compression.Window, w.assistant().Limits.ModelCalls = 160_000, 10
	w.loop.Tools["lookup"] = tool.Define(tool.Def[lookupArgs, string]{Name: "lookup", Description: "Looks a word up.",
		Execute: func(context.Context, tool.Call, lookupArgs) (string, error) {
			return "BEGIN " + strings.Repeat("ab", 30_000) + " END", nil
		}})
	var turns []script.Turn
	for range 6 {
		turns = append(turns, callOf("lookup"))
	}
	v, told := w.ask("look it up", append(turns, script.Turn{Text: "So be it."})...)
	all := w.compressions(v)
	if len(all) != 1 || all[0].Turns != 0 || all[0].Before <= 80_000 || all[0].After >= all[0].Before {
		t.Fatalf("%+v", all)
	}
	_, events, err := w.loop.Get(context.Background(), "ana", v.RunID)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, e := range events {
		if e.Turn == nil || e.Turn.Calls == 0 {
			continue
		}
		if at := 1 + 2*n; !bytes.Equal(told[at], e.Turn.Content) {
			t.Errorf("the model's content %d is told as %s", n, told[at])
		}
		response := string(told[2+2*n])
		cut := strings.Contains(response, "bytes left out …]")
		if n++; cut != (n <= 3) || !strings.Contains(response, "BEGIN") || !strings.Contains(response, "END") {
			t.Errorf("result %d: cut is %v, with %d bytes", n, cut, len(response))
		}
	}
	want := append(kept(told...), w.content(v), words("and?"))
	_, next := w.ask("and?", script.Turn{Text: "Ok."})
	begins(t, next, want)
}

// TestCompressErrors lets the model fail to summarise, or return a summary that is longer. This is recorded, and not
// tried again before a quarter of the threshold is new.
func TestCompressErrors(t *testing.T) {
	long := strings.Repeat("word ", 800)
	for name, c := range map[string]struct {
		answer script.Turn
		code   fault.Code
	}{
		"an error":   {script.Turn{Err: fault.New(fault.Model, model.CodeOverloaded, "Busy.")}, model.CodeOverloaded},
		"no smaller": {script.Turn{Text: strings.Repeat(long, 5)}, run.CodeNoSmaller},
		"a call":     {callOf("lookup"), run.CodeEmptySummary},
		"nothing":    {script.Turn{Text: " "}, run.CodeEmptySummary},
	} {
		t.Run(name, func(t *testing.T) {
			w := &talk{env: compressing(newEnv(t))}
			for i := range 4 {
				w.ask(fmt.Sprintf("question %d", i), counted(long, 1200*(i+1)))
			}
			v, told := w.ask("question 4", c.answer, counted("So.", 5400))
			if all := w.compressions(v); len(all) != 1 || all[0].Code != c.code || all[0].Turns != 0 {
				t.Fatalf("%+v; want len(all) 1, all[0].Code %v, all[0].Turns 0", all, c.code)
			}
			if !strings.Contains(joined(told), "question 0") || v.Status != run.Completed {
				t.Errorf("%+v is told %s", v, joined(told))
			}
			v, _ = w.ask("question 5", counted("So.", 7100))
			if all := w.compressions(v); len(all) != 0 {
				t.Fatalf("it was tried again at once: %+v", all)
			}
			v, _ = w.ask("question 6", script.Turn{Text: "A SUMMARY"}, counted("So.", 1500))
			if all := w.compressions(v); len(all) != 1 || all[0].Turns == 0 {
				t.Fatalf("it was not tried again: %+v", all)
			}
		})
	}
}

// TestContextFull has a question that is too large for any model. It is not sent.
func TestContextFull(t *testing.T) {
	w := &talk{env: compressing(newEnv(t))}
	w.model.Then(script.Turn{Text: "never"})
	v, err := w.loop.Start(context.Background(),
		loop.StartRequest{UID: "ana"}, loop.Prompt{Text: strings.Repeat("word ", 10_000)})
	if err != nil || v.Status != run.Failed || v.ErrorReason != run.CodeContextFull {
		t.Fatalf("%v, %+v; want v.Status %v, v.ErrorReason %v", err, v, run.Failed, run.CodeContextFull)
	}
	if n := len(w.model.Requests()); n != 0 {
		t.Errorf("%d requests were sent", n)
	}
}

// TestCompressByHand compresses a conversation far below the limit, and one with nothing to compress.
func TestCompressByHand(t *testing.T) {
	ctx := context.Background()
	w := &talk{env: compressing(newEnv(t))}
	for i := range 3 {
		w.ask(fmt.Sprintf("question %d", i), counted(strings.Repeat("word ", 100), 100*(i+1)))
	}
	w.model.Then(counted("A SUMMARY", 300))
	byHand := loop.StartRequest{UID: "ana", ThreadID: w.thread}
	v, err := w.loop.Start(ctx, byHand, loop.Compress{})
	if all := w.compressions(v); err != nil || v.Status != run.Completed || len(all) != 1 || all[0].Turns != 3 {
		t.Fatalf("%v, %+v, %+v; want v.Status %v, len(all) 1, all[0].Turns 3", err, v, all, run.Completed)
	}
	if page, err := w.rec.Messages(ctx, "ana", w.thread, 1<<40, 100); err != nil || len(page.Messages) != 6 {
		t.Errorf("%v: %d messages", err, len(page.Messages))
	}
	if v, err = w.loop.Start(ctx, byHand, loop.Compress{}); err != nil || !strings.Contains(v.Summary, "nothing") {
		t.Errorf("%v, %+v; want v.Summary with “nothing”", err, v)
	}
	_, told := w.ask("and?", counted("Ok.", 100))
	if all := joined(told); len(told) != 1 || !strings.Contains(all, "A SUMMARY") || !strings.Contains(all, "and?") {
		t.Errorf("it is told %s", all)
	}
}

// summing is a model that summarises, or else asks and answers at length. Its answer depends only on its request.
type summing struct{ learned }

func (m *summing) Generate(_ context.Context, req model.Request, _ func(string)) (*model.Reply, error) {
	if _, err := fakegemini.CheckBy("learned", req.Contents, fakegemini.Gemini3); err != nil {
		return nil, fault.New(fault.Model, model.CodeRefused, "%s", err)
	}
	turn := fakegemini.Turn{Text: strings.Repeat("word ", 800)}
	if strings.Contains(req.System, "You summarise") {
		turn.Text = fmt.Sprintf("A summary of %d contents.", len(req.Contents))
	} else {
		m.requests = append(m.requests, req.Contents)
		if !strings.Contains(string(req.Contents[len(req.Contents)-1]), "functionResponse") {
			turn = fakegemini.Turn{Calls: []fakegemini.Call{{Name: "lookup", Args: map[string]any{"word": "ten"}}}}
		}
	}
	content := turn.ContentBy("learned", fmt.Append(nil, len(req.Contents)), fakegemini.Gemini3)
	p, err := model.Parse(content)
	if err != nil {
		return nil, err
	}
	return &model.Reply{Content: content, Text: p.Text, Calls: p.Calls, Finish: "STOP", Model: "learned"}, nil
}

// TestCompressKilledAtEveryCommit kills the process before and after each commit of conversations that are compressed.
// The model's last request is the same as without a kill.
func TestCompressKilledAtEveryCommit(t *testing.T) {
	realpart.Unraced(t)
	realpart.Long(t, "it kills a run at each of its commits")
	uncut, commits := compressedAfter(t, newEnv(t), 0, false)
	if !strings.Contains(joined(uncut), "A summary of") || commits < 20 {
		t.Fatalf("%d commits, %s", commits, joined(uncut))
	}
	for _, after := range []bool{false, true} {
		for n := 1; n <= commits; n++ {
			t.Run(fmt.Sprintf("after=%v/%d", after, n), func(t *testing.T) {
				// a start that was killed is repeated with another mark
				got, _ := compressedAfter(t, newEnv(t), n, after)
				begins(t, got, uncut)
			})
		}
	}
}

func compressedAfter(t *testing.T, w *env, n int, after bool) (told []json.RawMessage, commits int) {
	t.Helper()
	ctx, m := context.Background(), &summing{}
	compressing(w).loop.Model = m
	w.assistant().Compression.Window = 8_000
	if n > 0 {
		w.loop.Store = mortal(w.store, n, after)
	}
	thread := run.NewThreadID(run.KeyedRunID("ana", "k0"))
	life := func() error {
		for i := range 6 {
			req := loop.StartRequest{UID: "ana", Key: fmt.Sprintf("k%d", i), BodyHash: "h"}
			if i > 0 {
				req.ThreadID = thread
			}
			v, err := w.loop.Start(ctx, req, loop.Prompt{Text: fmt.Sprintf("question %d", i)})
			if err != nil {
				return err
			}
			if v, _, err = w.loop.Get(ctx, "ana", v.RunID); err != nil || v.Status != run.Completed {
				return err // the next one begins after this one
			}
			commits += int(v.LastEvent)
		}
		return nil
	}
	if died, err := mortally(life); err != nil || n > 0 && n <= 20 && !died {
		t.Fatal(died, err)
	}
	w.liveOn(ctx, 3, life)
	told = m.requests[len(m.requests)-1]
	for i, c := range told {
		told[i] = regexp.MustCompile(`\[record \w+\]`).ReplaceAll(c, []byte("[record]"))
	}
	return told, min(commits, 26)
}
