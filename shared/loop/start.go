package loop

import (
	"cmp"
	"context"
	"strings"

	"github.com/countersign-run/countersign/shared/agents"
	"github.com/countersign-run/countersign/shared/approval"
	"github.com/countersign-run/countersign/shared/clip"
	"github.com/countersign-run/countersign/shared/conversation"
	"github.com/countersign-run/countersign/shared/document"
	"github.com/countersign-run/countersign/shared/effect"
	"github.com/countersign-run/countersign/shared/fault"
	"github.com/countersign-run/countersign/shared/journal"
	"github.com/countersign-run/countersign/shared/run"
)

// placementOfCall returns where the call that the run starts with would act.
func placementOfCall(ctx context.Context, ex *journal.Execution, req StartRequest) (at approval.Placement) {
	if req.Call != nil {
		at.Place, at.Err = ex.Tools[req.Call.Tool].Place(ctx, req.UID)
	}
	return at
}

// addCall adds the call as if it were the model's first answer.
func addCall(tx *journal.Tx, c *Call, at approval.Placement) error {
	if err := tx.SetStatus(run.Planning); err != nil {
		return err
	}
	if err := tx.AddEvent(run.Event{Type: run.ModelAnswered,
		Turn: &run.Turn{Calls: 1, Model: c.Model}}); err != nil {
		return err
	}
	return propose(tx, run.ProposedCall{Turn: 1, Tool: c.Tool, UserInitiated: c.Own}, c.Args, at)
}

// StartRequest is a user's request to the agent.
type StartRequest struct {
	UID    string
	Agent  string // that carries it out; empty: the assistant
	Origin string // the web origin that it came from, or empty
	Prompt string
	// what the model gets before the prompt: information from the server, not the user's words
	SystemNote string
	ThreadID   string                      // empty: a new thread
	Title      string                      // of ThreadID, which is created if it does not exist; empty: it must exist
	Key        string                      // the Idempotency-Key, or empty
	BodyHash   string                      // of the request, compared where the key was used before
	Region     run.Region                  // of the user, as far as the client sent it
	History    *conversation.ClientHistory // the conversation, where the client keeps it and not the store
	Call       *Call                       // what is to be done without calling the model (StartCall)
}

// Start stores a run and moves it as far as it goes alone. For a key that was used before it returns the run that the
// key started, and starts nothing. Errors before the run is stored: AuthError not_found for a thread that is not the
// user's and for an agent that is not here, PolicyError too_many for the caps, idempotency_key_reused for a key with
// another body or of a run that was deleted. After that, errors are recorded in the run.
func (l *Loop) Start(ctx context.Context, req StartRequest, emit journal.Sink) (*run.View, error) {
	id := run.NewID(l.Random)
	if req.Key != "" {
		id = run.KeyedRunID(req.UID, req.Key)
	}
	ex := l.NewExecution(id, emit)
	if err := start(ctx, ex, req); err != nil {
		return nil, err
	}
	return currentView(ctx, ex)
}

func start(ctx context.Context, ex *journal.Execution, req StartRequest) error {
	if ex.Agents.Get(req.Agent) == nil {
		return fault.NotFound()
	}
	threadID := req.ThreadID
	if threadID == "" {
		threadID = run.NewThreadID(ex.ID)
	}
	ex.Mark = run.NewID(ex.Random)[:13]
	if err := createRun(ctx, ex, req, threadID); err != nil {
		return err
	}
	effect.LeaveEarlier(ctx, ex)
	if st, _ := ex.Next(); st == run.StepElsewhere {
		ex.Publish(ctx)
		return nil
	}
	if ex.Run.Lease.Owner != ex.Owner { // the key's first request moves the run, or has moved it
		return nil
	}
	_, err := advance(ctx, ex)
	if journal.Held(err) { // this process was stopped for longer than its lease, and another one has taken over
		return nil
	}
	return err
}

// createRun reads what a start depends on and commits the run, its thread and the user's message as one.
func createRun(ctx context.Context, ex *journal.Execution, req StartRequest, threadID string) error {
	ctx, cancel := journal.WithAnswerTimeout(ctx)
	defer cancel()
	also := []string{document.UserPath(req.UID)}
	if req.ThreadID != "" {
		also = append(also, document.ThreadPath(threadID))
	}
	if err := readForCreate(ctx, ex, req, also); err != nil {
		return err
	}
	at := placementOfCall(ctx, ex, req)
	return ex.Transition(ctx, func(tx *journal.Tx) error {
		if tx.Run.ID != "" { // it exists: from an earlier request, or from this one, whose commit's answer was lost
			return checkSameRequest(tx, req)
		}
		// the key's run was deleted, and its audit stays: a second chain cannot begin there
		if ex.Docs[document.AuditPath(ex.ID, 1)].Exists() {
			return errKeyOfDeleted()
		}
		if err := checkMayStart(tx, req); err != nil {
			return err
		}
		tx.Run = run.Run{ID: ex.ID, UID: req.UID, ThreadID: threadID, Origin: req.Origin, BodyHash: req.BodyHash,
			Agent: tx.Run.Agent, CreatedAt: tx.Now, Deadline: tx.Now.Add(tx.Limits().Deadline)}
		tx.Run.Nonce = run.NewNonce(ex.Random)
		if err := setRegion(tx, req.Region); err != nil {
			return err
		}
		if err := openThread(tx, req, threadID); err != nil {
			return err
		}
		if err := countStart(tx, req); err != nil {
			return err
		}
		if err := tx.AddEvent(run.Event{Type: run.RunQueued, Queued: newInput(tx, req)}); err != nil {
			return err
		}
		tx.Updates = append(tx.Updates, journal.Update{Status: run.Queued})
		if err := tx.AppendMessage(run.RoleUser, "", "%s", req.Prompt); err != nil {
			return err
		}
		switch {
		case req.Call != nil:
			return addCall(tx, req.Call, at)
		case req.History != nil:
			return conversation.Restore(tx, req.History)
		}
		return nil
	})
}

