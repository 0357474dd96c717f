package loop_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/base/strictjson"
	"github.com/countersign-run/countersign/shared/engine/approval"
	"github.com/countersign-run/countersign/shared/engine/effect"
	"github.com/countersign-run/countersign/shared/engine/loop"
	"github.com/countersign-run/countersign/shared/store"
	"github.com/countersign-run/countersign/shared/store/document"
	"github.com/countersign-run/countersign/shared/testkit/emulators"
	"github.com/countersign-run/countersign/shared/testkit/realpart"
	"github.com/countersign-run/countersign/shared/testkit/script"
)

var sequences = flag.Int("sequences", 0,
	"how many sequences the model test plays on each store; 0 is 400 on the embedded one and 25 on Firestore, "+
		"a quarter of that with -short, and 2,000 and 100 with ALL_TRIALS=1 and without -race")

// TestModel plays random sequences of all that users, providers, queues, clocks and crashes can do to the loop, and
// checks every commit and every effect against the invariants of the design (model_invariants_test.go). A failure
// prints the shortest sequence that was found, and the seed to play it again.
//
//	go test ./shared/engine/loop -run TestModel                                    (ALL_TRIALS=1: as in CI)
//	go test ./shared/engine/loop -run TestModel/embedded -sequences 100000 -timeout 0
//	go test ./shared/engine/loop -run TestModel/embedded -rapid.seed N
func TestModel(t *testing.T) {
	t.Run("embedded", func(t *testing.T) { sequencesOn(t, newEnv(t), realpart.TrialsUnraced(100, 2000), 60) })
	t.Run("firestore", func(t *testing.T) {
		t.Setenv("FIRESTORE_EMULATOR_HOST", emulators.Firestore(t))
		sequencesOn(t, newFirestoreEnv(t), realpart.TrialsUnraced(10, 100), 40)
	})
	t.Run("busy", func(t *testing.T) { sequencesOn(t, newBusyEnv(t), realpart.TrialsUnraced(25, 300), 40) })
}

func sequencesOn(t *testing.T, w *env, n, most int) {
	if realpart.Short() {
		n /= 4
	}
	if *sequences > 0 {
		n = *sequences
	}
	rapidly(t, "rapid.checks", n)
	rapidly(t, "rapid.steps", most*3/4)
	m := newTrialed(t, w)
	reached := map[string]int{}
	rapid.Check(t, func(rt *rapid.T) {
		if err := m.begin(); err != nil {
			rt.Fatal(err)
		}
		s := &sequence{trialed: m, most: most, keys: map[string]string{},
			answered: map[string]effect.CallAnswer{}}
		defer s.endProcesses()
		rt.Repeat(s.actions())
		s.settle(rt)
		m.witness.tally(reached)
		m.tallyMachine(reached)
	})
	t.Logf("reached: %v", reached)
	for _, what := range []string{"started", "started on the allowlist", "started again", "completed", "unknown",
		"rejected", "expired", "reviewed", "denied", "not run", "answered", "not answered", "signed",
		"one of two rejected, the other done",
		"one of two expired, the other done", "one of two rejected, the other expired",
		"one of two unknown, the other answered", "answered in a form", "begun on a machine, for a yes",
		"begun on its rule", "never begun", "interrupted", "followed"} {
		if reached[what] == 0 && n >= 1000 && !realpart.Short() && !t.Failed() {
			t.Errorf("no sequence came to an action that was %s, so nothing was tried of it", what)
		}
	}
}

// rapidly sets one of rapid's flags for the length of a test.
func rapidly(t *testing.T, name string, n int) {
	before := flag.Lookup(name).Value.String()
	set := func(v string) {
		if err := flag.Set(name, v); err != nil {
			t.Fatal(err)
		}
	}
	set(strconv.Itoa(n))
	t.Cleanup(func() { set(before) })
}

// The users: the owner of these runs, and a stranger who must never learn of them.
const (
	ana = "ana"
	eve = "eve"
)

