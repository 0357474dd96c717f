package countersign_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/countersign-run/countersign/shared/agent/registry"
	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/countersign"
	"github.com/countersign-run/countersign/shared/engine/loop"
	"github.com/countersign-run/countersign/shared/engine/queue"
	"github.com/countersign-run/countersign/shared/engine/records"
	"github.com/countersign-run/countersign/shared/engine/unit"
	"github.com/countersign-run/countersign/shared/store"
	"github.com/countersign-run/countersign/shared/store/embedded"
	"github.com/countersign-run/countersign/shared/store/memory"
	"github.com/countersign-run/countersign/shared/testkit/cleanup"
	"github.com/countersign-run/countersign/shared/testkit/script"
)

type mail struct {
	To   string `json:"to"`
	Text string `json:"text"`
}

type sent struct {
	ID string `json:"id"`
}

// post is a mail server.
type post struct {
	sent []string
	next []error // what it returns from now on
}

func (p *post) config() countersign.EffectConfig[mail, sent] {
	return countersign.EffectConfig[mail, sent]{Name: "send_mail", Description: "Sends a mail.",
		Targets: func(m mail) []string { return []string{m.To} },
		Summary: func(m mail) string { return "Wrote to " + m.To + "." }}
}

func (p *post) tool(c countersign.EffectConfig[mail, sent]) *countersign.Tool {
	return countersign.DefineEffect(c,
		func(m mail) countersign.Preview {
			return countersign.Preview{Title: "Mail to " + m.To, Fields: []countersign.Field{{"Text", m.Text}}}
		},
		func(_ context.Context, s *countersign.SessionContext, m mail) (sent, error) {
			if len(p.next) > 0 {
				err := p.next[0]
				p.next = p.next[1:]
				if err != nil {
					return sent{}, err
				}
			}
			p.sent = append(p.sent, m.To+": "+m.Text)
			return sent{s.ActionID[:4]}, nil
		})
}

func (p *post) tools() []*countersign.Tool { return []*countersign.Tool{p.tool(p.config())} }

func mailTo(to ...string) script.Turn {
	t := script.Turn{}
	for _, a := range to {
		t.Calls = append(t.Calls, script.Call{Name: "send_mail", Args: map[string]any{"to": a, "text": "hello"}})
	}
	return t
}

// heard returns what the model has heard of its calls in the last request, as JSON.
func heard(m scripted) string {
	all := m.Requests()
	contents := all[len(all)-1].Contents
	return string(contents[len(contents)-1])
}

func openStore(t *testing.T) store.Store {
	t.Helper()
	st, err := embedded.Open(t.TempDir(), time.Now)
	return cleanup.Close(t, st, err)
}

