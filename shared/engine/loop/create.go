package loop

import (
	"cmp"
	"context"
	"strings"

	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/clip"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/engine/approval"
	"github.com/countersign-run/countersign/shared/engine/unit"
	"github.com/countersign-run/countersign/shared/store/attachment"
	"github.com/countersign-run/countersign/shared/store/document"
)

// createRun reads the documents that a start depends on. It commits the run, its thread and the user's message
// together.
func createRun(ctx context.Context, ex *unit.Execution, req StartRequest, in Input) error {
	ctx, cancel := unit.WithAnswerTimeout(ctx)
	defer cancel()
	n := in.needs(ex, req)
	threadID := cmp.Or(req.ThreadID, run.NewThreadID(ex.ID))
	if err := readForCreate(ctx, ex, req, n); err != nil {
		return err
	}
	scope := tool.Scope{UID: req.UID, Terminal: n.terminal}
	places := approval.AskPlaces(ctx, ex, scope, n.tool)
	if c, ok := in.(Call); ok && ex.Run.ID == "" { // a repeated request finds its call as it was completed
		call := tool.Call{UID: req.UID, Terminal: n.terminal, Args: c.Args}
		if c.completed = approval.Complete(ctx, ex, n.tool, call, !c.Own); c.completed.Err != nil {
			return c.completed.Err
		}
		in = c
	}
	return ex.Transition(ctx, func(tx *unit.Tx) error {
		if tx.Run.ID != "" { // from an earlier request, or from this one if the answer of its commit was lost
			return checkSameRequest(tx, req)
		}
		// the key's run was deleted but its audit chain remains; a second chain cannot begin there
		if ex.Docs[document.AuditPath(ex.ID, 1)].Exists() {
			return errKeyOfDeleted()
		}
		if err := checkMayStart(tx, req, n); err != nil {
			return err
		}
		if err := fillRun(ctx, tx, req, n, threadID); err != nil {
			return err
		}
		if err := openThread(tx, req, n.message, threadID); err != nil {
			return err
		}
		if ex.Agents.Get(req.Agent).Exclusive {
			tx.Thread.OpenRun = tx.Run.ID
		}
		if err := countStart(tx, n); err != nil {
			return err
		}
		if err := queueRun(tx, req, in, n.message); err != nil {
			return err
		}
		return in.begin(ctx, tx, places)
	})
}

// readForCreate reads the documents. It reads the run's own document and its first audit entry only if a key may have
// named the run before.
func readForCreate(ctx context.Context, ex *unit.Execution, req StartRequest, n needs) error {
	paths := append(n.paths, document.UserPath(req.UID))
	if n.terminal != "" {
		paths = addPath(paths, document.TerminalPath(req.UID, n.terminal))
		paths = append(paths, document.TerminalRunPath(req.UID, n.terminal))
	}
	if req.ThreadID != "" {
		paths = append(paths, document.ThreadPath(req.ThreadID))
	}
	if req.Key != "" {
		return ex.Load(ctx, append(paths, document.AuditPath(ex.ID, 1))...)
	}
	ex.State = &run.State{}
	return ex.Read(ctx, paths...)
}

// queueRun adds the run's first event and the user's message.
func queueRun(tx *unit.Tx, req StartRequest, in Input, message string) error {
	input := in.stored(tx)
	if len(tx.Ex.Fallbacks) > 0 || input.Model != "" { // another model may get the run's calls as text of the server
		input.Mark = cmp.Or(input.Mark, tx.Ex.Mark)
	}
	input.Agent, input.DelegatedBy = tx.Run.Agent, req.DelegatedBy
	if err := addFiles(tx, input, in); err != nil {
		return err
	}
	if err := tellPreferences(tx, input); err != nil {
		return err
	}
	if _, asks := in.(Prompt); asks {
		if err := tellNotes(tx, input); err != nil {
			return err
		}
	}
	if err := tx.AddEvent(run.Event{Type: run.RunQueued, Queued: input}); err != nil {
		return err
	}
	tx.Updates = append(tx.Updates, unit.Update{Status: run.Queued})
	if message == "" {
		return nil
	}
	return tx.AppendMessage(run.RoleUser, "", "%s", message)
}

// addFiles adds the files of a prompt or a session to the stored input.
func addFiles(tx *unit.Tx, input *run.Input, in Input) (err error) {
	var files []attachment.File
	switch in := in.(type) {
	case Prompt:
		files = in.Files
	case Session:
		files = in.Files
	}
	if input.Files, err = tx.AddFiles(files); len(input.Files) > 0 {
		input.FilesOf = tx.Run.ID
	}
	return err
}

