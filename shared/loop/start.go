package loop

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"github.com/countersign-run/countersign/shared/agent"
	"github.com/countersign-run/countersign/shared/document"
	"github.com/countersign-run/countersign/shared/fault"
	"github.com/countersign-run/countersign/shared/store"
	"github.com/countersign-run/countersign/shared/strictjson"
)

// Ask is a user's request to the agent.
type Ask struct {
	UID      string
	Origin   string // the web origin that it came from, or empty
	Prompt   string
	News     string       // what the model is told before the prompt: information of ours, and none of the user's words
	ThreadID string       // empty: a new thread
	Title    string       // of ThreadID, which is begun where it is not there; empty: it must be there
	Key      string       // the Idempotency-Key, or empty
	BodyHash string       // of the request, compared where the key was used before
	Region   agent.Region // of the user, as far as the client told of it
	Kept     *Kept        // the conversation, where the caller keeps it and not the store
	Call     *Call        // what is to be done without asking the model (Propose)
}

// Start stores a run and moves it as far as it goes alone. A key that was used before gives the run that it started,
// and starts nothing. Errors before the run is stored: AuthError not_found for a thread that is not the user's,
// PolicyError too_many for the caps, idempotency_key_reused for a key with another body or of a run
// that was deleted; after that the run tells.
func (l *Loop) Start(ctx context.Context, q Ask, emit Sink) (*agent.RunView, error) {
	id := agent.NewID(l.Random)
	if q.Key != "" {
		id = agent.KeyedRunID(q.UID, q.Key)
	}
	m := l.mover(id, emit)
	if err := m.start(ctx, q); err != nil {
		return nil, err
	}
	return m.standing(ctx)
}

func (m *mover) start(ctx context.Context, q Ask) error {
	threadID := q.ThreadID
	if threadID == "" {
		threadID = agent.NewThreadID(m.id)
	}
	m.mark = agent.NewID(m.Random)[:13]
	if err := m.begin(ctx, q, threadID); err != nil {
		return err
	}
	if m.run.Lease.Owner != m.owner { // the key's first request moves it, or has moved it
		return nil
	}
	_, err := m.advance(ctx)
	if Held(err) { // this process was stopped for longer than its lease, and another one has taken over
		return nil
	}
	return err
}

// begin reads what a start depends on and commits the run, its thread and the user's message as one.
func (m *mover) begin(ctx context.Context, q Ask, threadID string) error {
	ctx, cancel := promptly(ctx)
	defer cancel()
	also := []string{document.UserPath(q.UID)}
	if q.ThreadID != "" {
		also = append(also, document.ThreadPath(threadID))
	}
	if err := m.beginReads(ctx, q, also); err != nil {
		return err
	}
	at := m.placeOf(ctx, q)
	return m.transition(ctx, func(d *draft) error {
		if d.run.ID != "" { // it is there already: an earlier request's, or this one's, whose answer was lost
			return d.sameRequest(q)
		}
		if m.docs[document.AuditPath(m.id, 1)].Exists() { // its run was deleted, and its audit stays: a second chain cannot begin there
			return keyOfDeleted()
		}
		if err := d.mayAsk(q); err != nil {
			return err
		}
		d.run = agent.Run{ID: m.id, UID: q.UID, ThreadID: threadID, Origin: q.Origin, BodyHash: q.BodyHash, CreatedAt: d.now, Deadline: d.now.Add(m.Profile.Deadline)}
		d.run.Nonce = agent.NewNonce(m.Random)
		if err := d.settleIn(q.Region); err != nil {
			return err
		}
		if err := d.openThread(q, threadID); err != nil {
			return err
		}
		if err := d.countStart(q); err != nil {
			return err
		}
		if err := d.event(agent.Event{Type: agent.RunQueued, Queued: d.question(q)}); err != nil {
			return err
		}
		d.notices = append(d.notices, Notice{Status: agent.Queued})
		if err := d.say(agent.RoleUser, "", "%s", q.Prompt); err != nil {
			return err
		}
		switch {
		case q.Call != nil:
			return d.propose(q.Call, at)
		case q.Kept != nil:
			return d.restore(q.Kept)
		}
		return nil
	})
}

