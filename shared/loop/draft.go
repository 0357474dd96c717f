package loop

import (
	"context"
	"fmt"
	"time"

	"github.com/countersign-run/countersign/shared/audit"
	"github.com/countersign-run/countersign/shared/document"
	"github.com/countersign-run/countersign/shared/run"
	"github.com/countersign-run/countersign/shared/store"
	"github.com/countersign-run/countersign/shared/strictjson"
)

// tx is a transition in the making: the run as it will be, and the other documents that are written with it.
type tx struct {
	ex     *execution
	now    time.Time
	run    run.Run
	state  *run.State
	events []run.Event

	thread      *run.Thread
	messages    []run.Message
	userDoc     *run.User
	userChanged bool
	approvals   map[string]*run.Approval // as they will be
	audits      []audit.Entry
	changed     bool // the run's document changes even without an event (its lease)
	keepLease   bool // the transition does not move the run: the lease stays as it is
	left        bool // the run's agent is not known here, and nobody else has moved the run in time
	dueNow      bool // the run must be moved at once, by a process that does not have it yet

	unrecordedCalls int // calls of the model that were made and that no event records

	writes  []store.Write
	updates []Update
}

func (ex *execution) newTx() (*tx, error) {
	state, err := run.Fold(ex.events)
	if err != nil {
		return nil, err
	}
	return &tx{ex: ex, now: ex.now(), run: ex.run, state: state, approvals: map[string]*run.Approval{}}, nil
}

func (tx *tx) empty() bool { return len(tx.events) == 0 && !tx.changed }

// doc decodes a cached document into a value and returns it. The error is errMissingDocs where it was not read yet.
func (tx *tx) doc(path string, into any) (store.Doc, error) {
	doc, ok := tx.ex.docs[path]
	if !ok {
		return doc, errMissingDocs{path}
	}
	if !doc.Exists() {
		return doc, nil
	}
	return doc, document.Decode(doc, into)
}

// addEvent adds one event. It is an error where the state machine does not permit it.
func (tx *tx) addEvent(e run.Event) error {
	e.Seq, e.At = tx.run.Log.Count+int64(len(tx.events))+1, tx.now
	if err := tx.state.Apply(e); err != nil {
		return err
	}
	tx.events = append(tx.events, e)
	if a := tx.state.Action(e.ActionID); a != nil {
		tx.updates = append(tx.updates, Update{Action: run.NewActionView(tx.nonce(), tx.state, a)})
	}
	return nil
}

// user returns the user's document for reading.
func (tx *tx) user() (*run.User, error) {
	if tx.userDoc == nil {
		u := &run.User{UID: tx.run.UID}
		if _, err := tx.doc(document.UserPath(tx.run.UID), u); err != nil {
			return nil, err
		}
		tx.userDoc = u
	}
	return tx.userDoc, nil
}

// updateUser changes the user's document; the commit then fails where another process has changed it since it was read.
func (tx *tx) updateUser(change func(*run.User)) error {
	u, err := tx.user()
	if err != nil {
		return err
	}
	change(u)
	tx.userChanged = true
	return nil
}

// appendMessage adds a message to the thread. A thread that was deleted meanwhile, or is being deleted, gets none.
func (tx *tx) appendMessage(role run.Role, approvalID, format string, args ...any) error {
	if tx.thread == nil {
		t := &run.Thread{}
		if _, err := tx.doc(document.ThreadPath(tx.run.ThreadID), t); err != nil {
			return err
		}
		tx.thread = t
	}
	text := format
	if len(args) > 0 {
		text = fmt.Sprintf(format, args...)
	}
	tx.messages = append(tx.messages,
		run.Message{Role: role, Text: text, RunID: tx.run.ID, ApprovalID: approvalID, At: tx.now})
	return nil
}

// appendLastMessage adds the message that the run ends with, and the run's outcome. The first words bytes of it are the
// model's own.
func (tx *tx) appendLastMessage(end *run.End, words int) error {
	if err := tx.appendMessage(run.RoleAssistant, "", "%s", end.Summary); err != nil {
		return err
	}
	last := &tx.messages[len(tx.messages)-1]
	last.Words, last.Outcome = words, tx.ex.outcomeLine(tx.state, end)
	return nil
}

