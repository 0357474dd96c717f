package unit

import (
	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/store/document"
)

// OpenRun returns the open run with this ID, for which a thread or a terminal is reserved, or nil. A deleted or
// quarantined run does not count, because it may never end.
func (tx *Tx) OpenRun(id string) (*run.OpenError, error) {
	if id == "" {
		return nil, nil
	}
	path := document.RunPath(id)
	d, read := tx.Ex.Docs[path]
	if !read {
		return nil, errMissingDocs{path}
	}
	f := document.RunFieldsOf(d) // the document itself may be unreadable
	open := &run.OpenError{RunID: id, Status: run.Status(f.Status)}
	if !d.Exists() || f.Quarantined || open.Status == run.Completed || open.Status == run.Failed {
		return nil, nil
	}
	return open, nil
}
