package loop

import (
	"cmp"
	"context"
	"encoding/json"
	"strings"
	"time"

	"github.com/countersign-run/countersign/shared/agents"
	"github.com/countersign-run/countersign/shared/clip"
	"github.com/countersign-run/countersign/shared/document"
	"github.com/countersign-run/countersign/shared/fault"
	"github.com/countersign-run/countersign/shared/run"
	"github.com/countersign-run/countersign/shared/store"
	"github.com/countersign-run/countersign/shared/strictjson"
)

// StartRequest is a user's request to the agent.
type StartRequest struct {
	UID    string
	Agent  string // that carries it out; empty: the assistant
	Origin string // the web origin that it came from, or empty
	Prompt string
	// what the model gets before the prompt: information from the server, not the user's words
	SystemNote string
	ThreadID   string         // empty: a new thread
	Title      string         // of ThreadID, which is created if it does not exist; empty: it must exist
	Key        string         // the Idempotency-Key, or empty
	BodyHash   string         // of the request, compared where the key was used before
	Region     run.Region     // of the user, as far as the client sent it
	History    *ClientHistory // the conversation, where the client keeps it and not the store
	Call       *Call          // what is to be done without calling the model (StartCall)
}

// Start stores a run and moves it as far as it goes alone. For a key that was used before it returns the run that the
// key started, and starts nothing. Errors before the run is stored: AuthError not_found for a thread that is not the
// user's and for an agent that is not here, PolicyError too_many for the caps, idempotency_key_reused for a key with
// another body or of a run that was deleted. After that, errors are recorded in the run.
func (l *Loop) Start(ctx context.Context, req StartRequest, emit Sink) (*run.View, error) {
	id := run.NewID(l.Random)
	if req.Key != "" {
		id = run.KeyedRunID(req.UID, req.Key)
	}
	ex := l.newExecution(id, emit)
	if err := ex.start(ctx, req); err != nil {
		return nil, err
	}
	return ex.currentView(ctx)
}

func (ex *execution) start(ctx context.Context, req StartRequest) error {
	if ex.Agents.Get(req.Agent) == nil {
		return fault.NotFound()
	}
	threadID := req.ThreadID
	if threadID == "" {
		threadID = run.NewThreadID(ex.id)
	}
	ex.mark = run.NewID(ex.Random)[:13]
	if err := ex.createRun(ctx, req, threadID); err != nil {
		return err
	}
	ex.leaveEarlierCalls(ctx)
	if st, _ := ex.next(ex.state, ex.run, ex.now()); st == stepElsewhere {
		ex.publish(ctx)
		return nil
	}
	if ex.run.Lease.Owner != ex.owner { // the key's first request moves the run, or has moved it
		return nil
	}
	_, err := ex.advance(ctx)
	if Held(err) { // this process was stopped for longer than its lease, and another one has taken over
		return nil
	}
	return err
}

// createRun reads what a start depends on and commits the run, its thread and the user's message as one.
func (ex *execution) createRun(ctx context.Context, req StartRequest, threadID string) error {
	ctx, cancel := withAnswerTimeout(ctx)
	defer cancel()
	also := []string{document.UserPath(req.UID)}
	if req.ThreadID != "" {
		also = append(also, document.ThreadPath(threadID))
	}
	if err := ex.readForCreate(ctx, req, also); err != nil {
		return err
	}
	at := ex.placementOfCall(ctx, req)
	return ex.transition(ctx, func(tx *tx) error {
		if tx.run.ID != "" { // it exists: from an earlier request, or from this one, whose commit's answer was lost
			return tx.checkSameRequest(req)
		}
		// the key's run was deleted, and its audit stays: a second chain cannot begin there
		if ex.docs[document.AuditPath(ex.id, 1)].Exists() {
			return errKeyOfDeleted()
		}
		if err := tx.checkMayStart(req); err != nil {
			return err
		}
		tx.run = run.Run{ID: ex.id, UID: req.UID, ThreadID: threadID, Origin: req.Origin, BodyHash: req.BodyHash,
			Agent: tx.run.Agent, CreatedAt: tx.now, Deadline: tx.now.Add(tx.limits().Deadline)}
		tx.run.Nonce = run.NewNonce(ex.Random)
		if err := tx.setRegion(req.Region); err != nil {
			return err
		}
		if err := tx.openThread(req, threadID); err != nil {
			return err
		}
		if err := tx.countStart(req); err != nil {
			return err
		}
		if err := tx.addEvent(run.Event{Type: run.RunQueued, Queued: tx.input(req)}); err != nil {
			return err
		}
		tx.updates = append(tx.updates, Update{Status: run.Queued})
		if err := tx.appendMessage(run.RoleUser, "", "%s", req.Prompt); err != nil {
			return err
		}
		switch {
		case req.Call != nil:
			return tx.addCall(req.Call, at)
		case req.History != nil:
			return tx.restoreHistory(req.History)
		}
		return nil
	})
}

