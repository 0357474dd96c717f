package records

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/store"
	"github.com/countersign-run/countersign/shared/store/attachment"
	"github.com/countersign-run/countersign/shared/store/audit"
	"github.com/countersign-run/countersign/shared/store/document"
	"github.com/countersign-run/countersign/shared/terminal"
)

// Item is one stored piece of a user's data.
type Item struct {
	Kind string `json:"kind"` // such as ItemRun
	In   string `json:"in,omitempty"`
	Data any    `json:"data"`
}

// The kinds of items.
const (
	ItemUser     = "user" // without the hashes of tokens and the keys of devices
	ItemNote     = "note" // what the assistant remembers
	ItemPasskey  = "passkey"
	ItemHost     = "host" // without its secret
	ItemTerminal = "terminal"
	ItemThread   = "thread"
	ItemMessage  = "message" // In is its thread
	ItemContent  = "content" // In is its thread; a content that the model sees verbatim
	ItemRun      = "run"
	ItemEvent    = "event"    // In is its run
	ItemApproval = "approval" // In is its run
	ItemFile     = "file"     // In is its run, or empty if no run has it; with its bytes in base64
	ItemOutput   = "output"   // In is its run; the output of an action
	ItemAudit    = "audit"    // In is its run
)

// Export passes the user's stored data, except linked accounts, to each. It records the export in the user's own audit
// chain first.
func (r *Records) Export(ctx context.Context, uid string, each func(Item) error) error {
	for try := 0; ; try++ {
		err := r.record(ctx, audit.Entry{UID: uid, Kind: audit.Exported})
		if err == nil {
			return r.Each(ctx, uid, each)
		}
		if !errors.Is(err, store.ErrConflict) || try == maxRaces {
			return storeError(err)
		}
	}
}

// Each passes the user's stored data, except linked accounts, to each. The order is the same as long as nothing
// changes: the user, notes, passkeys, uploaded files that no run has, hosts with their terminals, threads with their
// messages and contents, runs with their events, approvals, files and output, and the audit log. Data that is deleted
// in the meantime is left out. An unreadable run is passed as it is stored (RawRun).
func (r *Records) Each(ctx context.Context, uid string, each func(Item) error) error {
	u, err := r.User(ctx, uid)
	if err != nil {
		return err
	}
	for i := range u.Tokens {
		u.Tokens[i].Hash = nil // like the secrets of hosts, a hash must not leave the server
	}
	for i := range u.Devices {
		u.Devices[i].P256dh, u.Devices[i].Auth = nil, nil
	}
	if err := each(Item{Kind: ItemUser, Data: u}); err != nil {
		return err
	}
	if err := r.exportNotes(ctx, uid, each); err != nil {
		return err
	}
	if err := r.exportPasskeys(ctx, uid, each); err != nil {
		return err
	}
	if err := r.exportUploads(ctx, uid, each); err != nil {
		return err
	}
	if err := r.exportHosts(ctx, uid, each); err != nil {
		return err
	}
	err = r.eachPage(ctx, document.ThreadsOf(uid, userPage),
		func(d store.Doc) error { return r.exportThread(ctx, d, u.Deleting, each) })
	if err != nil {
		return err
	}
	err = r.eachPage(ctx, document.RunsOf(uid, userPage), func(d store.Doc) error { return r.exportRun(ctx, d, each) })
	if err != nil {
		return err
	}
	entries := document.AuditOf(uid, userPage)
	return r.eachPage(ctx, entries, func(d store.Doc) error {
		e, err := audit.Decode(d.Data)
		if err != nil {
			return fmt.Errorf("records: %s cannot be read: %w", d.Path, err)
		}
		return each(Item{ItemAudit, e.RunID, e})
	})
}

// exportHosts passes the user's hosts, without secrets, and their terminals.
func (r *Records) exportHosts(ctx context.Context, uid string, each func(Item) error) error {
	hosts, terminals, err := terminal.All(ctx, r.Store, uid)
	if err != nil {
		return err
	}
	for _, h := range hosts {
		if err := each(Item{Kind: ItemHost, Data: h.WithoutSecret()}); err != nil {
			return err
		}
	}
	for _, t := range terminals {
		if err := each(Item{Kind: ItemTerminal, Data: t}); err != nil {
			return err
		}
	}
	return nil
}

func (r *Records) exportThread(ctx context.Context, d store.Doc, deleting bool, each func(Item) error) error {
	var t run.Thread
	if err := document.Decode(d, &t); err != nil {
		return err
	}
	if err := each(Item{Kind: ItemThread, Data: viewThread(t)}); err != nil {
		return err
	}
	err := r.messages(ctx, t, 1, t.Log.Count+1, func(m run.Message) error { return each(Item{ItemMessage, t.ID, m}) })
	if err == nil {
		err = r.contents(ctx, t, func(c run.Content) error { return each(Item{ItemContent, t.ID, c}) })
	}
	if !errors.Is(err, errGone) {
		return err
	}
	if _, now := r.thread(ctx, t.UID, t.ID); deleting || fault.Is(now, fault.Auth, fault.CodeNotFound) {
		return nil
	}
	return err
}

// RawRun is an unreadable run as it is stored.
type RawRun struct {
	RunID    string `json:"runId"`
	ThreadID string `json:"threadId"`
	Status   string `json:"status"`
	Raw      string `json:"raw"`
}

