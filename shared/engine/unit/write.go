package unit

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/store"
	"github.com/countersign-run/countersign/shared/store/audit"
	"github.com/countersign-run/countersign/shared/store/document"
)

// prepareWrites derives status, lease and due time from the state, and builds the writes.
func (tx *Tx) prepareWrites() error {
	if tx.empty() {
		return nil
	}
	if err := tx.SetStatus(tx.State.Derived()); err != nil {
		return err
	}
	if !tx.KeepLease && !tx.renewed || tx.State.End != nil && (len(tx.events) > 0 || !run.NeedsDisposal(tx.State)) {
		tx.setLease()
	}
	if err := prepareJoined(tx); err != nil {
		return err
	}
	if err := tx.countUsage(); err != nil {
		return err
	}
	for _, write := range []func() error{tx.writeAudit, tx.writeRun, tx.writeThread, tx.writeApprovals, tx.writeUser} {
		if err := write(); err != nil {
			return err
		}
	}
	if err := writeOthers(tx); err != nil {
		return err
	}
	writeChecks(tx)
	return nil
}

// prepareJoined builds the writes of the other runs. The user's document is one and the same, and tx writes it.
func prepareJoined(tx *Tx) error {
	for _, j := range tx.joined {
		if j.empty() {
			continue
		}
		if err := j.SetStatus(j.State.Derived()); err != nil {
			return err
		}
		for _, write := range []func() error{j.countUsage, j.writeAudit, j.writeRun, j.writeApprovals} {
			if err := write(); err != nil {
				return err
			}
		}
		tx.userChanged = tx.userChanged || j.userChanged
		tx.writes = append(tx.writes, j.writes...)
	}
	return nil
}

// setLease extends the lease for the step that this process makes next, or releases it.
func (tx *Tx) setLease() {
	lost := tx.Ex.LostLeases(tx.Run)
	if len(tx.events) > 0 {
		lost = 0
	}
	before := tx.Run.Lease.Owner
	tx.Run.Lease = run.Lease{Lapsed: lost}
	st, a := tx.Next()
	if need := tx.Ex.timeOf(st, a, tx.Run); need > 0 && !tx.DueNow && !tx.KeepLease && tx.DueIn == 0 {
		tx.tookOver = before != "" && before != tx.Ex.Owner
		tx.Run.Lease.Owner, tx.Run.Lease.Until = tx.Ex.Owner, tx.Ex.leaseUntil(tx.Now, need, lost)
	}
}

func (tx *Tx) put(path string, fields map[string]any, v any) error {
	write, doc := document.Known, tx.Ex.Docs[path]
	if tx.Ex.later[path] {
		write = document.Put
	}
	doc.Path = path
	w, err := write(doc, fields, v)
	tx.writes = append(tx.writes, w)
	return err
}

// putChunks writes the parts that a log has moved out of its document.
func putChunks[T any](tx *Tx, path, collection string, chunks []document.Chunk[T]) error {
	for _, c := range chunks {
		if err := tx.put(document.ChunkPath(path, collection, c.First), nil, c.Items); err != nil {
			return err
		}
	}
	return nil
}

// maxSessionTail is the part of a session's events that every step writes, in bytes. The rest is in separate documents,
// so that late steps cost about as much as early ones.
const maxSessionTail = 32 << 10

func (tx *Tx) writeRun() error {
	tx.Run.UpdatedAt, tx.Run.Plan = tx.Now, tx.State.PlanHead()
	path := document.RunPath(tx.Run.ID)
	tx.Run.Log.Within(len(tx.Ex.Docs[path].Data))
	tail := document.MaxTail
	if tx.State.Plan != nil {
		tail = maxSessionTail
	}
	chunks, err := tx.Run.Log.AppendWithin(tail, 0, 1<<20, tx.events...)
	if err == nil {
		err = putChunks(tx, path, "events", chunks)
	}
	if err != nil {
		return err
	}
	fields := document.RunFields{UID: tx.Run.UID, ThreadID: tx.Run.ThreadID, Status: string(tx.State.Status),
		CreatedAt: tx.Run.CreatedAt}
	if tx.KeepLease && len(tx.events) == 0 { // the run does not advance: its due time and quarantine stay
		stored := document.RunFieldsOf(tx.Ex.Docs[path])
		fields.Due, fields.Tries, fields.Quarantined = stored.Due, stored.Tries, stored.Quarantined
	} else if fields.Due, err = due(tx); err != nil {
		return err
	}
	return tx.put(path, fields.Map(tx.Run.ID), tx.Run)
}

