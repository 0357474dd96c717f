package journal

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/countersign-run/countersign/shared/audit"
	"github.com/countersign-run/countersign/shared/document"
	"github.com/countersign-run/countersign/shared/run"
	"github.com/countersign-run/countersign/shared/store"
	"github.com/countersign-run/countersign/shared/strictjson"
)

// errMissingDocs is how a decision asks for documents that were not read yet.
type errMissingDocs []string

func (e errMissingDocs) Error() string { return "journal: a document must be read first" }

// SetErrorInfo puts the class and the code of a call's error into an audit entry; p may be nil.
func SetErrorInfo(e *audit.Entry, p *run.ErrorInfo) {
	if p != nil {
		e.ErrorCode, e.Message = string(p.Class), string(p.Code)
	}
}

// elsewhereGrace is how long a run that nobody moved in time is left to whoever knows its agent.
const elsewhereGrace = 10 * time.Minute

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// Tx is a transition in the making: the run as it will be, and the other documents that are written with it.
type Tx struct {
	Ex     *Execution
	Now    time.Time
	Run    run.Run
	State  *run.State
	events []run.Event

	Thread      *run.Thread
	Kept        *Kept // what the thread keeps of the run that ends
	messages    []run.Message
	userDoc     *run.User
	userChanged bool
	Approvals   map[string]*run.Approval // as they will be
	audits      []audit.Entry
	Changed     bool // the run's document changes even without an event (its lease)
	KeepLease   bool // the transition does not move the run: the lease stays as it is
	renewed     bool // the transition renews the lease and does nothing else
	Left        bool // the run's agent is not known here, and nobody else has moved the run in time
	DueNow      bool // the run must be moved at once, by a process that does not have it yet

	UnrecordedCalls int // calls of the model that were made and that no event records

	restsOn []string // documents that must still be as they were read
	writes  []store.Write
	Updates []Update
}

// Kept is what the thread keeps of a run that ends: its own part of the conversation, with every call answered.
type Kept struct {
	Contents []json.RawMessage
	Recorded bool   // lines of the server's own are among them
	By       string // who signed its answers; empty: those whom the run's turns name
}

func (ex *Execution) newTx() (*Tx, error) {
	state, err := run.Fold(ex.Events)
	if err != nil {
		return nil, err
	}
	return &Tx{Ex: ex, Now: ex.Now(), Run: ex.Run, State: state, Approvals: map[string]*run.Approval{}}, nil
}

func (tx *Tx) empty() bool { return len(tx.events) == 0 && !tx.Changed }

// Doc decodes a cached document into a value and returns it. The error is errMissingDocs where it was not read yet.
func (tx *Tx) Doc(path string, into any) (store.Doc, error) {
	doc, ok := tx.Ex.Docs[path]
	if !ok {
		return doc, errMissingDocs{path}
	}
	if !doc.Exists() {
		return doc, nil
	}
	return doc, document.Decode(doc, into)
}

// AddEvent adds one event. It is an error where the state machine does not permit it.
func (tx *Tx) AddEvent(e run.Event) error {
	e.Seq, e.At = tx.Run.Log.Count+int64(len(tx.events))+1, tx.Now
	if err := tx.State.Apply(e); err != nil {
		return err
	}
	tx.events = append(tx.events, e)
	if e.Compressed != nil {
		tx.Updates = append(tx.Updates, Update{Seq: e.Seq, Compressed: e.Compressed})
	}
	if a := tx.State.Action(e.ActionID); a != nil {
		tx.Updates = append(tx.Updates,
			Update{Seq: e.Seq, Action: run.NewActionView(tx.nonce(), tx.State, a), Finished: callEnd(a, e.Finished)})
	}
	return nil
}

// callEnd returns the outcome of the call for readers within this process, or nil where it has none yet.
func callEnd(a *run.Action, f *run.Finished) *CallEnd {
	if f == nil {
		return nil
	}
	end := &CallEnd{Call: CallOf(a), Result: f.Result, Truncated: f.Truncated, Err: f.Err}
	if end.Err == nil && f.Error != nil {
		end.Err = f.Error.Err()
	}
	return end
}

// CallOf returns the action as its tool gets it.
func CallOf(a *run.Action) Call { return Call{a.ID, a.Tool, a.Args} }

