package loop

import (
	"context"
	"fmt"
	"time"

	"github.com/countersign-run/countersign/shared/agent"
	"github.com/countersign-run/countersign/shared/audit"
	"github.com/countersign-run/countersign/shared/document"
	"github.com/countersign-run/countersign/shared/store"
	"github.com/countersign-run/countersign/shared/strictjson"
)

// draft is a transition in the making: the run as it will be, and what else is written with it.
type draft struct {
	m      *mover
	now    time.Time
	run    agent.Run
	state  *agent.State
	events []agent.Event

	thread    *agent.Thread
	messages  []agent.Message
	user      *agent.User
	userMoved bool
	approvals map[string]*agent.Approval // as they will be
	audits    []audit.Entry
	touched   bool // the run's document changes even without an event (a lease)
	keepLease bool // the transition is not the mover's: the lease stays as it is
	soon      bool // somebody must look at the run at once, though nobody moves it

	unanswered int // calls of the model that were made and that no event tells of

	writes  []store.Write
	notices []Notice
}

func (m *mover) draft() (*draft, error) {
	state, err := agent.Fold(m.events)
	if err != nil {
		return nil, err
	}
	return &draft{m: m, now: m.now(), run: m.run, state: state, approvals: map[string]*agent.Approval{}}, nil
}

func (d *draft) empty() bool { return len(d.events) == 0 && !d.touched }

// doc gives a cached document, or asks for it.
func (d *draft) doc(path string, into any) (store.Doc, error) {
	doc, ok := d.m.docs[path]
	if !ok {
		return doc, errNeed{path}
	}
	if !doc.Exists() {
		return doc, nil
	}
	return doc, document.Decode(doc, into)
}

// event adds one event, which the state machine must permit.
func (d *draft) event(e agent.Event) error {
	e.Seq, e.At = d.run.Log.Count+int64(len(d.events))+1, d.now
	if err := d.state.Apply(e); err != nil {
		return err
	}
	d.events = append(d.events, e)
	if a := d.state.Action(e.ActionID); a != nil {
		d.notices = append(d.notices, Notice{Action: agent.ViewAction(d.nonce(), d.state, a)})
	}
	return nil
}

// theUser gives the user's document for reading.
func (d *draft) theUser() (*agent.User, error) {
	if d.user == nil {
		u := &agent.User{UID: d.run.UID}
		if _, err := d.doc(document.UserPath(d.run.UID), u); err != nil {
			return nil, err
		}
		d.user = u
	}
	return d.user, nil
}

// moveUser changes the user's document, and with it makes sure that nobody else did since it was read.
func (d *draft) moveUser(change func(*agent.User)) error {
	u, err := d.theUser()
	if err != nil {
		return err
	}
	change(u)
	d.userMoved = true
	return nil
}

// say adds a message to the thread. A thread that was deleted meanwhile, or is being deleted, hears nothing.
func (d *draft) say(role agent.Role, approvalID, format string, args ...any) error {
	if d.thread == nil {
		t := &agent.Thread{}
		if _, err := d.doc(document.ThreadPath(d.run.ThreadID), t); err != nil {
			return err
		}
		d.thread = t
	}
	text := format
	if len(args) > 0 {
		text = fmt.Sprintf(format, args...)
	}
	d.messages = append(d.messages, agent.Message{Role: role, Text: text, RunID: d.run.ID, ApprovalID: approvalID, At: d.now})
	return nil
}

// conclude adds the message that the run ends with, and what the run came to. As many bytes of it are the model's own words.
func (d *draft) conclude(end *agent.End, words int) error {
	if err := d.say(agent.RoleAssistant, "", "%s", end.Summary); err != nil {
		return err
	}
	last := &d.messages[len(d.messages)-1]
	last.Words, last.Outcome = words, d.m.outcomeLine(d.state, end)
	return nil
}

// approval gives an approval for changing.
func (d *draft) approval(id string) (*agent.Approval, error) {
	if a := d.approvals[id]; a != nil {
		return a, nil
	}
	a := &agent.Approval{}
	doc, err := d.doc(document.ApprovalPath(id), a)
	if err != nil {
		return nil, err
	}
	if !doc.Exists() {
		return nil, fmt.Errorf("loop: approval %s of run %s is missing", id, d.run.ID)
	}
	d.approvals[id] = a
	return a, nil
}

// record adds an audit entry about an action, or about the run.
func (d *draft) record(kind string, a *agent.Action, fill func(*audit.Entry)) {
	e := audit.Entry{RunID: d.run.ID, UID: d.run.UID, At: d.now, Kind: kind}
	if a != nil {
		e.ActionID, e.Tool, e.InputHash, e.ApprovalID = a.ID, a.Tool, audit.InputHash(d.nonce(), a.ArgsHash), a.ApprovalID
		e.PolicyDecision, e.Rule, e.ExecutionStatus = a.PolicyDecision, a.Rule, string(a.Execution)
		if a.Turn >= 1 && a.Turn <= len(d.state.Turns) {
			e.Model = d.state.Turns[a.Turn-1].Model
		}
	}
	if fill != nil {
		fill(&e)
	}
	d.audits = append(d.audits, e)
}

// nonce is the run's. One that an earlier release began gets its own with its next entry.
func (d *draft) nonce() []byte {
	if len(d.run.Nonce) == 0 {
		d.run.Nonce = agent.NewNonce(d.m.Random)
	}
	return d.run.Nonce
}