// setRegion sets the run's region: what the client sent, completed by the user's last known one. A region that is new
// is stored with the user, for later requests that send none.
func (tx *tx) setRegion(sent run.Region) error {
	u, err := tx.user()
	if err != nil {
		return err
	}
	tx.run.Region = sent.Or(u.Region)
	if tx.run.Region == u.Region {
		return nil
	}
	return tx.updateUser(func(u *run.User) { u.Region = tx.run.Region })
}

func (tx *tx) input(req StartRequest) *run.Input {
	input := &run.Input{Agent: tx.run.Agent, Prompt: req.Prompt, SystemNote: req.SystemNote,
		SingleCall: req.Call != nil}
	told := tx.ex.Agents.Get(tx.run.Agent).History == agents.HistoryWords
	if told && !input.SingleCall { // a run of one call has no model to tell
		input.History = tx.thread.History()
		if len(input.History) > 0 {
			input.Mark = tx.ex.mark
		}
	}
	if req.History != nil {
		input.Contents = req.History.Contents
	}
	return input
}

// readForCreate reads the documents. The run's own, and the first of its audit, are read only where a key may have
// named the run before.
func (ex *execution) readForCreate(ctx context.Context, req StartRequest, paths []string) error {
	if req.Key != "" {
		return ex.load(ctx, append(paths, document.AuditPath(ex.id, 1))...)
	}
	ex.state = &run.State{}
	return ex.read(ctx, paths...)
}

// checkSameRequest checks that a key that was used before comes with its first request again, and that its conversation
// still exists.
func (tx *tx) checkSameRequest(req StartRequest) error {
	another := tx.run.Agent != "" && tx.run.Agent != cmp.Or(req.Agent, run.Assistant)
	if tx.run.UID != req.UID || tx.run.BodyHash != req.BodyHash || another {
		return fault.New(fault.Policy, fault.CodeKeyReused,
			"This Idempotency-Key was used before, with another request.")
	}
	t := &run.Thread{}
	if tx.state.End == nil { // its conversation cannot be deleted before it ends
		return nil
	}
	if _, err := tx.doc(document.ThreadPath(tx.run.ThreadID), t); err != nil {
		return err
	}
	if t.Deleting {
		return errKeyOfDeleted()
	}
	return nil
}

func errKeyOfDeleted() error {
	return fault.New(fault.Policy, fault.CodeKeyReused,
		"This Idempotency-Key was used before, in a conversation that was deleted.")
}

// checkMayStart refuses a disabled user, and checks the limits and the caps: users are not asked for more approvals
// than they can read.
func (tx *tx) checkMayStart(req StartRequest) error {
	tx.run.UID, tx.run.Agent = req.UID, cmp.Or(req.Agent, run.Assistant)
	u, err := tx.user()
	if err != nil {
		return err
	}
	if err := u.CheckEnabled(); err != nil {
		return err
	}
	if err := tx.ex.checkLimits(u, req.Call == nil, tx.now); err != nil {
		return err
	}
	return tx.checkCaps(u)
}

// checkCaps checks how many approvals the user has open, and was asked for today, against the limits of the run's
// agent.
func (tx *tx) checkCaps(u *run.User) error {
	p, now := tx.limits(), tx.now
	if p.MaxOpen > 0 && u.Open >= p.MaxOpen {
		return fault.New(fault.Policy, fault.CodeTooMany,
			"%d approvals are waiting for you. Please answer some of them first.", u.Open).After(time.Minute)
	}
	if p.MaxPerDay > 0 && u.ApprovalsOn(now) >= p.MaxPerDay {
		tomorrow := now.UTC().Truncate(24 * time.Hour).Add(24 * time.Hour)
		return fault.New(fault.Policy, fault.CodeTooMany,
			"You have been asked for %d approvals today, which is the limit.", p.MaxPerDay).After(tomorrow.Sub(now))
	}
	return nil
}