// User returns the user's document for reading.
func (tx *Tx) User() (*run.User, error) {
	if tx.userDoc == nil {
		u := &run.User{UID: tx.Run.UID}
		if _, err := tx.Doc(document.UserPath(tx.Run.UID), u); err != nil {
			return nil, err
		}
		tx.userDoc = u
	}
	return tx.userDoc, nil
}

// UpdateUser changes the user's document; the commit then fails where another process has changed it since it was read.
func (tx *Tx) UpdateUser(change func(*run.User)) error {
	u, err := tx.User()
	if err != nil {
		return err
	}
	change(u)
	tx.userChanged = true
	return nil
}

// AppendMessage adds a message to the thread. A thread that was deleted meanwhile, or is being deleted, gets none.
func (tx *Tx) AppendMessage(role run.Role, approvalID, format string, args ...any) error {
	if err := readThread(tx); err != nil {
		return err
	}
	text := format
	if len(args) > 0 {
		text = fmt.Sprintf(format, args...)
	}
	tx.messages = append(tx.messages,
		run.Message{Role: role, Text: text, RunID: tx.Run.ID, ApprovalID: approvalID, At: tx.Now})
	return nil
}

// readThread puts the run's thread into the tx.
func readThread(tx *Tx) error {
	if tx.Thread != nil {
		return nil
	}
	t := &run.Thread{}
	if _, err := tx.Doc(document.ThreadPath(tx.Run.ThreadID), t); err != nil {
		return err
	}
	tx.Thread = t
	return nil
}

// AppendLastMessage adds the message that the run ends with, and the run's outcome. The first words bytes of it are the
// model's own. The thread is open to the next run. A run that compresses its thread says nothing.
func (tx *Tx) AppendLastMessage(end *run.End, words int) error {
	if err := readThread(tx); err != nil {
		return err
	}
	if tx.Thread.OpenRun == tx.Run.ID {
		tx.Thread.OpenRun = ""
	}
	if tx.State.Input.Compress {
		return nil
	}
	if err := tx.AppendMessage(run.RoleAssistant, "", "%s", end.Summary); err != nil {
		return err
	}
	last := &tx.messages[len(tx.messages)-1]
	last.Words, last.Outcome = words, run.OutcomeLine(tx.Ex.Tools, tx.State, end)
	return nil
}

// Approval returns an approval for changing.
func (tx *Tx) Approval(id string) (*run.Approval, error) {
	if a := tx.Approvals[id]; a != nil {
		return a, nil
	}
	a := &run.Approval{}
	doc, err := tx.Doc(document.ApprovalPath(id), a)
	if err != nil {
		return nil, err
	}
	if !doc.Exists() {
		return nil, fmt.Errorf("journal: approval %s of run %s is missing", id, tx.Run.ID)
	}
	tx.Approvals[id] = a
	return a, nil
}

// AddAudit adds an audit entry about an action, or about the run.
func (tx *Tx) AddAudit(kind string, a *run.Action, fill func(*audit.Entry)) {
	e := audit.Entry{RunID: tx.Run.ID, UID: tx.Run.UID, At: tx.Now, Kind: kind}
	if a != nil {
		e.ActionID, e.Tool, e.InputHash, e.ApprovalID = a.ID, a.Tool, audit.InputHash(tx.nonce(), a.ArgsHash),
			a.ApprovalID
		e.PolicyDecision, e.Rule, e.ExecutionStatus = a.PolicyDecision, a.Rule, string(a.Execution)
		if a.Turn >= 1 && a.Turn <= len(tx.State.Turns) {
			e.Model = tx.State.Turns[a.Turn-1].Model
		}
	}
	if fill != nil {
		fill(&e)
	}
	tx.audits = append(tx.audits, e)
}

// nonce returns the run's nonce. A run that an earlier release started gets one with its next entry.
func (tx *Tx) nonce() []byte {
	if len(tx.Run.Nonce) == 0 {
		tx.Run.Nonce = run.NewNonce(tx.Ex.Random)
	}
	return tx.Run.Nonce
}