// sequence is one random history of one user.
type sequence struct {
	*trialed
	most, steps int
	prompts     int
	keys        map[string]string            // the run that each Idempotency-Key started
	yes         []string                     // approvals that a client saw as approved
	answered    map[string]effect.CallAnswer // answers to calls that were accepted, by action
}

// actions returns the possible actions, each as often as its weight. Little happens without the first few.
func (s *sequence) actions() map[string]func(*rapid.T) {
	all := map[string]func(*rapid.T){"": func(t *rapid.T) { report(t, s.witness.check()) }}
	for _, a := range []struct {
		name   string
		weight int
		do     func(*rapid.T)
	}{
		{"answer", 7, s.resolve}, {"begin", 5, s.start}, {"deliver", 7, s.deliverOne}, {"call", 2, s.modelCalls},
		{"let a process go", 3, s.zombie}, {"answer a call", 3, s.answerCall},
		{"answer a call again", 1, s.answerAgain},
		{"pass time", 3, s.passTime}, {"outlast", 1, s.outlast}, {"sweep", 2, s.sweep}, {"provider", 2, s.provider},
		{"begin again", 1, s.startAgain}, {"say", 1, s.modelAnswers},
		{"answer wrongly", 1, s.resolveWrongly}, {"deliver again", 1, s.deliverAgain},
		{"drop a message", 1, s.dropPublish}, {"take back an entry", 1, s.removeAllow},
		{"take back access", 1, s.access}, {"touch a draft", 1, s.touchDraft}, {"cancel", 1, s.cancel},
		{"change the machine", 1, s.changeMachine}, {"command", 2, s.aboutACommand},
		{"delete a thread", 1, s.deleteThread}, {"shut out", 1, s.disableUser},
	} {
		for i := range a.weight {
			all[fmt.Sprintf("%s (%d)", a.name, i+1)] = func(t *rapid.T) {
				if s.steps++; s.steps <= s.most {
					a.do(t)
				}
			}
		}
	}
	return all
}

func report(t *rapid.T, violations []string) {
	if len(violations) > 0 {
		t.Fatal(violations[0])
	}
}

func pick[T any](t *rapid.T, label string, from ...T) T {
	return rapid.SampledFrom(from).Draw(t, label)
}

// life draws the fate of a process: mostly nothing happens to it, and clocks are mostly right.
func (s *sequence) life(t *rapid.T) life {
	l := life{mishap: pick(t, "mishap", noMishap, noMishap, noMishap, noMishap, diesBefore, diesAfter, losesAnswer,
		losesCommit, stopsBefore, diesAtEffect, stopsAtEffect, stopsBefore)}
	if l.mishap != noMishap {
		l.at = pick(t, "commit", 1, 2, 3, 4)
	}
	l.skew = time.Duration(pick(t, "skew", 0, 0, 0, -600, 600, -61, 61)) * time.Second
	return l
}

func (s *sequence) ask(t *rapid.T, key, body string) (v *run.View, err error) {
	s.prompts++
	if s.model.Left() == 0 {
		s.modelCalls(t)
	}
	req := loop.StartRequest{UID: ana, Agent: s.agentFor(t, key), Key: key, BodyHash: body}
	in := loop.Prompt{Text: "request " + strconv.Itoa(s.prompts)}
	if req.Agent == maker && s.prompts%2 == 0 {
		in.Answer = json.RawMessage(sumForm)
	}
	if threads := s.threads(); len(threads) > 0 && pick(t, "thread", false, true) {
		req.ThreadID = pick(t, "which thread", threads...)
	}
	l := s.life(t)
	if key != "" {
		l.runID, l.starts = run.KeyedRunID(ana, key), true
	}
	err = errors.New("it did not live to tell")
	l.outcome = func(told *run.View, e error) { v, err = told, e }
	s.run(l, func(ctx context.Context, p *loop.Loop) (*run.View, error) { return p.Start(ctx, req, in) })
	return v, err
}