// settleIn gives the run its region: what the client told of it, and for the rest what the user's last one did. What is new
// is kept with the user, for the next that tells nothing.
func (d *draft) settleIn(told agent.Region) error {
	u, err := d.theUser()
	if err != nil {
		return err
	}
	d.run.Region = told.Or(u.Region)
	if d.run.Region == u.Region {
		return nil
	}
	return d.moveUser(func(u *agent.User) { u.Region = d.run.Region })
}

func (d *draft) question(q Ask) *agent.Question {
	question := &agent.Question{Prompt: q.Prompt, News: q.News, Direct: q.Call != nil}
	if !question.Direct { // a run of one call asks no model that would want to know
		question.History = d.thread.History()
		if len(question.History) > 0 {
			question.Mark = d.m.mark
		}
	}
	if q.Kept != nil {
		question.Earlier = q.Kept.Earlier
	}
	return question
}

// beginReads reads the documents; the run's own, and its audit's first, are only read where a key may have named it before.
func (m *mover) beginReads(ctx context.Context, q Ask, paths []string) error {
	if q.Key != "" {
		return m.load(ctx, append(paths, document.AuditPath(m.id, 1))...)
	}
	m.state = &agent.State{}
	return m.read(ctx, paths...)
}

// sameRequest holds a key that was used before to its first request, and to a conversation that is still there.
func (d *draft) sameRequest(q Ask) error {
	if d.run.UID != q.UID || d.run.BodyHash != q.BodyHash {
		return fault.New(fault.Policy, fault.CodeKeyReused, "This Idempotency-Key was used before, with another request.")
	}
	t := &agent.Thread{}
	if d.state.End == nil { // its conversation cannot be deleted yet
		return nil
	}
	if _, err := d.doc(document.ThreadPath(d.run.ThreadID), t); err != nil {
		return err
	}
	if t.Deleting {
		return keyOfDeleted()
	}
	return nil
}

func keyOfDeleted() error {
	return fault.New(fault.Policy, fault.CodeKeyReused, "This Idempotency-Key was used before, in a conversation that was deleted.")
}

// mayAsk turns away who was shut out, and holds the caps: nobody is asked more than they can read.
func (d *draft) mayAsk(q Ask) error {
	d.run.UID = q.UID
	u, err := d.theUser()
	if err != nil {
		return err
	}
	if err := u.MayAct(); err != nil {
		return err
	}
	if err := d.m.mayStart(u, q.Call == nil, d.now); err != nil {
		return err
	}
	return d.m.withinCaps(u, d.now)
}

func (l *Loop) withinCaps(u *agent.User, now time.Time) error {
	p := l.Profile
	if p.MaxOpen > 0 && u.Open >= p.MaxOpen {
		return fault.New(fault.Policy, fault.CodeTooMany, "%d approvals are waiting for you. Please answer some of them first.", u.Open).After(time.Minute)
	}
	if p.MaxPerDay > 0 && u.AskedOn(now) >= p.MaxPerDay {
		tomorrow := now.UTC().Truncate(24 * time.Hour).Add(24 * time.Hour)
		return fault.New(fault.Policy, fault.CodeTooMany, "You have been asked for %d approvals today, which is the limit.", p.MaxPerDay).After(tomorrow.Sub(now))
	}
	return nil
}

// openThread brings the user's thread, or a new one, into the draft.
func (d *draft) openThread(q Ask, id string) error {
	if q.ThreadID == "" {
		d.thread = &agent.Thread{ID: id, UID: q.UID, Title: title(q.Prompt), CreatedAt: d.now}
		return nil
	}
	t := &agent.Thread{}
	doc, err := d.doc(document.ThreadPath(id), t)
	if err != nil {
		return err
	}
	if !doc.Exists() && q.Title != "" {
		d.thread = &agent.Thread{ID: id, UID: q.UID, Title: title(q.Title), CreatedAt: d.now}
		return nil
	}
	if t.ID == "" || t.UID != q.UID || t.Deleting {
		return fault.NotFound()
	}
	if t.Log.Count >= agent.MaxMessages {
		return fault.New(fault.Policy, CodeThreadFull, "This conversation has %d messages, which is the limit. Please start a new one.", t.Log.Count)
	}
	d.thread = t
	return nil
}