// prepareWrites sets status, lease and due time to what follows from the state, and builds the writes.
func (tx *Tx) prepareWrites() error {
	if tx.empty() {
		return nil
	}
	if err := tx.SetStatus(tx.State.Derived()); err != nil {
		return err
	}
	if !tx.KeepLease && !tx.renewed || tx.State.End != nil {
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
	writeChecks(tx)
	return nil
}

// SetStatus records the run's new status, unless it has that status already or has ended.
func (tx *Tx) SetStatus(to run.Status) error {
	if tx.State.End != nil || to == tx.State.Status {
		return nil
	}
	if err := tx.AddEvent(run.Event{Type: run.RunStatusChange, Status: to}); err != nil {
		return err
	}
	tx.Updates = append(tx.Updates, Update{Status: to})
	return nil
}

// setLease extends the lease for the step that this process makes next, or releases it.
func (tx *Tx) setLease() {
	lost := tx.Ex.LostLeases(tx.Run)
	if len(tx.events) > 0 {
		lost = 0
	}
	tx.Run.Lease = run.Lease{Lapsed: lost}
	st, a := tx.Next()
	if need := tx.Ex.timeOf(st, a, tx.Run); need > 0 && !tx.DueNow {
		tx.Run.Lease.Owner, tx.Run.Lease.Until = tx.Ex.Owner, tx.Ex.leaseUntil(tx.Now, need, lost)
	}
}

// due returns when the run must be looked at again, or zero where it need not be.
func due(tx *Tx) time.Time {
	switch {
	case tx.State.End != nil:
		return time.Time{}
	case tx.Run.Lease.Owner != "":
		return tx.Run.Lease.Until
	}
	at := tx.Run.Deadline
	switch st, _ := tx.Next(); {
	case tx.Left:
		return earlier(at, tx.Now.Add(elsewhereGrace))
	case tx.DueNow || len(tx.State.Open()) == 0 || st != run.StepWait:
		return tx.Now.Add(publishGrace)
	}
	for _, a := range tx.State.Open() {
		if a.Kind != run.KindReview && a.ExpiresAt.Before(at) { // a review ends with the run
			at = a.ExpiresAt
		}
	}
	return at
}

func (tx *Tx) put(path string, fields map[string]any, v any) error {
	data, err := strictjson.Marshal(v)
	if err != nil {
		return err
	}
	if doc := tx.Ex.Docs[path]; doc.Exists() {
		tx.writes = append(tx.writes, store.Update(path, doc.Version, fields, data))
		return nil
	}
	tx.writes = append(tx.writes, store.Create(path, fields, data))
	return nil
}

func (tx *Tx) writeRun() error {
	tx.Run.UpdatedAt = tx.Now
	path := document.RunPath(tx.Run.ID)
	tx.Run.Log.Within(len(tx.Ex.Docs[path].Data))
	chunks, err := tx.Run.Log.Append(0, 1<<20, tx.events...)
	if err != nil {
		return err
	}
	for _, c := range chunks {
		if err := tx.put(document.ChunkPath(path, "events", c.First), nil, c.Items); err != nil {
			return err
		}
	}
	fields := document.RunFields{UID: tx.Run.UID, ThreadID: tx.Run.ThreadID, Status: string(tx.State.Status),
		CreatedAt: tx.Run.CreatedAt}
	if tx.KeepLease && len(tx.events) == 0 { // the run does not move: it is as due, or as aside, as it was
		stored := document.RunFieldsOf(tx.Ex.Docs[path])
		fields.Due, fields.Tries, fields.Aside = stored.Due, stored.Tries, stored.Aside
	} else {
		fields.Due = due(tx)
	}
	return tx.put(path, fields.Map(tx.Run.ID), tx.Run)
}

func (tx *Tx) writeThread() error {
	path := document.ThreadPath(tx.Run.ThreadID)
	if tx.Thread == nil || tx.Thread.ID == "" || tx.Thread.Deleting {
		return nil
	}
	tx.Thread.Log.Within(len(tx.Ex.Docs[path].Data))
	chunks, err := tx.Thread.Add(tx.messages...)
	if err != nil {
		return err
	}
	for _, c := range chunks {
		if err := tx.put(document.ChunkPath(path, run.MessageChunks, c.First), nil, c.Items); err != nil {
			return err
		}
	}
	if err := writeContents(tx, path); err != nil {
		return err
	}
	fields := document.ThreadFields{UID: tx.Thread.UID, UpdatedAt: tx.Thread.UpdatedAt}
	return tx.put(path, fields.Map(tx.Thread.ID), tx.Thread)
}

// writeContents adds what the run has said to the thread, which is about to be written.
func writeContents(tx *Tx, path string) error {
	if tx.Kept == nil {
		return nil
	}
	chunks, err := tx.Thread.AddContents(tx.Run.ID, cmp.Or(tx.Kept.By, tx.State.SignedBy()), tx.State, tx.Kept.Contents,
		tx.Kept.Recorded)
	if err != nil {
		return err
	}
	for _, c := range chunks {
		if err := tx.put(document.ChunkPath(path, run.ContentChunks, c.First), nil, c.Items); err != nil {
			return err
		}
	}
	return nil
}

func (tx *Tx) writeApprovals() error {
	for _, a := range tx.Approvals {
		fields := document.ApprovalFields{UID: a.UID, RunID: a.RunID, Status: string(a.Status),
			RequestedAt: a.RequestedAt}
		if err := tx.put(document.ApprovalPath(a.ID), fields.Map(), a); err != nil {
			return err
		}
	}
	return nil
}

func (tx *Tx) writeUser() error {
	if !tx.userChanged {
		return nil
	}
	return tx.put(document.UserPath(tx.userDoc.UID), nil, tx.userDoc)
}

func (tx *Tx) writeAudit() error {
	for _, e := range tx.audits {
		e.KeepDays = tx.Ex.AuditDays
		sealed, head := audit.Seal(tx.Run.Audit, e)
		tx.Run.Audit = head
		if err := tx.put(document.AuditPath(sealed.RunID, sealed.Seq), sealed.Fields(), sealed); err != nil {
			return err
		}
	}
	return nil
}

// writeChecks adds a check of each document that the tx rests on and does not write. One that does not exist has none.
func writeChecks(tx *Tx) {
	slices.Sort(tx.restsOn)
	for _, p := range slices.Compact(tx.restsOn) {
		written := func(w store.Write) bool { return w.Doc.Path == p }
		if d := tx.Ex.Docs[p]; d.Exists() && !slices.ContainsFunc(tx.writes, written) {
			tx.writes = append(tx.writes, store.Check(p, d.Version))
		}
	}
}

// commit writes the tx in one atomic commit, and then makes its run, state and events those of the execution.
func (tx *Tx) commit(ctx context.Context) error {
	sent := tx.Ex.Env.Now()
	versions, err := tx.Ex.Store.Commit(ctx, tx.writes...)
	if err != nil {
		return err
	}
	for i, w := range tx.writes {
		if w.Op == store.OpCheck {
			continue
		}
		doc := w.Doc
		doc.Version = versions[i]
		tx.Ex.Docs[doc.Path] = doc
		tx.Ex.observeTime(versions[i], sent)
	}
	tx.Ex.Run, tx.Ex.State = tx.Run, tx.State
	tx.Ex.Events = append(tx.Ex.Events, tx.events...)
	return nil
}

// notifyUpdates sends the updates to the sink, after the commit.
func (tx *Tx) notifyUpdates() {
	for _, n := range tx.Updates {
		tx.Ex.Notify(n)
	}
	if tx.State.End != nil {
		tx.Ex.Notify(Update{Status: tx.State.Status})
	}
}

// countUsage counts what the run has used of the model since it was last counted: at its end, and wherever its user's
// document is written anyway.
func (tx *Tx) countUsage() error {
	if tx.Ex.UserLimits.None() || tx.State.End == nil && !tx.userChanged {
		return nil
	}
	used := run.RunUsage{Calls: max(tx.Run.Counted.Calls, tx.State.ModelCalls+tx.UnrecordedCalls),
		Tokens: max(tx.Run.Counted.Tokens, tx.State.Tokens)}
	calls, tokens := used.Calls-tx.Run.Counted.Calls, used.Tokens-tx.Run.Counted.Tokens
	if calls == 0 && tokens == 0 {
		return nil
	}
	tx.Run.Counted = used
	return tx.UpdateUser(func(u *run.User) { u.Usage.CountUse(tx.Now, calls, tokens) })
}
