package unit

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/engine/observe"
	"github.com/countersign-run/countersign/shared/store"
	"github.com/countersign-run/countersign/shared/store/attachment"
	"github.com/countersign-run/countersign/shared/store/audit"
	"github.com/countersign-run/countersign/shared/store/document"
	"github.com/countersign-run/countersign/shared/store/output"
)

// errMissingDocs lists documents that a decision needs and that were not read yet.
type errMissingDocs []string

func (e errMissingDocs) Error() string { return "journal: a document must be read first" }

// SetErrorInfo copies the class and the code of a call's error into an audit entry. A nil p changes nothing.
func SetErrorInfo(e *audit.Entry, p *run.ErrorInfo) {
	if p != nil {
		e.ErrorCode, e.Message = string(p.Class), string(p.Code)
	}
}

// Tx is a transition before its commit: the run's new state, and the other documents that are written with it.
type Tx struct {
	Ex     *Execution
	Now    time.Time
	Run    run.Run
	State  *run.State
	events []run.Event

	Thread      *run.Thread
	Kept        *Kept // what the thread keeps of the run, if the run ends
	messages    []run.Message
	userDoc     *run.User
	userChanged bool
	Approvals   map[string]*run.Approval // in their new state
	audits      []audit.Entry
	Changed     bool // the run's document changes even without an event (its lease)
	KeepLease   bool // the transition does not advance the run: the lease stays as it is
	renewed     bool // the transition renews the lease and does nothing else
	tookOver    bool // the previous owner let the lease lapse
	Left        bool // this process does not know the run's agent, and no other has advanced the run in time
	DueNow      bool // another process must advance the run at once

	DueIn   time.Duration // if not 0, the run is due after this time, for any process
	RetryIn time.Duration // if not 0, publishing or reopening failed and is retried after this time

	UnrecordedCalls int // model calls that no event records

	others  map[string]further // further documents as they will be, by their paths ([Tx.Put])
	joined  []*Tx              // of other runs, which are committed together with this one ([Tx.Join])
	restsOn []string           // documents that must still be as they were read
	writes  []store.Write
	after   []run.Event // all events of the run after the tx; nil: not needed before
	Updates []Update
}

// Kept is the part of an ended run that the thread keeps: the run's part of the conversation, with every call answered.
type Kept struct {
	Contents []json.RawMessage
	Recorded bool   // the contents include lines of the server
	By       string // signer of its answers; empty: the signers of the run's turns
}

func (ex *Execution) newTx() (*Tx, error) {
	state, err := run.Fold(ex.Events)
	if err != nil {
		return nil, err
	}
	return &Tx{Ex: ex, Now: ex.Now(), Run: ex.Run, State: state, Approvals: map[string]*run.Approval{}}, nil
}

func (tx *Tx) empty() bool { return len(tx.events) == 0 && !tx.Changed }

// Doc decodes a cached document into a value and returns it. It returns errMissingDocs if the document was not read
// yet.
func (tx *Tx) Doc(path string, into any) (store.Doc, error) {
	doc, ok := tx.Ex.Docs[path]
	if !ok {
		return doc, errMissingDocs{path}
	}
	if !doc.Exists() {
		return doc, nil
	}
	return doc, tx.Ex.decode(doc, into)
}

// AddEvent adds one event. It returns an error if the state machine does not permit the event.
func (tx *Tx) AddEvent(e run.Event) error {
	e.Seq, e.At = tx.Run.Log.Count+int64(len(tx.events))+1, tx.Now
	if err := tx.State.Apply(e); err != nil {
		return err
	}
	if a := tx.State.Action(e.ActionID); a != nil {
		if err := forgetAllowed(tx, a, e.Finished); err != nil {
			return err
		}
	}
	tx.events = append(tx.events, e)
	if files := madeIn(e); len(files) > 0 {
		tx.Updates = append(tx.Updates, Update{Seq: e.Seq, Files: attachment.Made(files)})
	}
	if e.Compressed != nil {
		tx.Updates = append(tx.Updates, Update{Seq: e.Seq, Compressed: e.Compressed})
	}
	if a := tx.State.Action(e.ActionID); a != nil {
		v := run.NewActionView(tx.nonce(), tx.State, a)
		v.Step = run.StepOf(tx.Ex.Toolbox.Tools, a)
		tx.Updates = append(tx.Updates, Update{Seq: e.Seq, Action: v, Finished: callEnd(a, e.Finished)})
	}
	return nil
}

// madeIn returns the files of the model's answer or of the tool's result that the event records.
func madeIn(e run.Event) []attachment.Stored {
	switch {
	case e.Turn != nil:
		return e.Turn.Files
	case e.Finished != nil:
		return e.Finished.Files
	}
	return nil
}

// AllowedNow returns the entry in the user's document for an effect that this transition allows.
func (tx *Tx) AllowedNow(actionID string, e run.Effect) run.Allowed {
	return run.NewAllowed(tx.Run.ThreadID, actionID, e, tx.Now)
}

// forgetAllowed removes an effect that was allowed but not done from the user's document. An equal call is then not a
// repetition.
func forgetAllowed(tx *Tx, a *run.Action, f *run.Finished) error {
	begun := a.Decision != "" || a.Started.Owner != ""
	if f == nil || !a.SideEffect || !begun || f.Status != run.ActionFailed || f.Execution == run.UnknownState {
		return nil
	}
	u, err := tx.User()
	if err != nil {
		return err
	}
	tx.userChanged = u.ForgetAllowed(a.ID) || tx.userChanged
	return nil
}

