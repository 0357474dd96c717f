package journal

import (
	"github.com/countersign-run/countersign/shared/document"
	"github.com/countersign-run/countersign/shared/run"
)

// OpenRun returns the run with the id, for which a thread or a terminal is kept until it has ended, or nil. A run that
// was deleted or put aside keeps it for nobody, since nobody knows whether it will ever end.
func OpenRun(tx *Tx, id string) (*run.OpenError, error) {
	if id == "" {
		return nil, nil
	}
	path := document.RunPath(id)
	d, read := tx.Ex.Docs[path]
	if !read {
		return nil, errMissingDocs{path}
	}
	f := document.RunFieldsOf(d) // the document itself need not be readable
	open := &run.OpenError{RunID: id, Status: run.Status(f.Status)}
	if !d.Exists() || f.Aside || open.Status == run.Completed || open.Status == run.Failed {
		return nil, nil
	}
	return open, nil
}
