// Package blob is the port to the store of uploaded files, which are too large for documents. It has three backends: a
// folder (blob/folder), a bucket of Cloud Storage (blob/gcs) and [Memory]. Package blobtest runs the same tests against
// all of them.
//
// Every object has a name of its own ([Name]), is written once and never replaced. So a deletion can never remove the
// bytes of a later upload of the same content, and no backend needs more than "create" and "delete". Which object a
// file has is in its document ([attachment.Upload]), and only a commit of that document decides whether the object is
// needed.
package blob

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	"github.com/countersign-run/countersign/shared/base/lazyregexp"
)

// MaxBytes is the maximum size of an object.
const MaxBytes = 24 << 20

// ErrGone means that no object has the name.
var ErrGone = errors.New("blob: there is no such object")

// Store is a store of objects. If a retry may help, an error is wrapped in store.ErrUnavailable.
type Store interface {
	// Create stores an object. If the name exists, an earlier attempt of the same call has stored it: the object keeps
	// its bytes, and the error is nil.
	Create(ctx context.Context, name string, data []byte) error
	// Read returns the object's bytes, or [ErrGone].
	Read(ctx context.Context, name string) ([]byte, error)
	// Delete removes the object. It is no error if the object does not exist.
	Delete(ctx context.Context, name string) error
}

// Name returns the name of a new object with content of the user: the owner, the content's SHA-256 in hex, and an ID
// that no other object has. The owner is a hash, because the names of objects appear in the logs of a bucket.
func Name(uid, contentSHA256, id string) string { return Owner(uid) + "/" + contentSHA256 + "/" + id }

// Owner returns the beginning of the names of the user's objects.
func Owner(uid string) string {
	sum := sha256.Sum256([]byte(uid))
	return hex.EncodeToString(sum[:16])
}

// ID returns the last part of an object's name.
func ID(name string) string { return name[strings.LastIndexByte(name, '/')+1:] }

var validName = lazyregexp.New(`^[0-9a-f]{32}/[0-9a-f]{64}/[0-9a-z]{8,64}$`)

// Check returns an error for a name that [Name] does not return, and for an object that is too large. Backends call it
// before they send anything.
func Check(name string, data []byte) error {
	switch {
	case !validName.MatchString(name):
		return errors.New("blob: invalid object name")
	case len(data) > MaxBytes:
		return fmt.Errorf("blob: an object of %d bytes; the limit is %d", len(data), MaxBytes)
	}
	return nil
}