// setRegion sets the run's region: what the client sent, completed by the user's last known one. A region that is new
// is stored with the user, for later requests that send none.
func setRegion(tx *journal.Tx, sent run.Region) error {
	u, err := tx.User()
	if err != nil {
		return err
	}
	tx.Run.Region = sent.Or(u.Region)
	if tx.Run.Region == u.Region {
		return nil
	}
	return tx.UpdateUser(func(u *run.User) { u.Region = tx.Run.Region })
}

func newInput(tx *journal.Tx, req StartRequest) *run.Input {
	input := &run.Input{Agent: tx.Run.Agent, Prompt: req.Prompt, SystemNote: req.SystemNote,
		SingleCall: req.Call != nil}
	told := tx.Ex.Agents.Get(tx.Run.Agent).History == agents.HistoryWords
	if told && !input.SingleCall { // a run of one call has no model to tell
		input.History = tx.Thread.History()
		if len(input.History) > 0 {
			input.Mark = tx.Ex.Mark
		}
	}
	if req.History != nil {
		input.Contents = req.History.Contents
	}
	return input
}

// readForCreate reads the documents. The run's own, and the first of its audit, are read only where a key may have
// named the run before.
func readForCreate(ctx context.Context, ex *journal.Execution, req StartRequest, paths []string) error {
	if req.Key != "" {
		return ex.Load(ctx, append(paths, document.AuditPath(ex.ID, 1))...)
	}
	ex.State = &run.State{}
	return ex.Read(ctx, paths...)
}

// checkSameRequest checks that a key that was used before comes with its first request again, and that its conversation
// still exists.
func checkSameRequest(tx *journal.Tx, req StartRequest) error {
	another := tx.Run.Agent != "" && tx.Run.Agent != cmp.Or(req.Agent, run.Assistant)
	if tx.Run.UID != req.UID || tx.Run.BodyHash != req.BodyHash || another {
		return fault.New(fault.Policy, fault.CodeKeyReused,
			"This Idempotency-Key was used before, with another request.")
	}
	t := &run.Thread{}
	if tx.State.End == nil { // its conversation cannot be deleted before it ends
		return nil
	}
	if _, err := tx.Doc(document.ThreadPath(tx.Run.ThreadID), t); err != nil {
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
func checkMayStart(tx *journal.Tx, req StartRequest) error {
	tx.Run.UID, tx.Run.Agent = req.UID, cmp.Or(req.Agent, run.Assistant)
	u, err := tx.User()
	if err != nil {
		return err
	}
	if err := u.CheckEnabled(); err != nil {
		return err
	}
	if err := approval.CheckLimits(tx.Ex.UserLimits, u, req.Call == nil, tx.Now); err != nil {
		return err
	}
	return approval.CheckCaps(tx, u)
}

// openThread puts the user's thread, or a new one, into the tx.
func openThread(tx *journal.Tx, req StartRequest, id string) error {
	if req.ThreadID == "" {
		tx.Thread = &run.Thread{ID: id, UID: req.UID, Title: threadTitle(req.Prompt), CreatedAt: tx.Now}
		return nil
	}
	t := &run.Thread{}
	doc, err := tx.Doc(document.ThreadPath(id), t)
	if err != nil {
		return err
	}
	if !doc.Exists() && req.Title != "" {
		tx.Thread = &run.Thread{ID: id, UID: req.UID, Title: threadTitle(req.Title), CreatedAt: tx.Now}
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
		tx.Ex.Earlier, t.Waiting = t.Waiting, nil
	}
	tx.Thread = t
	return nil
}

// threadTitle returns the first line of a prompt, cut to 80 bytes.
func threadTitle(prompt string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(prompt), "\n")
	return clip.Text(line, 80)
}

// Get returns a run of the user as it is by the clock (see currentView), and its stored events.
func (l *Loop) Get(ctx context.Context, uid, runID string) (*run.View, []run.Event, error) {
	ex := l.NewExecution(runID, nil)
	if err := ex.LoadOwned(ctx, uid); err != nil {
		return nil, nil, err
	}
	v, err := currentView(ctx, ex)
	return v, ex.Events, err
}
