package journal

import (
	"github.com/countersign-run/countersign/shared/document"
	"github.com/countersign-run/countersign/shared/run"
)

// OpenRun returns the run that the thread is kept for until it has ended, or nil. A run that was deleted or put aside
// keeps it for nobody, since nobody knows whether it will ever end.
func OpenRun(tx *Tx, t *run.Thread) (*run.OpenError, error) {
	if t.OpenRun == "" {
		return nil, nil
	}
	path := document.RunPath(t.OpenRun)
	d, read := tx.Ex.Docs[path]
	if !read {
		return nil, errMissingDocs{path}
	}
	f := document.RunFieldsOf(d) // the document itself need not be readable
	open := &run.OpenError{RunID: t.OpenRun, Status: run.Status(f.Status)}
	if !d.Exists() || f.Aside || open.Status == run.Completed || open.Status == run.Failed {
		return nil, nil
	}
	return open, nil
}
