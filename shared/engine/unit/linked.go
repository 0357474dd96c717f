package unit

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/store"
	"github.com/countersign-run/countersign/shared/store/document"
)

// ToolOf returns the tool if the run may call it, or nil ([toolbox.Toolbox.Callable]).
func (ex *Execution) ToolOf(name string, userInitiated bool) *tool.Tool {
	return ex.Toolbox.Callable(ex.Run, ex.State, name, userInitiated)
}

// ToolIn is [Execution.ToolOf] for the state of the run in the transition.
func (tx *Tx) ToolIn(name string, userInitiated bool) *tool.Tool {
	return tx.Ex.Toolbox.Callable(tx.Run, tx.State, name, userInitiated)
}

// ReadLinked reads the documents that describe the user's linked accounts for the tool, unless they are cached. It also
// reads the other documents that later steps need. If again is true, it reads the documents and the user's document
// again.
func (ex *Execution) ReadLinked(ctx context.Context, t *tool.Tool, again bool) error {
	paths := t.Reads(ex.Run.Scope())
	if again && len(paths) > 0 {
		return ex.Read(ctx, slices.Concat(paths, []string{document.UserPath(ex.Run.UID)})...)
	}
	missing := slices.DeleteFunc(slices.Clone(paths), func(p string) bool { _, read := ex.Docs[p]; return read })
	if len(missing) == 0 {
		return nil
	}
	return ex.Read(ctx, ex.prefetch(missing)...)
}

// Linked returns a context in which a tool's functions find the documents that this execution has read for them.
func (ex *Execution) Linked(ctx context.Context, t *tool.Tool) context.Context {
	var docs []store.Doc
	for _, p := range t.Reads(ex.Run.Scope()) {
		if d, read := ex.Docs[p]; read {
			docs = append(docs, d)
		}
	}
	return document.With(ctx, docs...)
}

// Forget drops the cached documents that the tool's calls depend on, so that they are read again.
func (ex *Execution) Forget(t *tool.Tool) {
	for _, p := range t.Reads(ex.Run.Scope()) {
		delete(ex.Docs, p)
	}
}

// PlaceIn returns the place that a call of the tool would act in, according to the documents of the transition. err is
// the tool's error. missing means that documents were not read yet; the decision must return it.
func (tx *Tx) PlaceIn(ctx context.Context, t *tool.Tool) (in tool.Place, err, missing error) {
	known, err := linkedIn(ctx, tx, t)
	if err != nil {
		return in, nil, err
	}
	in, err = t.Place(known, tx.Run.Scope())
	return in, err, nil
}

// RuleIn returns the tool's policy for a call with these arguments, according to the documents of the transition, or
// nil. err is the tool's error. missing means that documents were not read yet; the decision must return it.
func (tx *Tx) RuleIn(t *tool.Tool, args json.RawMessage) (r *tool.CallPolicy, err, missing error) {
	if !t.Rules() {
		return nil, nil, nil
	}
	known, err := linkedIn(context.Background(), tx, t)
	if err != nil {
		return nil, nil, err
	}
	r, err = t.Rule(known, tx.Run.ToolCall("", args, tool.Place{}))
	return r, err, nil
}

// linkedIn returns a context in which the tool's functions find the documents of the transition. It returns
// errMissingDocs if they were not read yet.
func linkedIn(ctx context.Context, tx *Tx, t *tool.Tool) (context.Context, error) {
	var docs []store.Doc
	paths := t.Reads(tx.Run.Scope())
	for _, p := range paths {
		d, read := tx.Ex.Docs[p]
		if !read {
			return nil, errMissingDocs(paths)
		}
		docs = append(docs, d)
	}
	return document.With(ctx, docs...), nil
}

// AddLinkPrecondition makes the commit fail if the user's linked accounts for the tool have changed since they were
// read. With user, it also fails if the user's document has changed.
func (tx *Tx) AddLinkPrecondition(t *tool.Tool, user bool) {
	tx.restsOn = append(tx.restsOn, t.Reads(tx.Run.Scope())...)
	if user {
		tx.restsOn = append(tx.restsOn, document.UserPath(tx.Run.UID))
	}
}

// AddPrecondition makes the commit fail if the document has changed since it was read.
func (tx *Tx) AddPrecondition(path string) { tx.restsOn = append(tx.restsOn, path) }

// AddUserPrecondition makes the commit fail if the user's document has changed since it was read. If the document does
// not exist, it is created, because a missing document cannot be checked otherwise.
func (tx *Tx) AddUserPrecondition() error {
	path := document.UserPath(tx.Run.UID)
	if !tx.Ex.Docs[path].Exists() {
		return tx.UpdateUser(func(*run.User) {})
	}
	tx.restsOn = append(tx.restsOn, path)
	return nil
}
