package journal

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/countersign-run/countersign/shared/document"
	"github.com/countersign-run/countersign/shared/run"
	"github.com/countersign-run/countersign/shared/store"
	"github.com/countersign-run/countersign/shared/tool"
)

// ReadLinked reads the documents by which the tool knows what the run's user has linked, with what else the run's later
// steps need, unless they were read before. Where they were read for an earlier step, or again is true, they are read
// again, and the user's own with them.
func ReadLinked(ctx context.Context, ex *Execution, t *tool.Tool, again bool) error {
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

// Linked returns a context in which a tool's functions find what this execution has read for them.
func Linked(ctx context.Context, ex *Execution, t *tool.Tool) context.Context {
	var docs []store.Doc
	for _, p := range t.Reads(ex.Run.Scope()) {
		if d, read := ex.Docs[p]; read {
			docs = append(docs, d)
		}
	}
	return document.With(ctx, docs...)
}

// Forget has the documents that the tool's calls rest on read again when they are needed.
func Forget(ex *Execution, t *tool.Tool) {
	for _, p := range t.Reads(ex.Run.Scope()) {
		delete(ex.Docs, p)
	}
}

// PlaceIn returns where a call of the tool would act by the documents that the transition was decided on. err is the
// tool's, and missing that these documents were not read yet, which a decision returns.
func PlaceIn(ctx context.Context, tx *Tx, t *tool.Tool) (in tool.Place, err, missing error) {
	known, err := linkedIn(ctx, tx, t)
	if err != nil {
		return in, nil, err
	}
	in, err = t.Place(known, tx.Run.Scope())
	return in, err, nil
}

// RuleIn returns what the tool says of a call with the arguments, by the documents that the transition was decided on,
// or nil. err is the tool's, and missing that these documents were not read yet, which a decision returns.
func RuleIn(tx *Tx, t *tool.Tool, args json.RawMessage) (r *tool.Ruling, err, missing error) {
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

// linkedIn returns a context in which the tool's functions find the documents that the transition was decided on, or
// the error that these were not read yet.
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

// RestOnLinked makes the commit fail where what the run's user has linked for the tool has changed since it was read,
// or, with the user, what the user's own document says of them.
func RestOnLinked(tx *Tx, t *tool.Tool, user bool) {
	tx.restsOn = append(tx.restsOn, t.Reads(tx.Run.Scope())...)
	if user {
		tx.restsOn = append(tx.restsOn, document.UserPath(tx.Run.UID))
	}
}

// RestOn makes the commit fail where the document has changed since it was read.
func RestOn(tx *Tx, path string) { tx.restsOn = append(tx.restsOn, path) }

// RestOnUser makes the commit fail where what the user's own document says of them has changed since it was read. One
// that does not exist is created, because nothing else holds it to that.
func RestOnUser(tx *Tx) error {
	path := document.UserPath(tx.Run.UID)
	if !tx.Ex.Docs[path].Exists() {
		return tx.UpdateUser(func(*run.User) {})
	}
	tx.restsOn = append(tx.restsOn, path)
	return nil
}