// threads returns the threads of the user's runs, oldest first.
func (s *sequence) threads() (out []string) {
	seen := map[string]bool{}
	for _, id := range s.witness.order {
		if r := s.witness.runs[id]; r != nil && !seen[r.threadID] {
			seen[r.threadID] = true
			out = append(out, r.threadID)
		}
	}
	return out
}

// start starts a run, on a new thread or an existing one, with a key or without.
// agentFor draws the agent of a new run. A key is always the same agent's.
func (s *sequence) agentFor(t *rapid.T, key string) string {
	agents := []string{run.Assistant, run.Assistant, clerk, maker}
	if key == "" {
		return pick(t, "agent", agents...)
	}
	return agents[int(key[len(key)-1])%len(agents)]
}

func (s *sequence) start(t *rapid.T) {
	key := ""
	if pick(t, "key", false, true) {
		key = "k" + strconv.Itoa(len(s.keys)+1)
		s.keys[key] = run.KeyedRunID(ana, key)
	}
	v, err := s.ask(t, key, "body")
	if err == nil && key != "" && v.RunID != s.keys[key] {
		t.Fatalf("invariant 20: key %s began run %s and not %s", key, v.RunID, s.keys[key])
	}
}

// startAgain uses a key again, with the same request or with another.
func (s *sequence) startAgain(t *rapid.T) {
	if len(s.keys) == 0 {
		return
	}
	key := "k" + strconv.Itoa(rapid.IntRange(1, len(s.keys)).Draw(t, "key"))
	known := s.witness.runs[s.keys[key]] != nil
	body := "body"
	if known && pick(t, "other", false, true) {
		body = "another body"
	}
	commits := s.witness.commits
	v, err := s.ask(t, key, body)
	if fault.Is(err, fault.Policy, fault.CodeKeyReused) && s.witness.ended[s.keys[key]] != nil {
		return // a conversation that was deleted does not come back
	}
	switch {
	case body != "body" && (!fault.Is(err, fault.Policy, fault.CodeKeyReused) || s.witness.commits != commits):
		t.Fatalf("invariant 20: key %s with another body: %v, and %d commits", key, err, s.witness.commits-commits)
	case body == "body" && err == nil && v.RunID != s.keys[key]:
		t.Fatalf("invariant 20: key %s returns run %s and not %s", key, v.RunID, s.keys[key])
	}
}

func (s *sequence) modelAnswers(t *rapid.T) {
	s.model.Then(pick(t, "answer", script.Turn{Text: "Here you are."},
		script.Turn{Correction: "Call the function again."},
		script.Turn{Err: fault.New(fault.Model, "busy", "The model is busy.")}))
}

func (s *sequence) modelCalls(t *rapid.T) {
	var calls []script.Call
	for range pick(t, "calls", 1, 1, 2, 2, 3) {
		calls = append(calls, s.aCall(t))
	}
	s.model.Then(script.Turn{Calls: calls})
}

// aCall draws a call that needs approval, is allowed, is denied, or is not valid.
func (s *sequence) aCall(t *rapid.T) script.Call {
	name := pick(t, "tool", "draft", "send", "draft", "send", "draft", "send", "command", "command", "command",
		"lookup", "click", "sign", "final_answer")
	text := pick(t, "text", "ten", "eleven")
	switch name {
	case "command":
		return script.Call{Name: name, Args: s.aCommand(t)}
	case "lookup":
		return script.Call{Name: name, Args: json.RawMessage(`{"word":"` + text + `"}`)}
	case "final_answer": // a run without a form has none
		return script.Call{Name: name, Args: json.RawMessage(pick(t, "sum", `{"sum":4}`, `{"sum":4}`, `{"sum":"four"}`))}
	case "click", "sign":
		return script.Call{Name: name, Args: json.RawMessage(`{}`)}
	}
	bob := script.Call{Name: name, Args: args([]string{"bob@x.org"}, text)}
	return pick(t, "arguments", bob, bob, bob, bob,
		script.Call{Name: name, Args: args([]string{"bob@x.org", "eva@x.org"}, text)},
		script.Call{Name: name, Args: args([]string{"eva@x.org"}, text)},
		script.Call{Name: name, Args: args([]string{"bob@denied.org"}, text)},
		script.Call{Name: name, Args: json.RawMessage(`{"to":[],"text":"ten"}`)},
		script.Call{Name: name, Args: json.RawMessage(`{"to":"bob"}`)},
		script.Call{Name: "nosuch", Args: json.RawMessage(`{}`)})
}