// TestApprove answers in the process. The question is stored before it is asked, and the decision is what happens.
func TestApprove(t *testing.T) {
	errBusy := errors.New("the terminal is busy")
	for name, c := range map[string]struct {
		to     []string
		decide []countersign.Decision
		err    error
		sent   []string
		status countersign.Status
		hears  []string // parts of what the model hears
	}{
		"yes": {to: []string{"a@x.com"}, decide: []countersign.Decision{countersign.Yes()},
			sent: []string{"a@x.com: hello"}, status: countersign.Completed, hears: []string{`"output":{"id":`}},
		"no": {to: []string{"a@x.com"}, decide: []countersign.Decision{countersign.No("not today")},
			status: countersign.Completed, hears: []string{"The user rejected this", "The user says: not today"}},
		"edited": {to: []string{"a@x.com"},
			decide: []countersign.Decision{countersign.Edited(mail{"b@x.com", "bye"})},
			sent:   []string{"b@x.com: bye"}, status: countersign.Completed, hears: []string{`"editedBy":"user"`}},
		"edited, as JSON": {to: []string{"a@x.com"},
			decide: []countersign.Decision{countersign.Edited(map[string]string{"to": "b@x.com", "text": "bye"})},
			sent:   []string{"b@x.com: bye"}, status: countersign.Completed},
		"later": {to: []string{"a@x.com"}, decide: []countersign.Decision{countersign.Later()},
			status: countersign.Waiting},
		"one each": {to: []string{"a@x.com", "b@x.com", "c@x.com"}, decide: []countersign.Decision{countersign.Yes(),
			countersign.Later(), countersign.No("")}, sent: []string{"a@x.com: hello"}, status: countersign.Waiting},
		"an error": {to: []string{"a@x.com"}, decide: []countersign.Decision{countersign.Yes()}, err: errBusy},
	} {
		t.Run(name, func(t *testing.T) {
			p, m := &post{}, newScript(mailTo(c.to...), say("So."))
			var a *countersign.Agent
			var titles []string
			a = newAgent(t, countersign.Options{Provider: m, Tools: p.tools(), Store: openStore(t),
				Approve: func(ctx context.Context, ap countersign.Approval) (countersign.Decision, error) {
					stored := false
					for kept, err := range a.Approvals(ctx) {
						stored = stored || err == nil && kept.ID == ap.ID && string(kept.Args) == string(ap.Args)
					}
					if !stored {
						t.Error("asked before the question was stored")
					}
					titles = append(titles, ap.Preview.Title)
					if len(ap.Preview.Fields) != 1 || strings.Contains(ap.Reason, "always allowed") {
						t.Errorf("it is told of a decision that it has not: %+v", ap) // to allow it always
					}
					return c.decide[len(titles)-1], c.err
				}})
			res, err := a.NewSession().Send(t.Context(), "go")
			if !errors.Is(err, c.err) || err == nil && res.Status != c.status {
				t.Fatalf("%v %+v", err, res)
			}
			if len(titles) != len(c.decide) || titles[0] != "Mail to a@x.com" {
				t.Errorf("asked %q", titles)
			}
			if !slices.Equal(p.sent, c.sent) {
				t.Errorf("sent %q", p.sent)
			}
			for _, part := range c.hears {
				if !strings.Contains(heard(m), part) {
					t.Errorf("the model hears %s", heard(m))
				}
			}
		})
	}
}

// TestApprovalInLaterProcess answers what waits a day later, from another process over the same file, which then
// carries it out.
func TestApprovalInLaterProcess(t *testing.T) {
	for name, c := range map[string]struct {
		decide countersign.Decision
		sent   []string
		events []string
	}{
		"yes": {countersign.Yes(), []string{"a@x.com: hello"}, []string{
			`9 send_mail {"text":"hello","to":"a@x.com"} starts`, `10 send_mail {"id":`, `text So.`,
			`completed "So."`}},
		"edited": {countersign.Edited(mail{"b@x.com", "bye"}), []string{"b@x.com: bye"}, []string{
			`9 send_mail {"text":"bye","to":"b@x.com"} starts`, `10 send_mail {"id":`, `text So.`, `completed "So.`}},
		"no": {countersign.No("not today"), nil, []string{`text So.`, `completed "So.`}},
	} {
		t.Run(name, func(t *testing.T) {
			p, st := &post{}, openStore(t)
			first := newAgent(t, countersign.Options{Provider: newScript(mailTo("a@x.com")), Tools: p.tools(),
				Store: st})
			s := first.As("ana").NewSession()
			lines, err := told(s.SendStream(t.Context(), "go"))
			if err != nil {
				t.Fatal(err)
			}
			check(t, lines, "5 asked: Mail to a@x.com", `waiting ""`)
			open := &countersign.OpenError{}
			if _, err := s.Send(t.Context(), "and now?"); !errors.As(err, &open) ||
				open.Status != countersign.Waiting || len(open.Approvals) != 1 {
				t.Fatalf("a second Send: %v", err)
			}
			if err := first.Close(); err != nil {
				t.Fatal(err)
			}

			later := newAgent(t, countersign.Options{Provider: newScript(say("So.")), Tools: p.tools(), Store: st})
			for range later.Approvals(t.Context()) {
				t.Error("another user's")
			}
			ana := later.As("ana")
			n := 0
			for ap, err := range ana.Approvals(t.Context()) {
				if n++; err != nil || ap.SessionID != s.ID() || ap.Review {
					t.Fatalf("%v %+v", err, ap)
				}
				if err := later.Resolve(t.Context(), ap, c.decide); err == nil {
					t.Error("another user decides")
				}
				for range 2 { // the same again changes nothing
					if err := ana.Resolve(t.Context(), ap, c.decide); err != nil {
						t.Fatal(err)
					}
				}
			}
			s, err = ana.Resume(t.Context(), s.ID())
			if err != nil || n != 1 {
				t.Fatal(n, err)
			}
			lines, err = told(joined(s.Continue(t.Context())))
			if err != nil || len(lines) != len(c.events) {
				t.Fatalf("%v %q", err, lines)
			}
			for i, want := range c.events {
				if !strings.HasPrefix(lines[i], want) {
					t.Errorf("%q, and not %q", lines[i], want)
				}
			}
			if !slices.Equal(p.sent, c.sent) {
				t.Errorf("sent %q", p.sent)
			}
		})
	}
}

