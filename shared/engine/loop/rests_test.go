package loop_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/countersign-run/countersign/shared/agent/policy"
	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/engine/approval"
)

// resting makes calls of send rest on the value that the function returns for the call's text.
func (w *env) resting(value func(text string) (string, error)) {
	d := w.sendDef("send")
	d.Preconditions = func(_ context.Context, _ tool.Call, in sendArgs) ([]tool.Precondition, error) {
		v, err := value(in.Text)
		return []tool.Precondition{{Name: "Room", Value: v, Fine: v == "free"}}, err
	}
	w.loop.Tools["send"] = tool.Define(d)
}

// cardOf returns the only waiting card, as its user sees it.
func (w *env) cardOf(t *testing.T) (ap run.ApprovalView, text string) {
	t.Helper()
	open := w.open("ana")
	if len(open) != 1 {
		t.Fatalf("%d cards wait; want 1", len(open))
	}
	var all []string
	for _, f := range open[0].Preview.Fields {
		all = append(all, f.Label+": "+f.Value)
	}
	return open[0], strings.Join(append(all, open[0].Preview.Warnings...), "\n")
}

// TestPreconditionAfterCrash kills the process between the intent and the effect. The next process reads again what the
// yes rests on: if that is as it was, it makes the call, and otherwise it leaves the call to its user.
func TestPreconditionAfterCrash(t *testing.T) {
	for name, c := range map[string]struct {
		now     string
		effects int
		kind    run.Kind
	}{
		"as it was": {now: "booked by Ken", effects: 1},
		"changed":   {now: "booked by Eve", kind: run.KindReview},
	} {
		t.Run(name, func(t *testing.T) {
			w, room := newEnv(t), "booked by Ken"
			w.resting(func(string) (string, error) { return room, nil })
			w.loop.Model = &asked{tool: "send"}
			v := start(t, w, "tell bob")
			w.approve(t, v.RunID, 1)
			alive, mortal := w.loop.Tools["send"], w.sendDef("send")
			mortal.Preconditions = func(context.Context, tool.Call, sendArgs) ([]tool.Precondition, error) {
				return []tool.Precondition{{Name: "Room", Value: room}}, nil
			}
			mortal.Execute = func(context.Context, tool.Call, sendArgs) (sendResult, error) {
				runtime.Goexit()
				return sendResult{}, nil
			}
			w.loop.Tools["send"] = tool.Define(mortal)
			dying(func() { _ = w.deliver(t.Context()) })
			w.loop.Tools["send"], room, w.settle = alive, c.now, []string{"not_done"}
			w.tick(time.Hour)
			if _, err := w.loop.Advance(t.Context(), v.RunID, nil); err != nil {
				t.Fatal(err)
			}
			var kind run.Kind
			for _, ap := range w.open("ana") {
				kind = ap.Kind
			}
			if len(w.effects) != c.effects || kind != c.kind {
				t.Errorf("%d effects, and a card of the kind %q waits; want %d, and %q", len(w.effects), kind,
					c.effects, c.kind)
			}
		})
	}
}

// TestPreconditionOfEdits approves a call with edits. What the edited call rests on is compared with the card: a free
// room needs no new yes, and a booked one does.
func TestPreconditionOfEdits(t *testing.T) {
	for text, effects := range map[string]int{"free": 1, "booked by Eve": 0} {
		w := newEnv(t)
		w.resting(func(text string) (string, error) {
			if text != "free" && text != "booked by Eve" {
				text = "booked by Ken"
			}
			return text, nil
		})
		w.loop.Model = &asked{tool: "send"}
		v := start(t, w, "tell bob")
		_, err := w.loop.Resolve(t.Context(), approval.Resolution{UID: "ana", ApprovalID: run.ApprovalID(v.RunID, 1),
			Decision: run.ApproveEdited, EditedArgs: []byte(`{"to":["bob@x.org"],"text":"` + text + `"}`)})
		if err == nil {
			err = w.deliver(t.Context())
		}
		if err != nil || len(w.effects) != effects || len(w.open("ana")) != 1-effects {
			t.Errorf("%s: %v, %d effects with %d cards; want %d with %d", text, err, len(w.effects), len(w.open("ana")),
				effects, 1-effects)
		}
	}
}

