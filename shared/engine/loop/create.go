package loop

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/countersign-run/countersign/shared/agent/registry"
	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/clip"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/engine/approval"
	"github.com/countersign-run/countersign/shared/engine/conversation"
	"github.com/countersign-run/countersign/shared/engine/journal"
	"github.com/countersign-run/countersign/shared/store/document"
)

// createRun reads the documents that a start depends on. It commits the run, its thread and the user's message
// together.
func createRun(ctx context.Context, ex *journal.Execution, req StartRequest, threadID string) error {
	ctx, cancel := journal.WithAnswerTimeout(ctx)
	defer cancel()
	var called *tool.Tool
	also := append(ex.LinkedPaths(req.scope(), req.Agent), document.UserPath(req.UID))
	if req.Call != nil {
		called = ex.Tools[req.Call.Tool]
		also = slices.Concat(called.Reads(req.scope()), []string{document.UserPath(req.UID)})
	}
	if req.Terminal != "" {
		also = addPath(also, document.TerminalPath(req.UID, req.Terminal))
		also = append(also, document.TerminalRunPath(req.UID, req.Terminal))
	}
	if req.ThreadID != "" {
		also = append(also, document.ThreadPath(threadID))
	}
	if req.Call != nil && req.Call.Compensates != nil {
		also = append(also, document.RunPath(req.Call.Compensates.RunID))
	}
	if err := readForCreate(ctx, ex, req, also); err != nil {
		return err
	}
	places := approval.AskPlaces(ctx, ex, req.scope(), called)
	return ex.Transition(ctx, func(tx *journal.Tx) error {
		if tx.Run.ID != "" { // from an earlier request, or from this one if the answer of its commit was lost
			return checkSameRequest(tx, req)
		}
		// the key's run was deleted but its audit chain remains; a second chain cannot begin there
		if ex.Docs[document.AuditPath(ex.ID, 1)].Exists() {
			return errKeyOfDeleted()
		}
		if err := checkMayStart(tx, req); err != nil {
			return err
		}
		if err := takeTerminal(tx, req); err != nil {
			return err
		}
		tx.Run = run.Run{ID: ex.ID, UID: req.UID, ThreadID: threadID, Terminal: req.Terminal, Origin: req.Origin,
			BodyHash: req.BodyHash, Agent: tx.Run.Agent, CreatedAt: tx.Now, Deadline: deadline(tx, req)}
		tx.Run.Nonce = run.NewNonce(ex.Random)
		tx.Run.Trace = journal.TraceNew(ctx, ex, tx.Run)
		if err := setRegion(tx, req.Region); err != nil {
			return err
		}
		if err := setEmail(tx, req.Email); err != nil {
			return err
		}
		if err := openThread(tx, req, threadID); err != nil {
			return err
		}
		if tx.Ex.Agents.Get(req.Agent).Exclusive {
			tx.Thread.OpenRun = tx.Run.ID
		}
		if err := countStart(tx, req); err != nil {
			return err
		}
		if req.Session != nil {
			if err := tx.UpdateUser(func(u *run.User) { u.AddSession(ex.ID) }); err != nil {
				return err
			}
		}
		if err := tx.AddEvent(run.Event{Type: run.RunQueued, Queued: newInput(tx, req)}); err != nil {
			return err
		}
		tx.Updates = append(tx.Updates, journal.Update{Status: run.Queued})
		if req.Compress {
			return nil // there is no message of the user
		}
		if err := tx.AppendMessage(run.RoleUser, "", "%s", req.Prompt); err != nil {
			return err
		}
		switch {
		case req.Call != nil:
			at, err := places.Of(ctx, tx, called)
			if err == nil && req.Call.Compensates != nil {
				err = takeBack(tx, req.Call, at)
			}
			if err != nil {
				return err
			}
			return addCall(tx, req.Call, at)
		case req.History != nil:
			return conversation.Restore(tx, req.History)
		case req.Session != nil && req.Session.Unfinished != nil:
			if err := tx.SetStatus(run.Planning); err != nil {
				return err
			}
			return proposePlan(ctx, tx, *req.Session.Unfinished)
		}
		return nil
	})
}

// deadline returns the time at which the run ends at the latest. The user chooses the deadline of a session.
func deadline(tx *journal.Tx, req StartRequest) time.Time {
	if req.Session != nil {
		return req.Session.Deadline
	}
	return tx.Now.Add(tx.Limits().Deadline)
}

// setRegion sets the run's region: the client's, completed from the user's stored one. A new region is stored with the
// user, for later requests that send none.
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

// setEmail stores the user's new address, if reminders are switched on.
func setEmail(tx *journal.Tx, sent *string) error {
	if !tx.Ex.Reminding.On() || sent == nil {
		return nil
	}
	u, err := tx.User()
	if err != nil || *sent == u.Reminders.To {
		return err
	}
	return tx.UpdateUser(func(u *run.User) { u.Reminders.To = *sent })
}