// TestEffectsModes is the table of Effects and Policy, with the rule that the audit has of each. A policy comes before
// Approve and before the mode.
func TestEffectsModes(t *testing.T) {
	yes := func(context.Context, countersign.Approval) (countersign.Decision, error) {
		return countersign.Yes(), nil
	}
	for name, c := range map[string]struct {
		options countersign.Options
		sent    int
		audit   string
	}{
		"approved": {countersign.Options{Approve: yes}, 1, "requested recipient_not_allowlisted, decided"},
		"auto":     {countersign.Options{Effects: countersign.AutoApprove}, 1, "intent non_interactive, outcome"},
		"none":     {countersign.Options{Effects: countersign.NoEffects, Approve: yes}, 0, "denied no_effects"},
		"never, asked": {countersign.Options{Policy: countersign.Policy{NeverTo: []string{"x.com"}}, Approve: yes}, 0,
			"denied recipient_denied"},
		"never, auto": {countersign.Options{Policy: countersign.Policy{NeverTo: []string{"A@x.com"}},
			Effects: countersign.AutoApprove}, 0, "denied recipient_denied"},
		"only": {countersign.Options{Policy: countersign.Policy{OnlyTo: []string{"*.x.com", "y.com"}},
			Effects: countersign.AutoApprove}, 0, "denied recipient_not_permitted"},
	} {
		t.Run(name, func(t *testing.T) {
			p, st := &post{}, openStore(t)
			c.options.Provider, c.options.Store, c.options.Tools = newScript(mailTo("A@X.com"), say("So.")), st,
				p.tools()
			a := newAgent(t, c.options)
			res, err := a.NewSession().Send(t.Context(), "go")
			if err != nil || res.Status != countersign.Completed || len(p.sent) != c.sent {
				t.Fatalf("%v %+v, sent %q", err, res, p.sent)
			}
			page, err := (&records.Records{Store: st, Now: time.Now}).Audit(t.Context(), "local", res.RunID, "", 100)
			if err != nil {
				t.Fatal(err)
			}
			var said []string
			for _, e := range page.Entries {
				said = append(said, e.Kind+" "+e.Rule)
			}
			if got := strings.Join(said, ", "); !strings.HasPrefix(got, c.audit) {
				t.Errorf("the audit says %s", got)
			}
		})
	}
}