var decisions = map[run.Kind][]run.Decision{
	run.KindApproval: {run.ApproveOnce, run.ApproveAlways, run.ApproveOnce, run.ApproveEdited, run.Reject},
	run.KindReview:   {run.StartNew, run.ConfirmDone},
}

// resolve makes a decision of the owner about an open approval.
func (s *sequence) resolve(t *rapid.T) {
	waiting := s.waiting()
	if len(waiting) == 0 {
		return
	}
	ap := pick(t, "approval", waiting...)
	r := approval.Resolution{UID: ana, ApprovalID: ap.ID, Decision: pick(t, "decision", decisions[ap.Kind]...)}
	if pick(t, "hash", false, true) {
		r.ArgsHash = ap.ArgsHash
	}
	if r.Decision == run.ApproveEdited {
		r.EditedArgs = args([]string{pick(t, "edited", "eva@x.org", "bob@x.org", "bob@denied.org")}, "edited")
	}
	if r.Decision == run.ApproveEdited && ap.Tool == "command" {
		r.EditedArgs = s.aCommand(t)
	}
	l := s.life(t)
	l.runID, l.decides = ap.RunID, ap.ID
	l.outcome = func(_ *run.View, err error) {
		if err == nil {
			s.yes = append(s.yes, ap.ID)
		}
	}
	s.run(l, func(ctx context.Context, p *loop.Loop) (*run.View, error) { return p.Resolve(ctx, r) })
}

// resolveWrongly makes a decision that must have no effect: a stranger's, one about something other than the view, one
// that does not fit, or one that comes after another. Its refusal may be recorded in the audit, except a stranger's.
func (s *sequence) resolveWrongly(t *rapid.T) {
	if len(s.witness.order) == 0 {
		return
	}
	runID := pick(t, "run", s.witness.order...)
	ap, there := s.witness.approvals[run.ApprovalID(runID, pick(t, "number", 1, 2))]
	if !there {
		return
	}
	r := approval.Resolution{UID: ana, ApprovalID: ap.ID, Decision: run.ApproveOnce}
	why := pick(t, "wrong", "stranger", "hash", "kind", "late")
	switch {
	case why == "stranger":
		r.UID = eve
	// for another account it is requested again
	case why == "hash" && ap.Status == run.ApprovalOpen && ap.Place == s.linked():
		r.ArgsHash = "00" + ap.ArgsHash[2:]
		if r.ArgsHash == ap.ArgsHash {
			r.ArgsHash = "11" + ap.ArgsHash[2:]
		}
	case why == "kind" && ap.Kind == run.KindApproval:
		r.Decision = run.ConfirmDone
	case why == "late" && ap.Status != run.ApprovalOpen && ap.Decision == run.Reject:
		r.Decision = run.ApproveOnce
	case why == "late" && ap.Status != run.ApprovalOpen:
		r.Decision = run.Reject
	default:
		return
	}
	commits, events := s.witness.commits, len(s.witness.runs[runID].events)
	_, err := s.loop.Resolve(s.ctx, r)
	if err == nil || len(s.witness.runs[runID].events) != events || s.witness.approvals[ap.ID].Status != ap.Status {
		t.Fatalf("invariant 5: %s (%s): %v, and %d events", r.Decision, why, err,
			len(s.witness.runs[runID].events)-events)
	}
	if n := s.witness.commits - commits; n > 1 || n > 0 && why == "stranger" {
		t.Fatalf("invariant 5: %s (%s): %v, and %d commits", r.Decision, why, err, n)
	}
	if why != "stranger" {
		return
	}
	r.ApprovalID = run.ApprovalID(run.KeyedRunID(eve, "none"), 1)
	if _, missing := s.loop.Resolve(s.ctx, r); missing == nil || missing.Error() != err.Error() {
		t.Fatalf("invariant 19: a stranger gets %v for what is there, and %v for what is not", err, missing)
	}
}