func newInput(tx *journal.Tx, req StartRequest) *run.Input {
	input := &run.Input{Agent: tx.Run.Agent, Prompt: req.Prompt, SystemNote: req.SystemNote,
		SingleCall: req.Call != nil, Compress: req.Compress, Instructions: req.Instructions, Tools: req.Tools,
		Barred: req.Barred, PageTools: req.PageTools, PageContext: req.PageContext,
		Answer: req.Answer, Thoughts: req.Thoughts, Session: req.Session, Via: req.Via}
	history := tx.Ex.Agents.Get(tx.Run.Agent).History
	if history == registry.HistoryVerbatim && req.History == nil {
		tellVerbatim(tx, input)
	}
	inWords := history == registry.HistoryWords || input.Told != nil && input.Told.Count == 0
	if inWords && !input.SingleCall { // a run of one call has no model
		input.History = tx.Thread.History()
		if len(input.History) > 0 {
			input.Mark = cmp.Or(input.Mark, tx.Ex.Mark)
		}
	}
	if req.History != nil {
		input.Contents, input.Waiting = req.History.Contents, req.Waiting
	}
	return input
}

// tellVerbatim gives the run a context window over the contents of the thread's earlier runs. If the thread has none
// yet, because its runs saw only text so far, newInput adds the text once more. From then on it is part of the thread's
// contents.
func tellVerbatim(tx *journal.Tx, input *run.Input) {
	if tx.Thread.Mark == "" { // one mark for all runs keeps the service's cache of the conversation valid
		tx.Thread.Mark = tx.Ex.Mark
	}
	told := tx.Thread.Told
	input.Told, input.Mark = &told, tx.Thread.Mark
}

// readForCreate reads the documents. It reads the run's own document and its first audit entry only if a key may have
// named the run before.
func readForCreate(ctx context.Context, ex *journal.Execution, req StartRequest, paths []string) error {
	if req.Key != "" {
		return ex.Load(ctx, append(paths, document.AuditPath(ex.ID, 1))...)
	}
	ex.State = &run.State{}
	return ex.Read(ctx, paths...)
}

// checkSameRequest checks that a key that was used before comes with the same request, and that its conversation still
// exists.
func checkSameRequest(tx *journal.Tx, req StartRequest) error {
	another := tx.Run.Agent != "" && tx.Run.Agent != cmp.Or(req.Agent, run.Assistant)
	if tx.Run.UID != req.UID || tx.Run.BodyHash != req.BodyHash || another {
		return fault.New(fault.Policy, fault.CodeKeyReused,
			"This Idempotency-Key was used before, with another request.")
	}
	t := &run.Thread{}
	if tx.State.End == nil { // an open run's conversation cannot be deleted
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

// checkMayStart returns an error for a disabled user, for exceeded limits, and for too many open approvals.
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
	if req.Session != nil {
		return approval.CheckOpen(tx, u)
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
	if !doc.Exists() && (req.Title != "" || req.Opens) {
		tx.Thread = &run.Thread{ID: id, UID: req.UID, Title: threadTitle(cmp.Or(req.Title, req.Prompt)),
			Titled: req.Title != "", CreatedAt: tx.Now}
		return nil
	}
	if t.ID == "" || t.UID != req.UID || t.Deleting {
		return fault.NotFound()
	}
	if t.Log.Count >= run.MaxMessages {
		return fault.New(fault.Policy, CodeThreadFull,
			"This conversation has %d messages, which is the limit. Please start a new one.", t.Log.Count)
	}
	if err := checkNoneOpen(tx, t); err != nil {
		return err
	}
	if req.Call == nil && req.History == nil { // the user continues the conversation
		tx.Ex.Earlier, t.Waiting = t.Waiting, nil
	}
	tx.Thread = t
	return nil
}

// checkNoneOpen returns an error if the thread is reserved for an open run. The error's cause contains the run's ID and
// status.
func checkNoneOpen(tx *journal.Tx, t *run.Thread) error {
	open, err := tx.OpenRun(t.OpenRun)
	if err != nil || open == nil {
		return err
	}
	return fault.New(fault.Policy, fault.CodeRunOpen,
		"This conversation has a request that has not ended (%s). Please let it end, or cancel it.", open.Status).
		Because(open)
}

// threadTitle returns the first line of a prompt, cut to the length of a title.
func threadTitle(prompt string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(prompt), "\n")
	return clip.Text(line, run.MaxTitle)
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
	return propose(tx, run.ProposedCall{Turn: 1, Tool: c.Tool, UserInitiated: c.Own,
		Compensates: c.Compensates}, c.Args, at)
}
