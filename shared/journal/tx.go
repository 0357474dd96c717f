package journal

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/countersign-run/countersign/shared/audit"
	"github.com/countersign-run/countersign/shared/document"
	"github.com/countersign-run/countersign/shared/output"
	"github.com/countersign-run/countersign/shared/run"
	"github.com/countersign-run/countersign/shared/store"
	"github.com/countersign-run/countersign/shared/tool"
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
	tookOver    bool // the lease was that of a process that let it lapse
	Left        bool // the run's agent is not known here, and nobody else has moved the run in time
	DueNow      bool // the run must be moved at once, by a process that does not have it yet

	DueIn  time.Duration // if not 0, the run is left to whichever process looks at it after this time
	TellIn time.Duration // if not 0, others could not be told of the run, and are after this time

	UnrecordedCalls int // calls of the model that were made and that no event records

	others  map[string]any // further documents as they will be, by their paths ([Put])
	joined  []*Tx          // of other runs, which are committed together with this one ([Join])
	restsOn []string       // documents that must still be as they were read
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
	if a := tx.State.Action(e.ActionID); a != nil {
		if err := forgetAllowed(tx, a, e.Finished); err != nil {
			return err
		}
	}
	tx.events = append(tx.events, e)
	if e.Compressed != nil {
		tx.Updates = append(tx.Updates, Update{Seq: e.Seq, Compressed: e.Compressed})
	}
	if a := tx.State.Action(e.ActionID); a != nil {
		v := run.NewActionView(tx.nonce(), tx.State, a)
		v.Step = run.StepOf(tx.Ex.Tools, a)
		tx.Updates = append(tx.Updates, Update{Seq: e.Seq, Action: v, Finished: callEnd(a, e.Finished)})
	}
	return nil
}

// AllowedNow returns what the user's document keeps of an effect that is allowed in this transition.
func AllowedNow(tx *Tx, actionID, argsHash string) run.Allowed {
	return run.NewAllowed(tx.Run.ThreadID, argsHash, actionID, tx.Now)
}

// forgetAllowed drops from the user's document an effect that was allowed and not done. An equal call repeats nothing
// then.
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
	m := run.Message{Role: role, Text: text, RunID: tx.Run.ID, ApprovalID: approvalID, At: tx.Now}
	if via := tx.State.Input.Via; via != nil && role == run.RoleUser {
		m.Read = &run.Reading{Origin: via.Origin()} // it is its agent's, and a stranger's to whoever goes on
	}
	tx.messages = append(tx.messages, m)
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

// Put has a further document written, with the fields that it has, which must have been read.
func Put(tx *Tx, path string, v any) {
	if tx.others == nil {
		tx.others = map[string]any{}
	}
	tx.others[path] = v
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

// KeepOutput makes the document in which the output of the action is kept, unless it is there already. The run knows it
// by its action, so that it can be found and deleted with the run.
func KeepOutput(tx *Tx, id string) {
	if !slices.Contains(tx.Run.Outputs, id) {
		tx.Run.Outputs = append(slices.Clip(tx.Run.Outputs), id)
		path, empty := output.Begin(tx.Run.ID, id)
		Put(tx, path, empty)
	}
}

// nonce returns the run's nonce. A run that an earlier release started gets one with its next entry.
func (tx *Tx) nonce() []byte {
	if len(tx.Run.Nonce) == 0 {
		tx.Run.Nonce = run.NewNonce(tx.Ex.Random)
	}
	return tx.Run.Nonce
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