// close brings status, lease and due time in line with the state, and lays out the writes.
func (d *draft) close() error {
	if d.empty() {
		return nil
	}
	if err := d.become(d.state.Derived()); err != nil {
		return err
	}
	if !d.keepLease {
		d.setLease()
	}
	if err := d.settleUse(); err != nil {
		return err
	}
	for _, lay := range []func() error{d.layAudit, d.layRun, d.layThread, d.layApprovals, d.layUser} {
		if err := lay(); err != nil {
			return err
		}
	}
	return nil
}

// become brings the run's status in line with what follows from the rest of it.
func (d *draft) become(to agent.RunStatus) error {
	if d.state.End != nil || to == d.state.Status {
		return nil
	}
	if err := d.event(agent.Event{Type: agent.RunStatusChange, Status: to}); err != nil {
		return err
	}
	d.notices = append(d.notices, Notice{Status: to})
	return nil
}

// setLease keeps the run for the step that this mover makes next, or lets it go.
func (d *draft) setLease() {
	lost := d.m.lost(d.run)
	if len(d.events) > 0 {
		lost = 0
	}
	d.run.Lease = agent.Lease{Lost: lost}
	if need := d.m.stepTime(d.state, d.run, d.now); need > 0 && !d.soon {
		d.run.Lease.Owner, d.run.Lease.Until = d.m.owner, d.now.Add(need+d.m.Profile.LeaseMargin+setback(lost))
	}
}

// due is when the run must be looked at again, or zero where it need not be.
func (d *draft) due() time.Time {
	switch {
	case d.state.End != nil:
		return time.Time{}
	case d.keepLease && len(d.events) == 0: // the run itself does not move
		return document.RunFieldsOf(d.m.docs[document.RunPath(d.run.ID)]).Due
	case d.run.Lease.Owner != "":
		return d.run.Lease.Until
	case d.soon || len(d.state.Open()) == 0 || d.m.stepTime(d.state, d.run, d.now) > 0:
		return d.now.Add(publishGrace)
	}
	at := d.run.Deadline
	for _, a := range d.state.Open() {
		if a.Kind == agent.KindApproval && a.ExpiresAt.Before(at) { // whatever else waits ends with the run
			at = a.ExpiresAt
		}
	}
	return at
}

func (d *draft) put(path string, fields map[string]any, v any) error {
	data, err := strictjson.Marshal(v)
	if err != nil {
		return err
	}
	if doc := d.m.docs[path]; doc.Exists() {
		d.writes = append(d.writes, store.Update(path, doc.Version, fields, data))
		return nil
	}
	d.writes = append(d.writes, store.Create(path, fields, data))
	return nil
}

func (d *draft) layRun() error {
	d.run.UpdatedAt = d.now
	path := document.RunPath(d.run.ID)
	chunks, err := d.run.Log.Append(0, 1<<20, d.events...)
	if err != nil {
		return err
	}
	for _, c := range chunks {
		if err := d.put(document.ChunkPath(path, "events", c.First), nil, c.Items); err != nil {
			return err
		}
	}
	fields := document.RunFields{UID: d.run.UID, ThreadID: d.run.ThreadID, Status: string(d.state.Status),
		CreatedAt: d.run.CreatedAt, Due: d.due()}
	return d.put(path, fields.Map(), d.run)
}

func (d *draft) layThread() error {
	path := document.ThreadPath(d.run.ThreadID)
	if d.thread == nil || d.thread.ID == "" || d.thread.Deleting {
		return nil
	}
	chunks, err := d.thread.Add(d.messages...)
	if err != nil {
		return err
	}
	for _, c := range chunks {
		if err := d.put(document.ChunkPath(path, "messages", c.First), nil, c.Items); err != nil {
			return err
		}
	}
	return d.put(path, document.ThreadFields{UID: d.thread.UID, UpdatedAt: d.thread.UpdatedAt}.Map(), d.thread)
}

func (d *draft) layApprovals() error {
	for _, a := range d.approvals {
		fields := document.ApprovalFields{UID: a.UID, RunID: a.RunID, Status: string(a.Status), RequestedAt: a.RequestedAt}
		if err := d.put(document.ApprovalPath(a.ID), fields.Map(), a); err != nil {
			return err
		}
	}
	return nil
}

func (d *draft) layUser() error {
	if !d.userMoved {
		return nil
	}
	return d.put(document.UserPath(d.user.UID), nil, d.user)
}

func (d *draft) layAudit() error {
	for _, e := range d.audits {
		sealed, head := audit.Seal(d.run.Audit, e)
		d.run.Audit = head
		if err := d.put(document.AuditPath(sealed.RunID, sealed.Seq), sealed.Fields(), sealed); err != nil {
			return err
		}
	}
	return nil
}

// commit makes the draft true and takes it over into the mover.
func (d *draft) commit(ctx context.Context) error {
	versions, err := d.m.Store.Commit(ctx, d.writes...)
	if err != nil {
		return err
	}
	for i, w := range d.writes {
		doc := w.Doc
		doc.Version = versions[i]
		d.m.docs[doc.Path] = doc
		d.m.sawTime(versions[i])
	}
	d.m.run, d.m.state = d.run, d.state
	d.m.events = append(d.m.events, d.events...)
	return nil
}

// announce tells the sink, after the commit.
func (d *draft) announce() {
	for _, n := range d.notices {
		d.m.tell(n)
	}
	if d.state.End != nil {
		d.m.tell(Notice{Status: d.state.Status})
	}
}

func (m *mover) tell(n Notice) {
	n.RunID, n.ThreadID = m.run.ID, m.run.ThreadID
	m.emit(n)
}