// title is the first line of the first prompt, cut.
func title(prompt string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(prompt), "\n")
	return agent.Cut(line, 80)
}

// Get returns a run of the user as it stands by the clock (see standing), and its stored events.
func (l *Loop) Get(ctx context.Context, uid, runID string) (*agent.RunView, []agent.Event, error) {
	m := l.mover(runID, nil)
	if err := m.loadOwn(ctx, uid); err != nil {
		return nil, nil, err
	}
	v, err := m.standing(ctx)
	return v, m.events, err
}

// loadOwn reads the run, which must be the user's, and whose conversation must still be there. Whose it is is asked before
// anything else of it is read, so that another user's run takes as long as none.
func (m *mover) loadOwn(ctx context.Context, uid string, also ...string) error {
	if err := m.read(ctx, append([]string{document.RunPath(m.id)}, also...)...); err != nil {
		return err
	}
	d := m.docs[document.RunPath(m.id)]
	if !d.Exists() || document.RunFieldsOf(d).UID != uid {
		return fault.NotFound()
	}
	if err := m.notDeleted(ctx, d); err != nil {
		return err
	}
	return m.fold(ctx)
}

// notDeleted refuses a run whose conversation is being deleted. That of a run that has not ended cannot be.
func (m *mover) notDeleted(ctx context.Context, run store.Doc) error {
	f := document.RunFieldsOf(run)
	if f.Status != string(agent.Completed) && f.Status != string(agent.Failed) {
		return nil
	}
	path := document.ThreadPath(f.ThreadID)
	if err := m.read(ctx, path); err != nil {
		return err
	}
	var t agent.Thread
	doc := m.docs[path]
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

// standing is the run as its owner sees it by the clock: what an expired approval or a deadline makes of a run is told at
// once, as the sweep will have it written, and is not written here. The mover must not move the run any more.
func (m *mover) standing(ctx context.Context) (*agent.RunView, error) {
	st, _ := m.next(m.state, m.run, m.now())
	if st != stepEnd && st != stepExpire || m.run.Lease.Held(m.owner, m.now()) {
		return m.view(), nil
	}
	d, err := m.decide(ctx, (*draft).lapse)
	if err != nil {
		return nil, err
	}
	m.state = d.state
	return m.view(), nil
}

// view is the run as its owner sees it, with a summary in our words until the run has its own.
func (m *mover) view() *agent.RunView {
	return agent.View(m.run, m.state, m.progress())
}

// progress says where a run stands that has not ended.
func (m *mover) progress() string {
	open := m.state.Open()
	switch {
	case m.state.End != nil:
		return m.state.End.Summary
	case len(open) == 0:
		return "The assistant is working on it."
	}
	var lines []string
	for _, a := range open {
		lines = append(lines, m.asks(a))
	}
	return strings.Join(lines, "\n")
}

// asks says what a waiting action waits for.
func (l *Loop) asks(a *agent.Action) string {
	switch a.Kind {
	case agent.KindReview:
		return "Please check whether this was done: " + l.title(a)
	case agent.KindCall:
		return "Waiting for an answer: " + l.title(a)
	}
	return "Waiting for your approval: " + l.title(a)
}

// title is what the action does, in our own words.
func (l *Loop) title(a *agent.Action) string {
	if t := l.Tools[a.Tool]; t != nil {
		if p, err := t.Preview(a.Args); err == nil {
			return p.Title
		}
	}
	return "an action of " + a.Tool
}

// raw is a JSON string, for results that are words.
func raw(s string) json.RawMessage {
	b, err := strictjson.Marshal(s)
	if err != nil {
		return json.RawMessage(`""`)
	}
	return b
}