// TestPreconditionWithoutCard has an agent whose calls need no approval. A call that waits for an earlier one of its
// turn is compared before it runs.
func TestPreconditionWithoutCard(t *testing.T) {
	onEachStore(t, func(t *testing.T, open func(testing.TB) *env) {
		s := newScenario(t, open(t))
		s.loop.Agents["maker"].Effects = policy.AutoApprove
		room := "free"
		s.resting(func(string) (string, error) { return room, nil })
		s.play(`$ agent maker
$ model call send {"to":["bob@x.org"],"text":"one"}
$ model text Sent.
$ ask one to bob`)
		if len(s.effects) != 1 {
			t.Fatalf("%q were done; want one", s.effects)
		}
		asks := s.sendDef("asks")
		asks.Execute = func(context.Context, tool.Call, sendArgs) (sendResult, error) {
			room = "booked by Eve"
			return sendResult{}, nil
		}
		s.loop.Tools["asks"] = tool.Define(asks)
		s.play(`$ anew
$ model call asks {"to":["cid@x.org"],"text":"x"}; send {"to":["bob@x.org"],"text":"two"}
$ ask two to bob`)
		_, card := s.cardOf(t)
		want := "It was “free”, and it is now “booked by Eve”."
		if len(s.effects) != 1 || !strings.Contains(card, want) {
			t.Errorf("%q were done with the card %q; want one, and %q", s.effects, card, want)
		}
	})
}

// TestPreconditionPanic lets the function fail and panic. The card says that the state was not read, and the yes to it
// counts.
func TestPreconditionPanic(t *testing.T) {
	for name, value := range map[string]func(string) (string, error){
		"error": func(string) (string, error) { return "", errors.New("CANARY") },
		"panic": func(string) (string, error) { panic("CANARY") },
	} {
		w := newEnv(t)
		w.resting(value)
		w.loop.Model = &asked{tool: "send"}
		v := start(t, w, "tell bob")
		if _, card := w.cardOf(t); !strings.Contains(card, "could not be read") || strings.Contains(card, "CANARY") {
			t.Errorf("%s: the card says %q", name, card)
		}
		w.approve(t, v.RunID, 1)
		if err := w.deliver(t.Context()); err != nil || len(w.effects) != 1 {
			t.Errorf("%s: %v, %d effects; want 1", name, err, len(w.effects))
		}
	}
}

// TestPreconditionOfReview starts a call again whose outcome is unknown. The new card shows the present state, and the
// call rests on it.
func TestPreconditionOfReview(t *testing.T) {
	w, room := newEnv(t), "booked by Ken"
	w.resting(func(string) (string, error) { return room, nil })
	w.loop.Model = &asked{tool: "send"}
	v := start(t, w, "tell bob")
	w.approve(t, v.RunID, 1)
	w.next = []string{"lost"}
	if err := w.deliver(t.Context()); err != nil {
		t.Fatal(err)
	}
	decide := func(n int, d run.Decision) {
		t.Helper()
		_, err := w.loop.Resolve(t.Context(), approval.Resolution{UID: "ana", ApprovalID: run.ApprovalID(v.RunID, n),
			Decision: d})
		if err == nil {
			err = w.deliver(t.Context())
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	room = "booked by Eve"
	decide(2, run.StartNew)
	if _, card := w.cardOf(t); !strings.Contains(card, "Room: booked by Eve") || strings.Contains(card, "not be read") {
		t.Errorf("the card says %q; want the room booked by Eve", card)
	}
	room = "booked by Bob"
	decide(3, run.ApproveOnce)
	if _, card := w.cardOf(t); len(w.effects) != 0 || !strings.Contains(card, "it is now “booked by Bob”") {
		t.Errorf("%d effects, and the card says %q; want none, and the room booked by Bob", len(w.effects), card)
	}
}
