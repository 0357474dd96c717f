package records

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/store"
	"github.com/countersign-run/countersign/shared/store/audit"
	"github.com/countersign-run/countersign/shared/store/document"
)

// A run that no process could move was put aside ([loop.Postponed]). Often its document cannot be read, so what its
// deletion must know is found without it: the audit tells whether an effect is under way, and the keys of its parts
// follow from its id.

// remains is what is deleted with a run's document.
type remains struct {
	paths []string      // its approvals and the older parts of its log
	kept  []string      // actions whose output may be kept
	chain audit.Head    // the end of its audit chain, which stays
	user  []store.Write // the user's document, without the approvals of this run that are open
}

// aside reports whether the run of the document was put aside.
func aside(d store.Doc) bool { return document.RunFieldsOf(d).Aside }

// remains returns what is to be deleted with the run. It refuses a run that has not ended (PolicyError busy), unless
// that was put aside and is between two effects.
func (r *Records) remains(ctx context.Context, d store.Doc) (left remains, err error) {
	switch {
	case aside(d):
		return r.remainsFound(ctx, d)
	case !ended(d):
		return left, errBusy()
	case unclean(d):
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
	return left, nil
}

// remainsFound finds without the run's document what is to be deleted with it.
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
	left.paths = append(paths, parts...)
	if len(open) == 0 {
		return left, nil
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

// begun returns the actions of the chain that were begun.
func begun(entries []audit.Entry) (ids []string) {
	for _, e := range entries {
		if e.Kind == audit.Intent {
			ids = append(ids, e.ActionID)
		}
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// underWay reports whether an effect of the chain was started and has no outcome; an entry that cannot be read may be
// such a one.
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

// beginsLater reports whether the chain's beginning has expired, which may have been about an effect that is under way.
func (r *Records) beginsLater(entries []audit.Entry, d store.Doc) bool {
	if len(entries) > 0 {
		return entries[0].Seq > 1 && !entries[0].PrevExpires.IsZero()
	}
	created := document.RunFieldsOf(d).CreatedAt
	return r.AuditDays > 0 && created.AddDate(0, 0, r.AuditDays).Before(r.now())
}

// approvalsOf finds a run's approvals, which are numbered from 1; open has, for each open one, the agent that it counts
// for.
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

// countsFor returns the agent that the approval counts for. One that cannot be read counts as one of a release before,
// for the assistant.
func countsFor(d store.Doc) string {
	var a struct {
		Agent string `json:"agent"`
	}
	if document.Decode(d, &a) != nil {
		return ""
	}
	return a.Agent
}

// partsOf finds the older parts of a run's log: each is named by the number of its first event, and the next by the
// number after its last.
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

// Unended is a run that has not ended, or of which something is still to be removed.
type Unended struct {
	RunID     string     `json:"runId"`
	Status    run.Status `json:"status"`
	Approvals int        `json:"approvals"` // approvals and reviews that wait for the user
	Acting    bool       `json:"acting"`    // an effect was started and has no outcome yet
	Aside     bool       `json:"aside"`     // no process could move it, and it is no longer delivered
}

// Unended returns the user's runs that have not ended, or are not cleaned up, oldest first, also those that cannot be
// read.
func (r *Records) Unended(ctx context.Context, uid string) (all []Unended, err error) {
	err = r.eachPage(ctx, document.RunsOf(uid, userPage), func(d store.Doc) error {
		if ended(d) && !unclean(d) {
			return nil
		}
		u := Unended{RunID: document.ID(d), Status: run.Status(document.RunFieldsOf(d).Status), Aside: aside(d)}
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

// RunOwner returns the id of a run's user, also for a run that cannot be read; found is false where there is none.
func (r *Records) RunOwner(ctx context.Context, id string) (uid string, found bool, err error) {
	docs, err := r.get(ctx, document.RunPath(id))
	if err != nil || !docs[0].Exists() {
		return "", false, err
	}
	return document.RunFieldsOf(docs[0]).UID, true, nil
}