func (r *Records) exportRun(ctx context.Context, d store.Doc, each func(Item) error) error {
	var got run.Run
	var s RunDetails
	err := document.Decode(d, &got)
	if err == nil {
		s, err = r.RunDetails(ctx, got)
	}
	if err != nil {
		if docs, e := r.get(ctx, d.Path); e != nil || !docs[0].Exists() {
			return e
		}
		var f *fault.Error
		if errors.As(err, &f) || ctx.Err() != nil {
			return err
		}
		fields := document.RunFieldsOf(d)
		return each(Item{Kind: ItemRun, Data: RawRun{document.ID(d), fields.ThreadID, fields.Status, string(d.Data)}})
	}
	if err := each(Item{Kind: ItemRun, Data: run.NewView(got, s.State, "")}); err != nil {
		return err
	}
	for _, e := range s.Events {
		if err := each(Item{ItemEvent, got.ID, e}); err != nil {
			return err
		}
	}
	for _, a := range s.Approvals {
		if err := each(Item{ItemApproval, got.ID, a}); err != nil {
			return err
		}
	}
	if err := r.exportFiles(ctx, got, s.State, each); err != nil {
		return err
	}
	return r.exportOutputs(ctx, got, each)
}

// exportFiles passes the files of the run's prompt and answers, with their bytes. Files that are deleted in the
// meantime are left out.
func (r *Records) exportFiles(ctx context.Context, got run.Run, s *run.State, each func(Item) error) error {
	for _, f := range slices.Concat(s.Input.Files, s.Made) {
		docs, err := r.get(ctx, f.Ref(got.ID).Paths()...)
		if err != nil {
			return err
		}
		var parts []json.RawMessage
		for _, d := range docs {
			parts = append(parts, d.Data)
		}
		file, err := attachment.Join(got.UID, parts)
		if err == nil {
			err = file.Fill(ctx, r.Files)
		}
		if errors.Is(err, attachment.ErrGone) {
			continue
		}
		if err == nil {
			err = each(Item{ItemFile, got.ID, file})
		}
		if err != nil {
			return storeError(err)
		}
	}
	return nil
}

// RunDetails is the stored data of one run, except its audit chain.
type RunDetails struct {
	Events    []run.Event
	State     *run.State // the state after Events
	Approvals []run.Approval
}

// Run reads the document of any user's run. It is for operators, not for users' requests.
func (r *Records) Run(ctx context.Context, id string) (got run.Run, found bool, err error) {
	docs, err := r.get(ctx, document.RunPath(id))
	if err != nil || !docs[0].Exists() {
		return got, false, err
	}
	if err := document.Decode(docs[0], &got); err != nil {
		return got, true, err
	}
	return got, true, nil
}

// RunDetails reads the data that belongs to the run's document.
func (r *Records) RunDetails(ctx context.Context, got run.Run) (s RunDetails, err error) {
	chunks, err := r.getFound(ctx, got.Log.ChunkPaths(document.RunPath(got.ID), "events"))
	if err != nil {
		return s, err
	}
	parts := make([]json.RawMessage, len(chunks))
	for i, d := range chunks {
		parts[i] = d.Data
	}
	if s.Events, err = got.Log.All(parts...); err != nil {
		return s, err
	}
	if s.State, err = run.Fold(s.Events); err != nil {
		return s, err
	}
	paths := make([]string, got.Approvals)
	for i := range paths {
		paths[i] = document.ApprovalPath(run.ApprovalID(got.ID, i+1))
	}
	docs, err := r.getFound(ctx, paths)
	if err != nil {
		return s, err
	}
	for _, d := range docs {
		var a run.Approval
		if err := document.Decode(d, &a); err != nil {
			return s, err
		}
		s.Approvals = append(s.Approvals, a)
	}
	return s, nil
}

// getFound reads the documents and returns those that exist, a page at a time.
func (r *Records) getFound(ctx context.Context, paths []string) (found []store.Doc, err error) {
	for page := range slices.Chunk(paths, userPage) {
		docs, err := r.get(ctx, page...)
		if err != nil {
			return nil, err
		}
		for _, d := range docs {
			if d.Exists() {
				found = append(found, d)
			}
		}
	}
	return found, nil
}

// Chain returns the audit entries of any user's run in order. kept is the stored end of the chain if the run was
// deleted, or nil.
func (r *Records) Chain(ctx context.Context, runID string) (entries []audit.Entry, kept *audit.Head, err error) {
	docs, err := r.get(ctx, document.AuditHeadPath(runID))
	if err != nil {
		return nil, nil, err
	}
	if docs[0].Exists() {
		kept = &audit.Head{}
		if err := document.Decode(docs[0], kept); err != nil {
			return nil, nil, err
		}
	}
	q := document.AuditOfChain(runID, userPage)
	err = r.eachPage(ctx, q, func(d store.Doc) error {
		e, err := audit.Decode(d.Data)
		if err != nil {
			// an entry without content matches no hash, so it is reported as changed
			e = audit.Entry{Seq: document.AuditFieldsOf(d).Seq, RunID: runID}
		}
		entries = append(entries, e)
		return nil
	})
	return entries, kept, err
}