// answerCall acts as the client of a waiting call: it carries out the call, or fails to, and reports the result. The
// call counts as executed whether or not the answer is accepted.
func (s *sequence) answerCall(t *rapid.T) {
	waiting := s.clientCalls()
	if len(waiting) == 0 {
		return
	}
	c := pick(t, "call", waiting...)
	given := effect.CallAnswer{ActionID: c.ActionID, Error: "The window was closed."}
	done := len(s.witness.effects[c.ActionID]) > 0
	if pick(t, "done", true, true, false) || done {
		given = effect.CallAnswer{ActionID: c.ActionID, Result: json.RawMessage(`{"ok":true}`)}
		if c.Tool == "sign" && !done {
			s.witness.effects[c.ActionID] = []providerCall{{c.Call, sentAs(c.Args)}}
		}
	}
	l := s.life(t)
	l.runID = c.RunID
	l.outcome = func(_ *run.View, err error) {
		if err == nil {
			s.answered[c.ActionID] = given
		}
	}
	s.run(l, func(ctx context.Context, p *loop.Loop) (*run.View, error) { return p.Answer(ctx, ana, c.RunID, given) })
}

// answerAgain repeats an accepted answer, or sends another one in its place, or sends it as a stranger.
func (s *sequence) answerAgain(t *rapid.T) {
	if len(s.answered) == 0 {
		return
	}
	given := s.answered[pick(t, "action", slices.Sorted(maps.Keys(s.answered))...)]
	r, a := s.witness.action(given.ActionID)
	if a == nil {
		return
	}
	why, uid := pick(t, "why", "again", "another", "stranger"), ana
	switch why {
	case "another":
		given.Result, given.Error = json.RawMessage(`{"ok":false}`), ""
	case "stranger":
		uid = eve
	}
	commits := s.witness.commits
	_, err := s.loop.Answer(s.ctx, uid, r, given)
	switch {
	case why == "again" && err != nil, why == "another" && !fault.Is(err, fault.Policy, fault.CodeAlreadyResolved),
		why == "stranger" && !fault.Is(err, fault.Auth, fault.CodeNotFound), s.witness.commits != commits:
		t.Fatalf("invariant 5: an answer (%s) to action %s: %v, and %d commits", why, a.ID, err,
			s.witness.commits-commits)
	}
}

// deliverOne delivers any of the queued messages. One that is not acknowledged is queued again.
func (s *sequence) deliverOne(t *rapid.T) {
	if len(s.queue) == 0 {
		return
	}
	i := rapid.IntRange(0, len(s.queue)-1).Draw(t, "message")
	l := s.life(t)
	l.runID = s.queue[i]
	s.queue = append(s.queue[:i:i], s.queue[i+1:]...)
	if !s.advance(l) {
		s.queue = append(s.queue, l.runID)
	}
}

// deliverAgain delivers a message of the past once more.
func (s *sequence) deliverAgain(t *rapid.T) {
	if len(s.past) == 0 {
		return
	}
	l := s.life(t)
	l.runID = pick(t, "message", s.past...)
	s.advance(l)
}

func (s *sequence) dropPublish(*rapid.T) {
	if len(s.queue) > 0 {
		s.queue = s.queue[:len(s.queue)-1]
	}
}

// zombie lets a stopped process continue, or ends it.
func (s *sequence) zombie(t *rapid.T) {
	if len(s.stopped) > 0 {
		s.release(rapid.IntRange(0, len(s.stopped)-1).Draw(t, "process"), pick(t, "lives", true, true, false))
	}
}

