package loop_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/engine/loop"
	"github.com/countersign-run/countersign/shared/store"
	"github.com/countersign-run/countersign/shared/store/document"
	"github.com/countersign-run/countersign/shared/testkit/await"
)

// anasTerminal is the id of a terminal of ana's.
const anasTerminal = "host-of-ana-0001-terminal-1"

// onTerminal gives the env an agent that works on terminals, and ana one.
func onTerminal(t testing.TB, w *env) {
	t.Helper()
	agent := testAgent(run.Terminal, "You work on a terminal.")
	agent.OnTerminal = true
	w.loop.Agents[run.Terminal] = agent
	w.opensTerminal(t, "ana", anasTerminal)
}

func (w *env) opensTerminal(t testing.TB, uid, id string) {
	t.Helper()
	if _, err := w.store.Commit(t.Context(),
		store.Create(document.TerminalPath(uid, id), nil, []byte(`{}`))); err != nil {
		t.Fatal(err)
	}
}

// TestTerminalOfRun begins runs with and without a terminal. Every function of the tool gets the terminal.
func TestTerminalOfRun(t *testing.T) {
	onEachStore(t, func(t *testing.T, open func(testing.TB) *env) {
		w := open(t)
		onTerminal(t, w)
		var seen []string
		d := w.sendDef("send")
		d.Place = func(_ context.Context, in tool.Scope) (tool.Place, error) {
			seen = append(seen, "place "+in.UID+" "+in.Terminal)
			return tool.Place{Label: "On", Name: in.Terminal, ID: in.Terminal}, nil
		}
		d.Reads = func(in tool.Scope) []string { return []string{document.TerminalPath(in.UID, in.Terminal)} }
		d.Execute = func(_ context.Context, c tool.Call, _ sendArgs) (sendResult, error) {
			seen = append(seen, "execute "+c.Terminal)
			return sendResult{ID: "1"}, nil
		}
		w.loop.Tools = tool.NewSet(tool.Define(d))
		w.loop.Model = &asked{tool: "send"}
		v, err := w.loop.Start(t.Context(), loop.StartRequest{UID: "ana", Agent: run.Terminal},
			loop.Prompt{Terminal: anasTerminal, Text: "tell bob"})
		if err != nil || v.Terminal != anasTerminal || v.Status != run.Awaiting {
			t.Fatalf("begun as %+v, %v", v, err)
		}
		approve(t, w, v, 1)
		if m := w.asked[v.RunID]; m.Terminal != anasTerminal {
			t.Errorf("the message is %+v", m)
		}
		deliver(t, w)
		for _, s := range seen {
			if s != "place ana "+anasTerminal && s != "execute "+anasTerminal {
				t.Errorf("the tool was asked %q", s)
			}
		}
		if last := seen[len(seen)-1]; last != "execute "+anasTerminal {
			t.Errorf("the tool was asked %q last", last)
		}
	})
}

// TestTerminalStartRace begins many runs on one terminal at once. One begins, and the refusals of the others name it.
// After that run has ended, is overdue, was deleted or was quarantined, the next one begins. A terminal of another user
// with the same ID is a different one.
func TestTerminalStartRace(t *testing.T) {
	onEachStore(t, func(t *testing.T, open func(testing.TB) *env) {
		w := open(t)
		onTerminal(t, w)
		w.opensTerminal(t, "bob", anasTerminal)
		w.loop.Model = &asked{tool: "send"}
		start := func(uid string) (*run.View, error) {
			return w.loop.Start(t.Context(), loop.StartRequest{UID: uid, Agent: run.Terminal},
				loop.Prompt{Terminal: anasTerminal, Text: "tell bob"})
		}
		v, all := w.startsOne(t, func() (*run.View, error) { return start("ana") })
		for _, err := range all {
			var other *run.OpenError
			if !fault.Is(err, fault.Policy, fault.CodeTerminalBusy) || fault.As(err).Status() != 409 ||
				!errors.As(err, &other) || other.RunID != v.RunID || other.Status == "" {
				t.Errorf("%s is open: %v, %+v", v.RunID, err, other)
			}
		}
		if _, err := start("bob"); err != nil {
			t.Errorf("on another user's terminal: %v", err)
		}
		change := func(write func(store.Doc) store.Write) {
			if _, err := w.store.Commit(t.Context(), write(w.document(v.RunID))); err != nil {
				t.Fatal(err)
			}
		}
		for _, gone := range []struct {
			how string
			end func()
		}{
			{"cancelled", func() {
				if _, err := w.loop.Cancel(t.Context(), "ana", v.RunID); err != nil {
					t.Fatal(err)
				}
			}},
			{"expired", func() {
				w.tick(100 * time.Hour)
				if err := w.sweepAll(); err != nil {
					t.Fatal(err)
				}
			}},
			{"overdue, before a sweep", func() { w.tick(100 * time.Hour) }},
			{"deleted", func() { change(func(d store.Doc) store.Write { return store.Delete(d.Path, d.Version) }) }},
			{"put aside", func() {
				change(func(d store.Doc) store.Write {
					f := document.RunFieldsOf(d)
					f.Due, f.Quarantined = document.Never, true
					return store.Update(d.Path, d.Version, f.Map(document.ID(d)), []byte(`{"id":5}`))
				})
			}},
		} {
			if _, err := start("ana"); !fault.Is(err, fault.Policy, fault.CodeTerminalBusy) {
				t.Fatalf("while one is open: %v", err)
			}
			gone.end()
			var err error
			if v, err = start("ana"); err != nil {
				t.Fatalf("%s: %v", gone.how, err)
			}
		}
	})
}