// TestUnclearOutcomes parks an effect with an unknown outcome, and its user reports the outcome.
func TestUnclearOutcomes(t *testing.T) {
	lost := countersign.Uncertain(errors.New("the connection broke"))
	for name, c := range map[string]struct {
		reconcile countersign.Verdict // empty: it cannot be determined
		fails     error
		answers   []countersign.Decision // to reviews and questions that follow
		sent      int
		hears     string
	}{
		"refused":     {fails: countersign.ToolErrorf("no such box"), hears: "no such box"},
		"plainly":     {fails: errors.New("no such box"), hears: "The tool failed."},
		"it was done": {fails: lost, answers: []countersign.Decision{countersign.WasDone()}, hears: "confirmed"},
		"try again": {fails: lost, answers: []countersign.Decision{countersign.TryAgain(), countersign.Yes()}, sent: 1,
			hears: `"id":`},
		"found":    {reconcile: countersign.Done, fails: lost, hears: `"id":"found"`},
		"not done": {reconcile: countersign.NotDone, fails: lost, sent: 0, hears: "not known whether"},
	} {
		t.Run(name, func(t *testing.T) {
			p, asked := &post{next: []error{c.fails}}, 0
			config := p.config()
			if c.reconcile != "" {
				config.Reconcile = func(context.Context, *countersign.SessionContext, mail) (countersign.Verdict, sent,
					error) {
					return c.reconcile, sent{"found"}, nil
				}
			}
			m := newScript(mailTo("a@x.com"), say("So."))
			a := newAgent(t, countersign.Options{Provider: m, Tools: []*countersign.Tool{p.tool(config)},
				Approve: func(_ context.Context, ap countersign.Approval) (countersign.Decision, error) {
					if asked++; asked == 1 {
						return countersign.Yes(), nil
					}
					if ap.Review != (asked == 2) {
						t.Errorf("question %d is a review: %t", asked, ap.Review)
					}
					return c.answers[asked-2], nil
				}})
			res, err := a.NewSession().Send(t.Context(), "go")
			if name == "not done" { // and tried again, since the proof allows it
				if err != nil || len(p.sent) != 1 {
					t.Errorf("%v, sent %q", err, p.sent)
				}
				return
			}
			if err != nil || res.Status != countersign.Completed || len(p.sent) != c.sent ||
				!strings.Contains(heard(m), c.hears) {
				t.Errorf("%v %+v, sent %q, the model hears %s", err, res, p.sent, heard(m))
			}
		})
	}
}