func (tx *Tx) writeThread() error {
	path := document.ThreadPath(tx.Run.ThreadID)
	if tx.Thread == nil || tx.Thread.ID == "" || tx.Thread.Deleting {
		return nil
	}
	tx.Thread.Log.Within(len(tx.Ex.Docs[path].Data))
	tx.Thread.Note(run.SearchTerms(tx.Ex.Toolbox.Tools, tx.State)...)
	chunks, err := tx.Thread.Add(tx.messages...)
	if err == nil {
		err = putChunks(tx, path, run.MessageChunks, chunks)
	}
	if err == nil {
		err = writeContents(tx, path)
	}
	if err != nil {
		return err
	}
	fields := document.ThreadFields{UID: tx.Thread.UID, UpdatedAt: tx.Thread.UpdatedAt}
	return tx.put(path, fields.Map(tx.Thread.ID), tx.Thread)
}

// writeContents adds the run's contents to the thread, which is about to be written.
func writeContents(tx *Tx, path string) error {
	if tx.Kept == nil {
		return nil
	}
	chunks, err := tx.Thread.AddContents(tx.Run.ID, cmp.Or(tx.Kept.By, tx.State.SignedBy()), tx.State, tx.Kept.Contents,
		tx.Kept.Recorded)
	if err != nil {
		return err
	}
	return putChunks(tx, path, run.ContentChunks, chunks)
}

func (tx *Tx) writeApprovals() error {
	for _, a := range tx.Approvals {
		fields := document.ApprovalFields{UID: a.UID, RunID: a.RunID, ThreadID: a.ThreadID, Status: string(a.Status),
			RequestedAt: a.RequestedAt, ExpiresAt: a.ExpiresAt}
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

func writeOthers(tx *Tx) error {
	for _, path := range slices.Sorted(maps.Keys(tx.others)) {
		if err := tx.put(path, tx.others[path].fields, tx.others[path].v); err != nil {
			return err
		}
	}
	return nil
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

// writeChecks adds a check of each document that the tx depends on and does not write. A document that does not exist
// gets no check.
func writeChecks(tx *Tx) {
	slices.Sort(tx.restsOn)
	for _, p := range slices.Compact(tx.restsOn) {
		written := func(w store.Write) bool { return w.Doc.Path == p }
		if d := tx.Ex.Docs[p]; d.Exists() && !slices.ContainsFunc(tx.writes, written) {
			tx.writes = append(tx.writes, store.Check(p, d.Version))
		}
	}
}

// commit writes the tx in one atomic commit, and then updates the execution's run, state and events.
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
		tx.Ex.clock.observe(versions[i], sent)
	}
	if tx.userChanged {
		tx.Ex.discarded = 0 // countUsage has counted them
	}
	for _, t := range append([]*Tx{tx}, tx.joined...) {
		if t.after == nil {
			t.after = append(t.Ex.Events, t.events...)
		}
		t.Ex.Run, t.Ex.State, t.Ex.Events = t.Run, t.State, t.after
	}
	return nil
}

// countUsage adds the run's model usage since the last count to the user's document, with the calls that were dropped.
// It does so at the end of the run, and whenever the user's document is written anyway.
func (tx *Tx) countUsage() error {
	if tx.Ex.UserLimits.None() || tx.State.End == nil && !tx.userChanged {
		return nil
	}
	used := run.RunUsage{Calls: max(tx.Run.Counted.Calls, tx.State.ModelCalls+tx.UnrecordedCalls),
		Tokens: max(tx.Run.Counted.Tokens, tx.State.Tokens)}
	calls, tokens := used.Calls-tx.Run.Counted.Calls, used.Tokens-tx.Run.Counted.Tokens
	if calls += tx.Ex.discarded; calls == 0 && tokens == 0 {
		return nil
	}
	tx.Run.Counted = used
	return tx.UpdateUser(func(u *run.User) { u.Usage.CountUse(tx.Now, calls, tokens) })
}