// callEnd returns the outcome of the call, for readers within this process, or nil if there is none yet.
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

// CallOf returns the action in the form that its tool receives.
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

// AsUser makes u the user's document for the rest of the transition. It is for a transition that is never committed.
func (tx *Tx) AsUser(u *run.User) { tx.userDoc = u }

// UpdateUser changes the user's document. The commit then fails if another process has changed the document since it
// was read.
func (tx *Tx) UpdateUser(change func(*run.User)) error {
	u, err := tx.User()
	if err != nil {
		return err
	}
	change(u)
	tx.userChanged = true
	return nil
}

// AppendMessage adds a message to the thread. A thread that is deleted or being deleted gets none.
func (tx *Tx) AppendMessage(role run.Role, approvalID, format string, args ...any) error {
	if err := readThread(tx); err != nil {
		return err
	}
	text := format
	if len(args) > 0 {
		text = fmt.Sprintf(format, args...)
	}
	m := run.Message{Role: role, Text: text, RunID: tx.Run.ID, ApprovalID: approvalID, At: tx.Now}
	if via := tx.State.Input.DelegatedBy; via != nil && role == run.RoleUser {
		m.Read = &run.Reading{Origin: via.Origin()} // the agent wrote it, so it counts as a stranger's text later
	}
	if role == run.RoleUser {
		m.Attachments = attachment.FactsOf(tx.State.Input.Files)
	}
	tx.messages = append(tx.messages, m)
	return nil
}

// readThread reads the run's thread into the tx.
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

// Put adds a further document to the commit. If the document exists, it must have been read; it keeps its fields.
func (tx *Tx) Put(path string, v any) { tx.PutFields(path, tx.Ex.Docs[path].Fields, v) }

// PutFields is [Tx.Put] with other fields.
func (tx *Tx) PutFields(path string, fields map[string]any, v any) {
	if tx.others == nil {
		tx.others = map[string]further{}
	}
	tx.others[path] = further{fields, v}
}

// further is a document that a commit writes beside those of the run.
type further struct {
	fields map[string]any
	v      any
}

// Approval returns an approval that the transition may change.
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
		return nil, fmt.Errorf("unit: approval %s of run %s is missing", id, tx.Run.ID)
	}
	tx.Approvals[id] = a
	return a, nil
}

// AddAudit adds an audit entry about the action, or about the run if a is nil. fill may set further fields.
func (tx *Tx) AddAudit(kind string, a *run.Action, fill func(*audit.Entry)) {
	e := audit.Entry{RunID: tx.Run.ID, UID: tx.Run.UID, At: tx.Now, Kind: kind}
	if a != nil {
		e.ActionID, e.Tool, e.InputHash, e.ApprovalID = a.ID, a.Tool, tx.InputHash(a.ArgsHash), a.ApprovalID
		e.PolicyDecision, e.Rule, e.ExecutionStatus = a.PolicyDecision, a.Rule, string(a.Execution)
		if a.Ruled != nil {
			e.Class, e.Facts = string(a.Ruled.Class), a.Ruled.Facts
		}
		if a.Compensates != nil {
			e.Facts = tool.Facts(e.Facts).With(tool.Facts{"compensates": a.Compensates.ActionID})
		}
		if a.Turn >= 1 && a.Turn <= len(tx.State.Turns) {
			e.Model = tx.State.Turns[a.Turn-1].Model
		}
	}
	if fill != nil {
		fill(&e)
	}
	tx.audits = append(tx.audits, e)
}

// KeepOutput creates the document for the action's output, unless it exists. The run lists the action, so that the
// output can be found and deleted with the run.
func (tx *Tx) KeepOutput(id string) {
	if !slices.Contains(tx.Run.Outputs, id) {
		tx.Run.Outputs = append(slices.Clip(tx.Run.Outputs), id)
		path, empty := output.Begin(tx.Run.ID, id)
		tx.Put(path, empty)
	}
}

// InputHash returns the hash that stands for the content with this hash in the run's audit entries.
func (tx *Tx) InputHash(hash string) string { return audit.InputHash(tx.nonce(), hash) }

// nonce returns the run's nonce. A run of an earlier release gets one with its next audit entry.
func (tx *Tx) nonce() []byte {
	if len(tx.Run.Nonce) == 0 {
		tx.Run.Nonce = run.NewNonce(tx.Ex.Random)
	}
	return tx.Run.Nonce
}

// SetStatus records the run's new status, unless the run has that status already or has ended.
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

// measure records the measurements that follow from the commit.
func (tx *Tx) measure() {
	tx.Ex.MeasureCommit(tx.Run, tx.Now, tx.events, tx.Approvals)
	if tx.tookOver {
		tx.Ex.CountRetry(observe.RetryStep)
	}
	for _, j := range tx.joined {
		j.measure()
	}
}

// notifyUpdates sends the updates to the sink, after the commit.
func (tx *Tx) notifyUpdates() {
	if len(tx.events) > 0 {
		tx.Ex.Notify(Update{Events: tx.events})
	}
	for _, n := range tx.Updates {
		tx.Ex.Notify(n)
	}
	if slices.ContainsFunc(tx.events, func(e run.Event) bool { return e.End != nil }) {
		tx.Ex.Notify(Update{Status: tx.State.Status})
	}
}
