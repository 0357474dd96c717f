package records

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/store"
	"github.com/countersign-run/countersign/shared/store/attachment"
	"github.com/countersign-run/countersign/shared/store/audit"
	"github.com/countersign-run/countersign/shared/store/document"
)

// A run that no process could advance is quarantined ([unit.Postponed]). Often its document cannot be read, so its
// deletion does without it: the audit log shows whether an effect is in progress, and the paths of the other documents
// follow from the run's ID.

// remains are the documents that are deleted with a run's document.
type remains struct {
	paths []string      // the approvals and the older events
	kept  []string      // actions that may have stored output
	chain audit.Head    // the end of the audit chain, which remains
	user  []store.Write // the user's document without this run's open approvals
	files []store.Write // the deletion of the files
}

// quarantined reports whether the run of the document is quarantined.
func quarantined(d store.Doc) bool { return document.RunFieldsOf(d).Quarantined }

// remains returns the documents to delete with the run. It returns PolicyError busy for a run that has not ended,
// unless the run is quarantined and no effect is in progress.
func (r *Records) remains(ctx context.Context, d store.Doc) (left remains, err error) {
	switch {
	case quarantined(d):
		return r.remainsFound(ctx, d)
	case !ended(d):
		return left, errBusy()
	case needsDisposal(d):
		return left, errDue()
	}
	var got run.Run
	if err := document.Decode(d, &got); err != nil {
		return r.remainsFound(ctx, d)
	}
	for n := 1; n <= got.Approvals; n++ {
		left.paths = append(left.paths, document.ApprovalPath(run.ApprovalID(got.ID, n)))
	}
	left.paths = append(left.paths, got.Log.ChunkPaths(d.Path, "events")...)
	left.chain, left.kept = got.Audit, got.Outputs
	left.files, err = r.released(ctx, got.ID, got.FileParts)
	return left, err
}

// remainsFound finds the documents to delete with the run without reading the run's document.
func (r *Records) remainsFound(ctx context.Context, d store.Doc) (left remains, err error) {
	id := document.ID(d)
	entries, _, err := r.Chain(ctx, id)
	if err != nil {
		return left, err
	}
	if underWay(entries) || r.beginsLater(entries, d) {
		return left, fault.New(fault.Policy, fault.CodeBusy,
			"Something in this conversation stopped while it was being done, and it isn't on record yet whether "+
				"that was done. The operator of this service has to look at it first.")
	}
	left.chain, left.kept = audit.HeadOf(entries), begun(entries)
	paths, open, err := r.approvalsOf(ctx, id)
	if err != nil {
		return left, err
	}
	parts, err := r.partsOf(ctx, d.Path)
	if err != nil {
		return left, err
	}
	left.paths = slices.Concat(paths, parts)
	left.files, err = r.released(ctx, id, attachment.MaxParts)
	if err != nil || len(open) == 0 {
		return left, err
	}
	doc, u, err := r.user(ctx, document.RunFieldsOf(d).UID)
	if err != nil || !doc.Exists() {
		return left, err
	}
	for _, agent := range open {
		u.CloseApproval(agent, r.Now())
	}
	w, err := userWrite(u.UID, doc, u)
	left.user = []store.Write{w}
	return left, err
}

// begun returns the actions that the chain shows as started.
func begun(entries []audit.Entry) (ids []string) {
	for _, e := range entries {
		if e.Kind == audit.Intent {
			ids = append(ids, e.ActionID)
		}
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// underWay reports whether an effect in the chain has started and has no outcome. An unreadable entry counts as such an
// effect.
func underWay(entries []audit.Entry) bool {
	open := map[string]bool{}
	for _, e := range entries {
		switch e.Kind {
		case audit.Intent:
			open[e.ActionID] = true
		case audit.Outcome:
			delete(open, e.ActionID)
		case "":
			return true
		}
	}
	return len(open) > 0
}

// beginsLater reports whether the first entries of the chain have expired. They may have been about an effect in
// progress.
func (r *Records) beginsLater(entries []audit.Entry, d store.Doc) bool {
	if len(entries) > 0 {
		return entries[0].Seq > 1 && !entries[0].PrevExpires.IsZero()
	}
	created := document.RunFieldsOf(d).CreatedAt
	return r.AuditDays > 0 && created.AddDate(0, 0, r.AuditDays).Before(r.now())
}

// approvalsOf finds a run's approvals, which are numbered from 1. open contains the agent of each open approval.
func (r *Records) approvalsOf(ctx context.Context, runID string) (paths, open []string, err error) {
	for n := 1; ; n += userPage {
		page := make([]string, userPage)
		for i := range page {
			page[i] = document.ApprovalPath(run.ApprovalID(runID, n+i))
		}
		docs, err := r.getFound(ctx, page)
		if err != nil || len(docs) == 0 {
			return paths, open, err
		}
		for _, d := range docs {
			paths = append(paths, d.Path)
			if document.ApprovalFieldsOf(d).Status == string(run.ApprovalOpen) {
				open = append(open, countsFor(d))
			}
		}
	}
}

// countsFor returns the agent whose open approvals include this one. An unreadable approval counts for the assistant,
// as those of earlier releases do.
func countsFor(d store.Doc) string {
	var a struct {
		Agent string `json:"agent"`
	}
	if document.Decode(d, &a) != nil {
		return ""
	}
	return a.Agent
}

// partsOf finds the older parts of a run's log. The name of each part is the number of its first event, so the last
// event of a part leads to the next part.
func (r *Records) partsOf(ctx context.Context, runPath string) (paths []string, err error) {
	for first := int64(1); ; {
		docs, err := r.get(ctx, document.ChunkPath(runPath, "events", first))
		if err != nil || !docs[0].Exists() {
			return paths, err
		}
		var events []json.RawMessage
		if err := document.Decode(docs[0], &events); err != nil {
			return paths, err
		}
		if len(events) == 0 {
			return paths, fmt.Errorf("records: %s has no events", docs[0].Path)
		}
		paths = append(paths, docs[0].Path)
		first += int64(len(events))
	}
}

// Unended is a run that has not ended, or that still has something to dispose of.
type Unended struct {
	RunID       string     `json:"runId"`
	Status      run.Status `json:"status"`
	Approvals   int        `json:"approvals"` // approvals and reviews that wait for the user
	Acting      bool       `json:"acting"`    // an effect has started and has no outcome yet
	Quarantined bool       `json:"aside"`     // the run is quarantined
}

// Unended returns the user's runs that have not ended or still have something to dispose of, oldest first. It includes
// unreadable runs.
func (r *Records) Unended(ctx context.Context, uid string) (all []Unended, err error) {
	err = r.eachPage(ctx, document.RunsOf(uid, userPage), func(d store.Doc) error {
		if ended(d) && !needsDisposal(d) {
			return nil
		}
		f := document.RunFieldsOf(d)
		u := Unended{RunID: document.ID(d), Status: run.Status(f.Status), Quarantined: f.Quarantined}
		entries, _, err := r.Chain(ctx, u.RunID)
		if err != nil {
			return err
		}
		u.Acting = underWay(entries)
		_, open, err := r.approvalsOf(ctx, u.RunID)
		u.Approvals = len(open)
		all = append(all, u)
		return err
	})
	return all, err
}

// RunOwner returns the ID of a run's user, even if the run cannot be read. found is false if there is no such run.
func (r *Records) RunOwner(ctx context.Context, id string) (uid string, found bool, err error) {
	docs, err := r.get(ctx, document.RunPath(id))
	if err != nil || !docs[0].Exists() {
		return "", false, err
	}
	return document.RunFieldsOf(docs[0]).UID, true, nil
}