// TestAbandon gives up a run that waits, so that another can begin.
func TestAbandon(t *testing.T) {
	for name, end := range map[string]func(*countersign.Session, context.Context) error{
		"abandon": (*countersign.Session).Abandon, "cancel": (*countersign.Session).Cancel} {
		t.Run(name, func(t *testing.T) {
			p, m := &post{}, newScript(mailTo("a@x.com"), say("Hello again."))
			a := newAgent(t, countersign.Options{Provider: m, Tools: p.tools()})
			s := a.NewSession()
			if res, err := s.Send(t.Context(), "go"); err != nil || res.Status != countersign.Waiting {
				t.Fatal(err)
			}
			for range 2 { // the second finds nothing to do
				if err := end(s, t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			_, err := told(s.Continue(t.Context()))
			var e *countersign.Error
			if !errors.As(err, &e) || e.Code != "cancelled" || e.Class != countersign.ClassPolicy {
				t.Errorf("the abandoned run ends with %v", err)
			}
			if res, err := s.Send(t.Context(), "hi"); err != nil || res.Text != "Hello again." || len(p.sent) != 0 {
				t.Errorf("%v %+v; want res.Text “Hello again.”, len(p.sent) 0", err, res)
			}
		})
	}
}

// TestSendInATool refuses a run of the session from within one of its calls, and never waits for itself.
func TestSendInATool(t *testing.T) {
	var inner error
	again := countersign.DefineTool(countersign.ToolConfig{Name: "again", Description: "Sends."},
		func(ctx context.Context, s *countersign.SessionContext, _ struct{}) (string, error) {
			same, err := s.Agent.Resume(ctx, s.SessionID)
			if err != nil {
				return "", err
			}
			_, inner = same.Send(ctx, "again")
			res, err := s.Agent.NewSession().Send(ctx, "in another session")
			if err != nil {
				return "", err
			}
			return res.Text, nil
		})
	a := newAgent(t, countersign.Options{Provider: newScript(script.Turn{Calls: []script.Call{{Name: "again"}}},
		say("Inner."), say("Outer.")), Tools: []*countersign.Tool{again}})
	res, err := a.NewSession().Send(t.Context(), "go")
	open := &countersign.OpenError{}
	if err != nil || res.Text != "Outer." || !errors.As(inner, &open) || open.Status != countersign.Running {
		t.Errorf("%v %+v, in the tool %v", err, res, inner)
	}
}

// TestSessions lists a user's sessions, the last used first, over several pages, with what became of the last run.
func TestSessions(t *testing.T) {
	p, st := &post{}, openStore(t)
	m := newScript()
	a := newAgent(t, countersign.Options{Provider: m, Tools: p.tools(), Store: st})
	other := newAgent(t, countersign.Options{Name: "other", Provider: m, Store: st})
	var want []string
	for n := range 120 {
		m.Then(say("Hello."))
		s := a.NewSession()
		if _, err := s.Send(t.Context(), fmt.Sprintf("number %d\nand more", n)); err != nil {
			t.Fatal(err)
		}
		want = append([]string{s.ID()}, want...)
	}
	m.Then(say("Hello."), say("Hello."), mailTo("a@x.com"))
	for _, s := range []*countersign.Session{other.NewSession(), a.As("bea").NewSession()} {
		if _, err := s.Send(t.Context(), "hi"); err != nil {
			t.Fatal(err)
		}
	}
	first, err := a.Resume(t.Context(), want[119])
	if err != nil {
		t.Fatal(err)
	}
	if _, err := first.Send(t.Context(), "mail"); err != nil {
		t.Fatal(err)
	}
	want = append(want[119:], want[:119]...)
	var got []string
	for info, err := range a.Sessions(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		if len(got) == 0 && (info.Status != countersign.Waiting || info.Summary != "number 0" ||
			info.MessageCount != 4 ||
			!strings.HasSuffix(info.FilePath, "countersign.db") || info.LastUpdated.Before(info.StartTime)) ||
			len(got) == 1 && info.Status != countersign.Completed {
			t.Errorf("%+v", info)
		}
		got = append(got, info.SessionID)
	}
	if !slices.Equal(got, want) {
		t.Errorf("%d sessions, and not %d in that order", len(got), len(want))
	}
	if _, err := other.Resume(t.Context(), want[0]); !errors.Is(err, countersign.ErrNoSession) {
		t.Errorf("another agent's session: %v", err)
	}
}

// TestStoreSharedWithServer shares a store with a server of other agents, whose sweep finds what the program has left
// for hours. Each moves its own runs, and lists its own.
func TestStoreSharedWithServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st, p := memory.New(time.Now), &post{}
		assistant := &registry.Agent{Name: run.Assistant, Instructions: registry.Text("Help."),
			History: registry.HistoryWords, OnReject: registry.RejectCompletes,
			Limits: registry.Limits{ModelCalls: 3, ApprovalTTL: 24 * time.Hour, Deadline: 72 * time.Hour,
				ModelTimeout: time.Minute, ToolTimeout: time.Minute}}
		m := script.New(script.Turn{Text: "I am the server's."})
		asked := &atOnce{}
		server := loop.New(unit.Env{Store: st, Queue: asked, Model: m, Tools: tool.Set{},
			Agents: registry.Set{run.Assistant: assistant}})
		asked.server = server
		theirs, err := server.Start(t.Context(), loop.StartRequest{UID: "local"}, loop.Prompt{Text: "hi"})
		if err != nil {
			t.Fatal(err)
		}
		a := newAgent(t, countersign.Options{Provider: newScript(hangs("")), Store: st, Tools: p.tools()})
		s := a.NewSession()
		gone, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		if _, err := s.Send(gone, "go"); !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		waits := newAgent(t, countersign.Options{Provider: newScript(mailTo("a@x.com")), Store: st, Tools: p.tools()})
		w := waits.NewSession()
		if _, err := w.Send(t.Context(), "mail"); err != nil {
			t.Fatal(err)
		}
		for range 12 {
			time.Sleep(time.Hour)
			asked.n = 0
			if _, err := server.Sweep(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if asked.n == 0 {
			t.Error("the sweep has found nothing, and the test shows nothing")
		}
		later := newScript(say("Back."), say("Sent."))
		a = newAgent(t, countersign.Options{Provider: later, Store: st, Tools: p.tools(),
			Approve: func(context.Context, countersign.Approval) (countersign.Decision, error) {
				return countersign.Yes(), nil
			}})
		var ids []string
		for info, err := range a.Sessions(t.Context()) {
			ids = append(ids, fmt.Sprint(info.SessionID, info.Status, err))
		}
		if want := fmt.Sprint([]string{fmt.Sprint(w.ID(), countersign.Waiting, nil),
			fmt.Sprint(s.ID(), countersign.CutOff, nil)}); fmt.Sprint(ids) != want {
			t.Errorf("the sessions are %v, and not %s", ids, want)
		}
		for id, want := range map[string]string{s.ID(): `completed "Back."`, w.ID(): `completed "Sent."`} {
			resumed, err := a.Resume(t.Context(), id)
			if err != nil {
				t.Fatal(err)
			}
			if id == s.ID() {
				later.Restart(say("Back."))
			} else {
				later.Restart(say("Sent."))
			}
			lines, err := told(resumed.Continue(t.Context()))
			if err != nil || lines[len(lines)-1] != want {
				t.Errorf("%v %q; want lines[len(lines)-1] %v", err, lines, want)
			}
		}
		_, err = a.Resume(t.Context(), theirs.ThreadID)
		if !errors.Is(err, countersign.ErrNoSession) || len(p.sent) != 1 {
			t.Errorf("the server's session: %v, sent %q", err, p.sent)
		}
	})
}

// atOnce is a queue that has its server advance a run as soon as that is asked for.
type atOnce struct {
	server *loop.Loop
	n      int
}

func (q *atOnce) Resume(ctx context.Context, m queue.Message) error {
	q.n++
	_, err := q.server.Resume(ctx, m, nil)
	return err
}

func (q *atOnce) Close() error { return nil }

// TestToolOfAnyName has the name of a tool that the planner's model has: it waits as any other does.
func TestToolOfAnyName(t *testing.T) {
	p, m := &post{}, newScript(call("propose_plan", map[string]any{"to": "a@x.com", "text": "hello"}), say("So."))
	c := p.config()
	c.Name = "propose_plan"
	a := newAgent(t, countersign.Options{Provider: m, Tools: []*countersign.Tool{p.tool(c)}, Store: openStore(t),
		Approve: func(context.Context, countersign.Approval) (countersign.Decision, error) {
			return countersign.Yes(), nil
		}})
	res, err := a.NewSession().Send(t.Context(), "go")
	if err != nil || res.Status != countersign.Completed || len(p.sent) != 1 {
		t.Fatalf("%v %+v, sent %q", err, res, p.sent)
	}
}

// TestPreconditions changes the balance that an e-mail rests on, between the question and the yes. The program is asked
// again with the old and the new balance, and nothing is sent before.
func TestPreconditions(t *testing.T) {
	p, balance := &post{}, "12 EUR"
	config := p.config()
	config.Preconditions = func(_ context.Context, s *countersign.SessionContext, m mail) ([]countersign.Field, error) {
		if s.User != "ana" || m.To != "a@x.com" {
			t.Errorf("it is read for %q and %q; want ana and a@x.com", s.User, m.To)
		}
		return []countersign.Field{{"Balance", balance}}, nil
	}
	var shown []string
	a := newAgent(t, countersign.Options{Provider: newScript(mailTo("a@x.com"), say("So.")),
		Tools: []*countersign.Tool{p.tool(config)}, Store: openStore(t),
		DecisionKeys: [][]byte{bytes.Repeat([]byte("1"), 32)},
		Approve: func(_ context.Context, ap countersign.Approval) (countersign.Decision, error) {
			fields := ap.Preview.Fields
			shown = append(shown, fmt.Sprint(len(p.sent), fields[len(fields)-1], ap.Preview.Warnings))
			balance = "3 EUR"
			return countersign.Yes(), nil
		}})
	res, err := a.As("ana").NewSession().Send(t.Context(), "go")
	if err != nil || res.Status != countersign.Completed || len(p.sent) != 1 {
		t.Fatalf("%v %+v, %d sent; want completed with 1", err, res, len(p.sent))
	}
	check(t, shown, "0 {Balance 12 EUR} []", "0 {Balance 3 EUR} [This has changed since you were asked: Balance. "+
		"It was “12 EUR”, and it is now “3 EUR”.]")
}