// approval returns an approval for changing.
func (tx *tx) approval(id string) (*run.Approval, error) {
	if a := tx.approvals[id]; a != nil {
		return a, nil
	}
	a := &run.Approval{}
	doc, err := tx.doc(document.ApprovalPath(id), a)
	if err != nil {
		return nil, err
	}
	if !doc.Exists() {
		return nil, fmt.Errorf("loop: approval %s of run %s is missing", id, tx.run.ID)
	}
	tx.approvals[id] = a
	return a, nil
}

// addAudit adds an audit entry about an action, or about the run.
func (tx *tx) addAudit(kind string, a *run.Action, fill func(*audit.Entry)) {
	e := audit.Entry{RunID: tx.run.ID, UID: tx.run.UID, At: tx.now, Kind: kind}
	if a != nil {
		e.ActionID, e.Tool, e.InputHash, e.ApprovalID = a.ID, a.Tool, audit.InputHash(tx.nonce(), a.ArgsHash),
			a.ApprovalID
		e.PolicyDecision, e.Rule, e.ExecutionStatus = a.PolicyDecision, a.Rule, string(a.Execution)
		if a.Turn >= 1 && a.Turn <= len(tx.state.Turns) {
			e.Model = tx.state.Turns[a.Turn-1].Model
		}
	}
	if fill != nil {
		fill(&e)
	}
	tx.audits = append(tx.audits, e)
}

// nonce returns the run's nonce. A run that an earlier release started gets one with its next entry.
func (tx *tx) nonce() []byte {
	if len(tx.run.Nonce) == 0 {
		tx.run.Nonce = run.NewNonce(tx.ex.Random)
	}
	return tx.run.Nonce
}

// prepareWrites sets status, lease and due time to what follows from the state, and builds the writes.
func (tx *tx) prepareWrites() error {
	if tx.empty() {
		return nil
	}
	if err := tx.setStatus(tx.state.Derived()); err != nil {
		return err
	}
	if !tx.keepLease || tx.state.End != nil {
		tx.setLease()
	}
	if err := tx.countUsage(); err != nil {
		return err
	}
	for _, write := range []func() error{tx.writeAudit, tx.writeRun, tx.writeThread, tx.writeApprovals, tx.writeUser} {
		if err := write(); err != nil {
			return err
		}
	}
	return nil
}

// setStatus records the run's new status, unless it has that status already or has ended.
func (tx *tx) setStatus(to run.Status) error {
	if tx.state.End != nil || to == tx.state.Status {
		return nil
	}
	if err := tx.addEvent(run.Event{Type: run.RunStatusChange, Status: to}); err != nil {
		return err
	}
	tx.updates = append(tx.updates, Update{Status: to})
	return nil
}

// setLease extends the lease for the step that this process makes next, or releases it.
func (tx *tx) setLease() {
	lost := tx.ex.lostLeases(tx.run)
	if len(tx.events) > 0 {
		lost = 0
	}
	tx.run.Lease = run.Lease{Lapsed: lost}
	if need := tx.ex.stepTime(tx.state, tx.run, tx.now); need > 0 && !tx.dueNow {
		tx.run.Lease.Owner, tx.run.Lease.Until = tx.ex.owner,
			tx.now.Add(need+tx.ex.LeaseMargin+retryDelay(lost))
	}
}

// due returns when the run must be looked at again, or zero where it need not be.
func (tx *tx) due() time.Time {
	switch {
	case tx.state.End != nil:
		return time.Time{}
	case tx.run.Lease.Owner != "":
		return tx.run.Lease.Until
	}
	at := tx.run.Deadline
	switch st, _ := tx.ex.next(tx.state, tx.run, tx.now); {
	case tx.left:
		return earlier(at, tx.now.Add(elsewhereGrace))
	case tx.dueNow || len(tx.state.Open()) == 0 || st != stepWait:
		return tx.now.Add(publishGrace)
	}
	for _, a := range tx.state.Open() {
		if a.Kind != run.KindReview && a.ExpiresAt.Before(at) { // a review ends with the run
			at = a.ExpiresAt
		}
	}
	return at
}

