// Package output stores the output of calls. For each action, one document holds the newest bytes, and further
// documents hold the earlier bytes in parts of equal size. Readers and writers name the byte at which they start. No
// output is in the run's document, so storing output never conflicts with a decision about the run.
//
// The commit of the intent creates the document ([Begin]). Every later write requires it, so a process that resumes
// late cannot restore deleted output.
package output

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/countersign-run/countersign/shared/base/strictjson"
	"github.com/countersign-run/countersign/shared/store"
	"github.com/countersign-run/countersign/shared/store/document"
)

// Size limits, in bytes.
const (
	Max     = 1 << 20  // of an action's output
	maxPart = 64 << 10 // of one part
)

// Kept is the stored output of an action.
type Kept struct {
	Bytes int64 // number of bytes stored so far

	run, action string
	tail        []byte    // the bytes after the full parts
	version     time.Time // zero: the document does not exist
}

// head is the content of the document of a Kept.
type head struct {
	Bytes int64  `json:"bytes"`
	Tail  []byte `json:"tail,omitempty"`
}

// ErrGone means that the output was deleted or never started.
var ErrGone = errors.New("output: no output is stored")

// errGap means that bytes before the added ones are missing.
var errGap = errors.New("output: bytes before these are missing")

// Begin returns the path and the content of the document of an empty output.
func Begin(runID, actionID string) (path string, content any) {
	return document.OutputPath(runID, actionID), head{}
}

// Of returns the output in the document of an action's output. The document may be missing; then Exists returns false.
// The error reports a document that cannot be read.
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
		return nil, fmt.Errorf("output: %s has %d bytes of %d", d.Path, len(k.tail), k.Bytes)
	}
	return k, nil
}

// Read reads the stored output of an action, which may not exist. The error is the store's or [Of]'s.
func Read(ctx context.Context, st store.Store, runID, actionID string) (*Kept, error) {
	docs, err := st.Get(ctx, document.OutputPath(runID, actionID))
	if err != nil {
		return nil, err
	}
	return Of(docs[0], runID, actionID)
}

// Exists reports whether the output was started and not deleted.
func (k *Kept) Exists() bool { return !k.version.IsZero() }

// ActionID returns the ID of the action that printed the output.
func (k *Kept) ActionID() string { return k.action }

// Deletes returns the writes that delete the output: its full parts, and its own document, which must not have changed
// since it was read.
func (k *Kept) Deletes() (parts []store.Write, own store.Write) {
	for first := int64(0); first+maxPart <= k.Bytes; first += maxPart {
		parts = append(parts, store.Delete(document.OutputPartPath(k.run, k.action, first), time.Time{}))
	}
	return parts, store.Delete(document.OutputPath(k.run, k.action), k.version)
}

// Append stores bytes that begin at byte number at, in one commit. Bytes that are stored already are skipped, and bytes
// beyond Max are dropped. It returns [ErrGone], an error if bytes before at are missing, or the store's error. After
// [store.ErrConflict] the output must be read again.
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

// From calls each with the stored bytes from byte number at onwards, in order and in pieces of at most one part. It
// returns the error of each, [ErrGone] if the output was deleted in the meantime, or the store's error.
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
			return fmt.Errorf("output: %s has %d bytes", doc.Path, len(p.Data))
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

// Follow calls each with the bytes from byte number at onwards while they are stored, until ctx ends, which is no
// error. It returns the number of the byte after the last one. While nothing is stored, it reads nothing. The errors
// are those of [Kept.From].
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