// openThread puts the user's thread, or a new one, into the tx.
func (tx *tx) openThread(req StartRequest, id string) error {
	if req.ThreadID == "" {
		tx.thread = &run.Thread{ID: id, UID: req.UID, Title: title(req.Prompt), CreatedAt: tx.now}
		return nil
	}
	t := &run.Thread{}
	doc, err := tx.doc(document.ThreadPath(id), t)
	if err != nil {
		return err
	}
	if !doc.Exists() && req.Title != "" {
		tx.thread = &run.Thread{ID: id, UID: req.UID, Title: title(req.Title), CreatedAt: tx.now}
		return nil
	}
	if t.ID == "" || t.UID != req.UID || t.Deleting {
		return fault.NotFound()
	}
	if t.Log.Count >= run.MaxMessages {
		return fault.New(fault.Policy, CodeThreadFull,
			"This conversation has %d messages, which is the limit. Please start a new one.", t.Log.Count)
	}
	if req.Call == nil && req.History == nil { // its user writes on
		tx.ex.earlier, t.Waiting = t.Waiting, nil
	}
	tx.thread = t
	return nil
}

// title returns the first line of a prompt, cut to 80 bytes.
func title(prompt string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(prompt), "\n")
	return clip.Text(line, 80)
}

// Get returns a run of the user as it is by the clock (see currentView), and its stored events.
func (l *Loop) Get(ctx context.Context, uid, runID string) (*run.View, []run.Event, error) {
	ex := l.newExecution(runID, nil)
	if err := ex.loadOwned(ctx, uid); err != nil {
		return nil, nil, err
	}
	v, err := ex.currentView(ctx)
	return v, ex.events, err
}

// loadOwned reads the run, which must be the user's, and whose conversation must still exist. Its owner is checked
// before anything else of it is read, so that the answer for another user's run takes as long as for none.
func (ex *execution) loadOwned(ctx context.Context, uid string, also ...string) error {
	if err := ex.read(ctx, append([]string{document.RunPath(ex.id)}, also...)...); err != nil {
		return err
	}
	d := ex.docs[document.RunPath(ex.id)]
	if !d.Exists() || document.RunFieldsOf(d).UID != uid {
		return fault.NotFound()
	}
	if err := ex.checkNotDeleted(ctx, d); err != nil {
		return err
	}
	return ex.fold(ctx)
}

// checkNotDeleted refuses a run whose conversation is being deleted. The conversation of a run that has not ended
// cannot be.
func (ex *execution) checkNotDeleted(ctx context.Context, runDoc store.Doc) error {
	f := document.RunFieldsOf(runDoc)
	if f.Status != string(run.Completed) && f.Status != string(run.Failed) {
		return nil
	}
	path := document.ThreadPath(f.ThreadID)
	if err := ex.read(ctx, path); err != nil {
		return err
	}
	var t run.Thread
	doc := ex.docs[path]
	if !doc.Exists() {
		return nil
	}
	if err := document.Decode(doc, &t); err != nil {
		return err
	}
	if t.Deleting {
		return fault.NotFound()
	}
	return nil
}

// currentView returns the run as its owner sees it by the clock: what follows from an expired approval or a deadline is
// shown at once, as the sweep will have it written, and is not written here. The execution must not be used for moving
// the run afterwards.
func (ex *execution) currentView(ctx context.Context) (*run.View, error) {
	st, _ := ex.next(ex.state, ex.run, ex.now())
	if st != stepEnd && st != stepExpire || ex.run.Lease.Held(ex.owner, ex.now()) {
		return ex.view(), nil
	}
	tx, err := ex.decide(ctx, (*tx).applyClock)
	if err != nil {
		return nil, err
	}
	ex.state = tx.state
	return ex.view(), nil
}

// view returns the run as its owner sees it, with a summary in the server's words until the run has its own.
func (ex *execution) view() *run.View {
	return run.NewView(ex.run, ex.state, ex.progressSummary())
}

// progressSummary describes the progress of a run that has not ended.
func (ex *execution) progressSummary() string {
	open := ex.state.Open()
	switch {
	case ex.state.End != nil:
		return ex.state.End.Summary
	case len(open) == 0:
		return "The assistant is working on it."
	}
	var lines []string
	for _, a := range open {
		lines = append(lines, ex.waitingFor(a))
	}
	return strings.Join(lines, "\n")
}

// waitingFor describes what a waiting action waits for.
func (l *Loop) waitingFor(a *run.Action) string {
	switch a.Kind {
	case run.KindReview:
		return "Please check whether this was done: " + l.title(a)
	case run.KindCall:
		return "Waiting for an answer: " + l.title(a)
	}
	return "Waiting for your approval: " + l.title(a)
}

// title describes the action in the server's words.
func (l *Loop) title(a *run.Action) string {
	if t := l.Tools[a.Tool]; t != nil {
		if p, err := t.Preview(a.Args); err == nil {
			return p.Title
		}
	}
	return "an action of " + a.Tool
}

// jsonString returns s as a JSON string, for results that are text.
func jsonString(s string) json.RawMessage {
	b, err := strictjson.Marshal(s)
	if err != nil {
		return json.RawMessage(`""`)
	}
	return b
}