// passTime lets time pass: a moment, a lease, up to 25 hours, or until shortly before or after something ends.
func (s *sequence) passTime(t *rapid.T) {
	d := time.Duration(rapid.IntRange(0, 59).Draw(t, "seconds")) * time.Second
	switch pick(t, "span", "seconds", "lease", "hours", "end") {
	case "lease":
		d = time.Minute
	case "hours":
		d = time.Duration(rapid.IntRange(0, 25*60).Draw(t, "minutes")) * time.Minute
	case "end":
		if waiting := s.waiting(); len(waiting) > 0 {
			d = max(0, waiting[0].ExpiresAt.Sub(s.moment())+
				time.Duration(pick(t, "from the end", 1, 300, -1, -300))*time.Second)
		}
	}
	s.tick(d)
}

// outlast lets an approval expire after its sibling was decided. Chance alone does this too seldom.
func (s *sequence) outlast(*rapid.T) {
	for _, ap := range s.waiting() {
		for n := 1; n <= 2; n++ {
			sibling, there := s.witness.approvals[run.ApprovalID(ap.RunID, n)]
			if there && sibling.ID != ap.ID && sibling.Status != run.ApprovalOpen {
				s.tick(max(0, ap.ExpiresAt.Sub(s.moment())+time.Second))
				return
			}
		}
	}
}

func (s *sequence) sweep(t *rapid.T) {
	s.run(s.life(t), func(ctx context.Context, p *loop.Loop) (*run.View, error) {
		_, err := p.Sweep(ctx)
		return nil, err
	})
}

// provider draws the result of the next effect, and the answer to the reconcile after it.
func (s *sequence) provider(t *rapid.T) {
	s.next = append(s.next, pick(t, "effect", "ok", "ambiguous", "lost", "transient", "refuse", "reauth", "hang"))
	s.settleWith(pick(t, "settle", "", "done", "down", "unknown"))
}

func (s *sequence) settleWith(answer string) {
	if answer != "" {
		s.trialed.settle = append(s.trialed.settle, answer)
	}
}

func (s *sequence) removeAllow(t *rapid.T) {
	entries := s.witness.users[ana].Allow
	if len(entries) == 0 {
		return
	}
	i := rapid.IntRange(0, len(entries)-1).Draw(t, "entry")
	if err := s.rec.Disallow(s.ctx, ana, entries[i].ID, ""); err != nil {
		t.Fatalf("invariant 17: an entry that cannot be taken back: %v", err)
	}
}

// access withdraws the account's permission or grants it again, or links another account in its place.
func (s *sequence) access(t *rapid.T) {
	switch pick(t, "access", "give", "take back", "relink") {
	case "give":
		s.revoked = false
	case "take back":
		s.revoked = true
	case "relink":
		s.links++
	}
}

// touchDraft acts as the user, who edits or deletes a draft in the mailbox.
func (s *sequence) touchDraft(t *rapid.T) {
	if len(s.drafts) == 0 {
		return
	}
	made := s.drafts[fmt.Sprintf("h%d", rapid.IntRange(1, len(s.drafts)).Draw(t, "draft"))]
	if pick(t, "touch", "edit", "delete") == "delete" {
		made.gone = true
		return
	}
	made.text += " and more"
}

// cancel cancels a run as its owner, or as a stranger, who must learn nothing.
func (s *sequence) cancel(t *rapid.T) {
	if len(s.witness.order) == 0 {
		return
	}
	id := pick(t, "run", s.witness.order...)
	uid := pick(t, "who", ana, ana, eve)
	l := s.life(t)
	l.runID = id
	l.outcome = func(_ *run.View, err error) {
		if uid == eve && !fault.Is(err, fault.Auth, fault.CodeNotFound) {
			s.witness.broken(19, "a stranger cancels run %s and is told %v", id, err)
		}
	}
	s.run(l, func(ctx context.Context, p *loop.Loop) (*run.View, error) { return p.Cancel(ctx, uid, id) })
}

