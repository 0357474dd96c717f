package unit

import (
	"context"

	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/store/document"
)

// Join returns a transition of another run of the same user. It is committed together with tx: both happen, or neither.
// It may add events, approvals and audit entries, and change the user's document. It keeps the lease: whichever process
// gets the other run's resume advances that run. The error is AuthError not_found for a run that is not the user's.
func (tx *Tx) Join(ctx context.Context, runID string) (*Tx, error) {
	for _, j := range tx.joined {
		if j.Run.ID == runID {
			return j, nil
		}
	}
	doc, read := tx.Ex.Docs[document.RunPath(runID)]
	switch {
	case !read:
		return nil, errMissingDocs{document.RunPath(runID)}
	case runID == tx.Run.ID || !doc.Exists() || document.RunFieldsOf(doc).UID != tx.Run.UID:
		return nil, fault.NotFound()
	}
	other := tx.Ex.NewExecution(runID, nil)
	other.Docs, other.clock = tx.Ex.Docs, tx.Ex.clock
	if err := other.fold(ctx); err != nil {
		return nil, err
	}
	j, err := other.newTx()
	if err != nil {
		return nil, err
	}
	if j.userDoc, err = tx.User(); err != nil {
		return nil, err
	}
	j.Now, j.KeepLease = tx.Now, true
	tx.joined = append(tx.joined, j)
	return j, nil
}

// Joined returns the other runs that a committed transition has changed.
func (tx *Tx) Joined() (others []*Execution) {
	for _, j := range tx.joined {
		if !j.empty() {
			others = append(others, j.Ex)
		}
	}
	return others
}

// Need asks for the documents to be read that were not, all at once.
func (tx *Tx) Need(paths ...string) error {
	var missing errMissingDocs
	for _, p := range paths {
		if _, read := tx.Ex.Docs[p]; !read {
			missing = append(missing, p)
		}
	}
	if len(missing) > 0 {
		return missing
	}
	return nil
}