func (tx *tx) put(path string, fields map[string]any, v any) error {
	data, err := strictjson.Marshal(v)
	if err != nil {
		return err
	}
	if doc := tx.ex.docs[path]; doc.Exists() {
		tx.writes = append(tx.writes, store.Update(path, doc.Version, fields, data))
		return nil
	}
	tx.writes = append(tx.writes, store.Create(path, fields, data))
	return nil
}

func (tx *tx) writeRun() error {
	tx.run.UpdatedAt = tx.now
	path := document.RunPath(tx.run.ID)
	chunks, err := tx.run.Log.Append(0, 1<<20, tx.events...)
	if err != nil {
		return err
	}
	for _, c := range chunks {
		if err := tx.put(document.ChunkPath(path, "events", c.First), nil, c.Items); err != nil {
			return err
		}
	}
	fields := document.RunFields{UID: tx.run.UID, ThreadID: tx.run.ThreadID, Status: string(tx.state.Status),
		CreatedAt: tx.run.CreatedAt}
	if tx.keepLease && len(tx.events) == 0 { // the run does not move: it is as due, or as aside, as it was
		stored := document.RunFieldsOf(tx.ex.docs[path])
		fields.Due, fields.Tries, fields.Aside = stored.Due, stored.Tries, stored.Aside
	} else {
		fields.Due = tx.due()
	}
	return tx.put(path, fields.Map(), tx.run)
}

func (tx *tx) writeThread() error {
	path := document.ThreadPath(tx.run.ThreadID)
	if tx.thread == nil || tx.thread.ID == "" || tx.thread.Deleting {
		return nil
	}
	chunks, err := tx.thread.Add(tx.messages...)
	if err != nil {
		return err
	}
	for _, c := range chunks {
		if err := tx.put(document.ChunkPath(path, "messages", c.First), nil, c.Items); err != nil {
			return err
		}
	}
	return tx.put(path, document.ThreadFields{UID: tx.thread.UID, UpdatedAt: tx.thread.UpdatedAt}.Map(), tx.thread)
}

func (tx *tx) writeApprovals() error {
	for _, a := range tx.approvals {
		fields := document.ApprovalFields{UID: a.UID, RunID: a.RunID, Status: string(a.Status),
			RequestedAt: a.RequestedAt}
		if err := tx.put(document.ApprovalPath(a.ID), fields.Map(), a); err != nil {
			return err
		}
	}
	return nil
}

func (tx *tx) writeUser() error {
	if !tx.userChanged {
		return nil
	}
	return tx.put(document.UserPath(tx.userDoc.UID), nil, tx.userDoc)
}

func (tx *tx) writeAudit() error {
	for _, e := range tx.audits {
		sealed, head := audit.Seal(tx.run.Audit, e)
		tx.run.Audit = head
		if err := tx.put(document.AuditPath(sealed.RunID, sealed.Seq), sealed.Fields(), sealed); err != nil {
			return err
		}
	}
	return nil
}

// commit writes the tx in one atomic commit, and then makes its run, state and events those of the execution.
func (tx *tx) commit(ctx context.Context) error {
	versions, err := tx.ex.Store.Commit(ctx, tx.writes...)
	if err != nil {
		return err
	}
	for i, w := range tx.writes {
		doc := w.Doc
		doc.Version = versions[i]
		tx.ex.docs[doc.Path] = doc
		tx.ex.observeTime(versions[i])
	}
	tx.ex.run, tx.ex.state = tx.run, tx.state
	tx.ex.events = append(tx.ex.events, tx.events...)
	return nil
}

// notifyUpdates sends the updates to the sink, after the commit.
func (tx *tx) notifyUpdates() {
	for _, n := range tx.updates {
		tx.ex.notify(n)
	}
	if tx.state.End != nil {
		tx.ex.notify(Update{Status: tx.state.Status})
	}
}

func (ex *execution) notify(n Update) {
	n.RunID, n.ThreadID = ex.run.ID, ex.run.ThreadID
	ex.sink(n)
}
