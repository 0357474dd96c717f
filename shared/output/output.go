// Package output keeps what calls print: for each action one document that holds the newest bytes, beside documents
// that each hold a full part of what came before. Whoever writes or reads says at which byte. None of it is in the
// run's document, so storing output never meets a decision about the run.
//
// The document is made by the commit of the intent ([Begin]). Everything later rests on it, so a process that wakes up
// late cannot bring back what was deleted.
package output

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/countersign-run/countersign/shared/document"
	"github.com/countersign-run/countersign/shared/store"
	"github.com/countersign-run/countersign/shared/strictjson"
)

// The bounds of what is kept, in bytes.
const (
	Max     = 1 << 20  // of an action
	maxPart = 64 << 10 // of a document
)

// Kept is what is stored of an action's output.
type Kept struct {
	Bytes int64 // stored so far

	run, action string
	tail        []byte    // those behind the full parts
	version     time.Time // zero: there is no document
}

// head is the document of a Kept.
type head struct {
	Bytes int64  `json:"bytes"`
	Tail  []byte `json:"tail,omitempty"`
}

// ErrGone means that the output was deleted, or never begun.
var ErrGone = errors.New("output: there is none")

// errGap means that bytes would be missing before those that are added.
var errGap = errors.New("output: bytes before these are missing")

// Begin returns the document of an output of which nothing is stored yet.
func Begin(runID, actionID string) (path string, content any) {
	return document.OutputPath(runID, actionID), head{}
}

// Of returns what the document of an action's output says, which may be missing.
func Of(d store.Doc, runID, actionID string) (*Kept, error) {
	k := &Kept{run: runID, action: actionID, version: d.Version}
	if !d.Exists() {
		return k, nil
	}
	var h head
	if err := document.Decode(d, &h); err != nil {
		return nil, err
	}
	k.Bytes, k.tail = h.Bytes, h.Tail
	if int64(len(k.tail)) != k.Bytes%maxPart {
		return nil, fmt.Errorf("output: %s holds %d bytes of %d", d.Path, len(k.tail), k.Bytes)
	}
	return k, nil
}

// Read reads what is stored of an action's output, of which there may be nothing.
func Read(ctx context.Context, st store.Store, runID, actionID string) (*Kept, error) {
	docs, err := st.Get(ctx, document.OutputPath(runID, actionID))
	if err != nil {
		return nil, err
	}
	return Of(docs[0], runID, actionID)
}

// Exists reports whether the output was begun and not deleted.
func (k *Kept) Exists() bool { return !k.version.IsZero() }

// ActionID returns the id of the action that has printed it.
func (k *Kept) ActionID() string { return k.action }

// Deletes returns what deletes the output: its full parts, and its own document, which must be as it was read.
func (k *Kept) Deletes() (parts []store.Write, own store.Write) {
	for first := int64(0); first+maxPart <= k.Bytes; first += maxPart {
		parts = append(parts, store.Delete(document.OutputPartPath(k.run, k.action, first), time.Time{}))
	}
	return parts, store.Delete(document.OutputPath(k.run, k.action), k.version)
}

// Append stores bytes whose first is number at, in one commit. Those that are stored already are left out, and so is
// what is beyond Max. Errors: [ErrGone], the store's; after [store.ErrConflict] the output must be read again.
func (k *Kept) Append(ctx context.Context, st store.Store, at int64, b []byte) error {
	switch {
	case !k.Exists():
		return ErrGone
	case at > k.Bytes:
		return errGap
	case at+int64(len(b)) <= k.Bytes || k.Bytes >= Max:
		return nil
	}
	b = b[k.Bytes-at:]
	b = b[:min(int64(len(b)), Max-k.Bytes)]
	next := *k
	next.Bytes += int64(len(b))
	next.tail = append(k.tail[:len(k.tail):len(k.tail)], b...)
	var writes []store.Write
	for first := k.Bytes - int64(len(k.tail)); len(next.tail) >= maxPart; first += maxPart {
		data, err := strictjson.Marshal(part{next.tail[:maxPart]})
		if err != nil {
			return err
		}
		writes = append(writes, store.Create(document.OutputPartPath(k.run, k.action, first), nil, data))
		next.tail = next.tail[maxPart:]
	}
	data, err := strictjson.Marshal(head{next.Bytes, next.tail})
	if err != nil {
		return err
	}
	own := store.Update(document.OutputPath(k.run, k.action), k.version, nil, data)
	versions, err := st.Commit(ctx, append(writes, own)...)
	if err != nil {
		return err
	}
	next.version = versions[len(versions)-1]
	*k = next
	return nil
}

// part is the content of a document with a full part.
type part struct {
	Data []byte `json:"data"`
}

// From calls each with the stored bytes from number at on, in order and in pieces of at most a part. The error is that
// of each, [ErrGone] where the output is deleted meanwhile, or the store's.
func (k *Kept) From(ctx context.Context, st store.Store, at int64, each func(at int64, b []byte) error) error {
	whole := k.Bytes - int64(len(k.tail))
	for at < whole {
		first := at - at%maxPart
		var p part
		doc, err := document.Get(ctx, st, document.OutputPartPath(k.run, k.action, first), &p)
		if err != nil {
			return err
		}
		if !doc.Exists() {
			return ErrGone
		}
		if len(p.Data) != maxPart {
			return fmt.Errorf("output: %s holds %d bytes", doc.Path, len(p.Data))
		}
		if err := each(at, p.Data[at-first:]); err != nil {
			return err
		}
		at = first + maxPart
	}
	if at < k.Bytes {
		return each(at, k.tail[at-whole:])
	}
	return nil
}

// Follow calls each with the bytes from number at on, as they are stored, until ctx ends, which is no error, and
// returns the number of the byte after the last of them. While nothing is stored it reads nothing. The errors are those
// of [Kept.From].
func Follow(ctx context.Context, st store.Store, runID, actionID string, at int64,
	each func(at int64, b []byte) error) (next int64, err error) {
	counted := func(n int64, b []byte) error {
		err := each(n, b)
		if err == nil {
			at = n + int64(len(b))
		}
		return err
	}
	for d, err := range st.Watch(ctx, document.OutputPath(runID, actionID)) {
		var k *Kept
		if err == nil {
			k, err = Of(d, runID, actionID)
		}
		if err == nil {
			err = k.From(ctx, st, at, counted)
		}
		if ctx.Err() != nil {
			return at, nil
		}
		if err != nil {
			return at, err
		}
	}
	return at, nil
}