// startsOne begins runs at once, and returns the one that began and the errors of the others.
func (w *env) startsOne(t *testing.T, start func() (*run.View, error)) (one *run.View, refused []error) {
	t.Helper()
	var (
		begun  [8]*run.View
		errs   [8]error
		starts sync.WaitGroup
	)
	for i := range begun {
		starts.Go(func() { begun[i], errs[i] = start() })
	}
	starts.Wait()
	for i, v := range begun {
		switch {
		case v == nil:
			refused = append(refused, errs[i])
		case one != nil:
			t.Fatalf("both %s and %s began", one.RunID, v.RunID)
		default:
			one = v
		}
	}
	return one, refused
}

func (w *env) sweepAll() error {
	if _, err := w.loop.Sweep(context.Background()); err != nil {
		return err
	}
	return w.deliver(context.Background())
}

func TestTerminalOfAnotherUser(t *testing.T) {
	w := newEnv(t)
	onTerminal(t, w)
	w.opensTerminal(t, "bob", "host-of-bob-0001-terminal-1")
	w.loop.Model = &plain{}
	for name, c := range map[string]struct {
		agent, terminal string
		class           fault.Class
		field           string
	}{
		"none":             {run.Terminal, "", fault.Validation, "terminalId"},
		"not needed":       {run.Assistant, anasTerminal, fault.Validation, "terminalId"},
		"that is not":      {run.Terminal, "host-of-ana-0001-terminal-2", fault.Auth, ""},
		"of another user":  {run.Terminal, "host-of-bob-0001-terminal-1", fault.Auth, ""},
		"an odd path":      {run.Terminal, "../x", fault.Validation, "terminalId"},
		"without an agent": {"", anasTerminal, fault.Validation, "terminalId"},
	} {
		_, err := w.loop.Start(t.Context(),
			loop.StartRequest{UID: "ana", Agent: c.agent}, loop.Prompt{Terminal: c.terminal, Text: "hello"})
		if f := fault.As(err); err == nil || f.Class != c.class || f.Field != c.field {
			t.Errorf("with %s terminal: %v", name, err)
		}
	}
}

// TestTerminalEffectsReported lets commands end at once, before anybody can look. A caller during the run gets each of
// them at once, and the one in progress. A caller after its end gets nothing, unless it asks for ended commands.
func TestTerminalEffectsReported(t *testing.T) {
	h := commands(t, newEnv(t), asksFor("ls", "ls /", "touch x")...)
	h.set(t, terminalDoc{AutoRun: true})
	v := h.start(t)
	told := func(ended bool, n int) (all [][]string) {
		// commands that do not arrive are missing in the list
		ctx, cancel := context.WithTimeout(t.Context(), await.Most)
		defer cancel()
		for ids, err := range (loop.Terminals{Loop: h.loop}).UnderWay(ctx, "ana", v.RunID, ended) {
			if err != nil {
				t.Fatal(err)
			}
			if all = append(all, ids); len(all) == n {
				break
			}
		}
		return all
	}
	check := func(when string, got [][]string, want ...string) {
		t.Helper()
		if len(got) != 1 || !slices.Equal(got[0], want) {
			t.Errorf("%s, told of %q", when, got)
		}
	}
	ids := []string{v.Actions[0].ActionID, v.Actions[1].ActionID, v.Actions[2].ActionID}
	for _, ended := range []bool{true, false} {
		check("while the third waits", told(ended, 1), ids[0], ids[1], "")
	}
	if err := h.decide(t, v, 1, run.ApproveOnce); err != nil {
		t.Fatal(err)
	}
	during := make(chan [][]string, 1)
	carried := h.command()
	carried.Execute = func(ctx context.Context, c tool.Call, in commandArgs) (commandResult, error) {
		during <- told(false, 1)
		return h.execute(ctx, c, in)
	}
	h.loop.Tools = tool.NewSet(tool.Define(carried))
	if err := h.deliver(t.Context()); err != nil {
		t.Fatal(err)
	}
	check("while the third is carried out", <-during, ids...)
	check("at the end", told(true, 0), append(ids, "")...)
	check("to who comes when it is over", told(false, 0), "")
}
