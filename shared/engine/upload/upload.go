// Package upload stores files of users before the prompts that have them. [attachment.Upload] describes the steps, and
// what a crash leaves behind.
package upload

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	"time"

	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/store"
	"github.com/countersign-run/countersign/shared/store/attachment"
	"github.com/countersign-run/countersign/shared/store/blob"
	"github.com/countersign-run/countersign/shared/store/document"
)

// Uploads stores files.
type Uploads struct {
	Store  store.Store
	Files  blob.Store // gets the bytes
	Now    func() time.Time
	Random io.Reader // for the names of objects; nil: crypto/rand
}

// maxRaces is the number of lost races before the caller has to retry.
const maxRaces = 20

// Add stores a file of the user, for the prompts of later requests, and returns it. Equal bytes that the user has
// uploaded already are not stored again; the name becomes the new one. It returns PolicyError too_many for a user with
// too many files that no run has, or an error of the stores.
//
// A new file takes six round trips: a read of the user's and the file's documents; the number of unused files; the
// commit that has the object deleted if this process dies ([attachment.Upload]); the key service, if there is one; the
// object; the commit of the file. A file that is there takes the first and the last one.
func (s Uploads) Add(ctx context.Context, uid string, f attachment.File) (attachment.Upload, error) {
	if s.Random == nil {
		s.Random = rand.Reader
	}
	up := upload{s, attachment.NewUpload(uid, f, run.NewID(s.Random), s.Now()), false}
	for try := 0; ; try++ {
		err := up.store(ctx, f.Data)
		if !errors.Is(err, store.ErrConflict) || try == maxRaces {
			return up.file, err
		}
	}
}

// upload is an upload in progress.
type upload struct {
	Uploads
	file attachment.Upload
	made bool // the object exists, and is waste until the commit
}

// store stores the file, unless another upload has stored it. It returns store.ErrConflict if another process has
// changed the user or the file in the meantime.
func (u *upload) store(ctx context.Context, data []byte) error {
	docs, err := u.Store.Get(ctx, document.UserPath(u.file.UID), document.UploadPath(u.file.FileID))
	if err != nil {
		return err
	}
	checks, err := enabled(docs[0], u.file.UID)
	if err != nil {
		return err
	}
	if docs[1].Exists() {
		return u.again(ctx, docs[1], checks)
	}
	if err := u.create(ctx, data); err != nil {
		return err
	}
	w, err := u.file.Write(docs[1])
	if err != nil {
		return err
	}
	waste := store.Delete(document.WastePath(blob.ID(u.file.Object)), time.Time{})
	_, err = u.Store.Commit(ctx, append(checks, waste, w)...)
	return err
}

// enabled returns a check that the user does not change, so that a user who is deleted keeps no file, or the error for
// a disabled user. A user without a document gets one, because only a document can be checked.
func enabled(doc store.Doc, uid string) ([]store.Write, error) {
	user := run.User{UID: uid}
	if !doc.Exists() {
		doc.Path = document.UserPath(uid)
		w, err := document.Put(doc, doc.Fields, user)
		return []store.Write{w}, err
	}
	if err := document.Decode(doc, &user); err != nil {
		return nil, err
	}
	return []store.Write{store.Check(doc.Path, doc.Version)}, user.CheckEnabled()
}

// again stores that the file which exists was uploaded again. The object of this upload, if there is one, stays waste.
func (u *upload) again(ctx context.Context, doc store.Doc, checks []store.Write) error {
	var old attachment.Upload
	if err := document.Decode(doc, &old); err != nil {
		return err
	}
	old.Name, old.Fresh, old.CreatedAt = u.file.Name, true, u.Now()
	w, err := old.Write(doc)
	if err != nil {
		return err
	}
	if _, err = u.Store.Commit(ctx, append(checks, w)...); err == nil {
		u.file = old
	}
	return err
}

// create creates the object, which is waste until the file's document leads to it.
func (u *upload) create(ctx context.Context, data []byte) error {
	if u.made {
		return nil
	}
	unused, err := u.Store.Query(ctx, document.UnusedUploadsOf(u.file.UID, attachment.MaxUnused))
	if err != nil {
		return err
	}
	if len(unused) >= attachment.MaxUnused {
		return fault.New(fault.Policy, fault.CodeTooMany,
			"You have %d uploaded files that no run has; the limit is %d. Attach them to a prompt, or wait: each is "+
				"deleted %d hours after its upload.", len(unused), attachment.MaxUnused,
			int(attachment.Unused.Hours()))
	}
	waste, err := attachment.Waste(u.file.Object, u.Now().Add(attachment.Unfinished))
	if err != nil {
		return err
	}
	if _, err := u.Store.Commit(ctx, waste); err != nil {
		return err
	}
	err = u.Files.Create(ctx, u.file.Object, data)
	u.made = err == nil
	return err
}