// uploadPaths returns the paths of the uploaded files' documents.
func uploadPaths(files []attachment.File) (paths []string) {
	for _, f := range files {
		if f.FileID != "" {
			paths = addPath(paths, document.UploadPath(f.FileID))
		}
	}
	return paths
}

// fillRun reserves the terminal and sets the fields of the new run's document. It stores the user's locale and address
// if they have changed.
func fillRun(ctx context.Context, tx *unit.Tx, req StartRequest, n needs, threadID string) error {
	if err := takeTerminal(tx, req.UID, n.terminal); err != nil {
		return err
	}
	tx.Run = run.Run{ID: tx.Ex.ID, UID: req.UID, ThreadID: threadID, Terminal: n.terminal, Origin: req.Origin,
		BodyHash: req.BodyHash, Agent: tx.Run.Agent, CreatedAt: tx.Now, Deadline: tx.Now.Add(tx.Limits().Deadline)}
	tx.Run.Nonce = run.NewNonce(tx.Ex.Random)
	tx.Run.Trace = tx.Ex.Trace.Create(ctx, tx.Run)
	if err := setLocale(tx, req.Locale); err != nil {
		return err
	}
	return setEmail(tx, req.Email)
}

// setLocale sets the run's locale: the client's, completed from the user's stored one, in the language that the user
// prefers. A new locale of a client is stored with the user, for later requests that send none.
func setLocale(tx *unit.Tx, sent run.Locale) error {
	u, err := tx.User()
	if err != nil {
		return err
	}
	sent = sent.Or(u.Locale)
	tx.Run.Locale = u.Located(sent)
	if sent == u.Locale {
		return nil
	}
	return tx.UpdateUser(func(u *run.User) { u.Locale = sent })
}

// setEmail stores the user's new address, if reminders are switched on.
func setEmail(tx *unit.Tx, sent *string) error {
	if !tx.Ex.Reminding.On() || sent == nil {
		return nil
	}
	u, err := tx.User()
	if err != nil || *sent == u.Reminders.To {
		return err
	}
	return tx.UpdateUser(func(u *run.User) { u.Reminders.To = *sent })
}

// checkSameRequest checks that a key that was used before comes with the same request, and that its conversation still
// exists.
func checkSameRequest(tx *unit.Tx, req StartRequest) error {
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
func checkMayStart(tx *unit.Tx, req StartRequest, n needs) error {
	tx.Run.UID, tx.Run.Agent = req.UID, cmp.Or(req.Agent, run.Assistant)
	u, err := tx.User()
	if err != nil {
		return err
	}
	if err := u.CheckEnabled(); err != nil {
		return err
	}
	if err := approval.CheckLimits(tx.Ex.UserLimits, u, !n.noModel, tx.Now); err != nil {
		return err
	}
	if n.noDayCap {
		return approval.CheckOpen(tx, u)
	}
	return approval.CheckCaps(tx, u, 1)
}

// openThread puts the user's thread, or a new one, into the tx.
func openThread(tx *unit.Tx, req StartRequest, message, id string) error {
	if req.ThreadID == "" {
		tx.Thread = &run.Thread{ID: id, UID: req.UID, Title: threadTitle(message), CreatedAt: tx.Now}
		return nil
	}
	t := &run.Thread{}
	doc, err := tx.Doc(document.ThreadPath(id), t)
	if err != nil {
		return err
	}
	if !doc.Exists() && (req.Title != "" || req.Opens) {
		tx.Thread = &run.Thread{ID: id, UID: req.UID, Title: threadTitle(cmp.Or(req.Title, message)),
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
	tx.Thread = t
	return nil
}

// checkNoneOpen returns an error if the thread is reserved for an open run. The error's cause contains the run's ID and
// status.
func checkNoneOpen(tx *unit.Tx, t *run.Thread) error {
	open, err := tx.OpenRun(t.OpenRun)
	if err != nil || open == nil {
		return err
	}
	return fault.New(fault.Policy, fault.CodeRunOpen,
		"This conversation has an unfinished request (%s). Wait for it to end, or cancel it.", open.Status).
		Because(open)
}

// threadTitle returns the first line of a message, cut to the length of a title.
func threadTitle(prompt string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(prompt), "\n")
	return clip.Text(line, run.MaxTitle)
}