// deleteThread deletes a conversation, unless a run of it is in progress. No process is stopped meanwhile in a start
// with a key: a process that slept through the whole life and the deletion of the run of that key would start it again.
// This could cause no effect, because the run's audit cannot begin a second time, but its chain would then not be the
// run's.
func (s *sequence) deleteThread(t *rapid.T) {
	threads := s.threads()
	starting := func(p *process) bool { return p.starts }
	if len(threads) == 0 || slices.ContainsFunc(s.stopped, starting) {
		return
	}
	_, err := s.rec.DeleteThread(s.ctx, ana, pick(t, "thread", threads...))
	if err != nil && !fault.Is(err, fault.Policy, fault.CodeBusy) {
		t.Fatalf("invariant 10: a thread cannot be deleted: %v", err)
	}
	maps.DeleteFunc(s.answered, func(id string, _ effect.CallAnswer) bool { // a key may start its run again
		_, a := s.witness.action(id)
		return a == nil
	})
}

// disableUser disables the user, or enables the user again, as an operator does.
func (s *sequence) disableUser(t *rapid.T) {
	docs, err := s.store.Get(s.ctx, document.UserPath(ana))
	if err != nil || !docs[0].Exists() {
		return
	}
	u := s.witness.users[ana]
	u.Disabled = !u.Disabled && pick(t, "disable", false, true)
	data, err := strictjson.Marshal(u)
	if err == nil {
		_, err = s.store.Commit(s.ctx, store.Update(docs[0].Path, docs[0].Version, docs[0].Fields, data))
	}
	if err != nil {
		t.Fatal(err)
	}
}

// endProcesses ends those that are stopped.
func (s *sequence) endProcesses() {
	for len(s.stopped) > 0 {
		s.release(0, false)
	}
}

// settle removes all faults. Everything must reach its end, and then nothing may still move it.
func (s *sequence) settle(t *rapid.T) {
	s.rests()
	for len(s.stopped) > 0 {
		s.release(0, true)
	}
	s.next, s.trialed.settle = nil, nil
	// each half is longer than the lease of a later attempt, and than the time limit of a client
	s.rest(130 * time.Minute)
	report(t, append(s.witness.check(), s.witness.settled()...))
	for _, id := range s.yes {
		if a, there := s.witness.approvals[id]; there && a.Status == run.ApprovalOpen {
			t.Fatalf("invariant 12: approval %s was answered and is open", id)
		}
	}
	for id, given := range s.answered {
		_, a := s.witness.action(id)
		if f := given.Finished(); a != nil && (a.Execution != f.Execution || !bytes.Equal(a.Result, f.Result)) {
			t.Fatalf("invariant 12: the client's answer to action %s was taken, and it is %s with %s", id, a.Execution,
				a.Result)
		}
	}
	s.redeliver(t)
	s.rest(200 * time.Hour)
	report(t, append(s.witness.check(), s.witness.settled()...))
	for id, r := range s.witness.runs {
		if r.state.End == nil {
			t.Fatalf("invariant 11: run %s is %s after its deadline", id, r.state.Status)
		}
	}
	s.asStored(t)
	found, err := s.witness.stored(s.ctx)
	if err != nil {
		t.Fatal(err)
	}
	report(t, found)
}

// redeliver delivers every earlier message again. At rest, this changes nothing.
func (s *sequence) redeliver(t *rapid.T) {
	commits := s.witness.commits
	for _, id := range append(s.past[:len(s.past):len(s.past)], s.past...) {
		s.advance(life{runID: id})
	}
	if s.witness.commits != commits {
		t.Fatalf("invariant 21: delivering the past again made %d commits", s.witness.commits-commits)
	}
}

// asStored compares the witness's state with the stored one.
func (s *sequence) asStored(t *rapid.T) {
	for p, want := range s.witness.docs {
		docs, err := s.store.Get(s.ctx, p)
		if err != nil || !bytes.Equal(docs[0].Data, want.Data) {
			t.Fatalf("%s is not in the store as it was committed (%v)", p, err)
		}
	}
}
