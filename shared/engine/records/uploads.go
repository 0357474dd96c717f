package records

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/store"
	"github.com/countersign-run/countersign/shared/store/attachment"
	"github.com/countersign-run/countersign/shared/store/blob"
	"github.com/countersign-run/countersign/shared/store/document"
)

// Upload stores a file of the user, for the prompts of later requests, and returns it. Equal bytes that the user has
// uploaded already are not stored again; the name becomes the new one. It returns PolicyError too_many for a user with
// too many files that no run has, and PolicyError not_bound if this deployment has no store of files.
//
// A new file takes six round trips: a read of the user's and the file's documents; the number of unused files; the
// commit that has the object deleted if this process dies ([attachment.Upload]); the key service, if there is one; the
// object; the commit of the file. A file that is there takes the first and the last one.
func (r *Records) Upload(ctx context.Context, uid string, f attachment.File) (u attachment.Upload, err error) {
	if r.Files == nil {
		return u, fault.New(fault.Policy, fault.CodeNotBound, "This deployment stores no uploaded files.")
	}
	up := upload{r, attachment.NewUpload(uid, f, run.NewID(r.random()), r.now()), false}
	for try := 0; ; try++ {
		err = up.store(ctx, f.Data)
		if !errors.Is(err, store.ErrConflict) || try == maxRaces {
			return up.file, storeError(err)
		}
	}
}

func (r *Records) random() io.Reader {
	if r.Random == nil {
		return rand.Reader
	}
	return r.Random
}

// upload is an upload in progress.
type upload struct {
	*Records
	file attachment.Upload
	made bool // the object exists, and is waste until the commit
}

// store stores the file, unless another upload has stored it. It returns store.ErrConflict if another process has
// changed the user or the file in the meantime.
func (u *upload) store(ctx context.Context, data []byte) error {
	docs, err := u.get(ctx, document.UserPath(u.file.UID), document.UploadPath(u.file.FileID))
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
		w, err := userWrite(uid, doc, user)
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
	old.Name, old.Fresh, old.CreatedAt = u.file.Name, true, u.now()
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
	waste, err := attachment.Waste(u.file.Object, u.now().Add(attachment.Unfinished))
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

// released returns the writes that delete the first n documents of a run's files, and that count the run down at its
// uploaded files. They belong into the commit that deletes the run.
func (r *Records) released(ctx context.Context, runID string, n int) (writes []store.Write, err error) {
	if n == 0 {
		return nil, nil
	}
	docs, err := r.getFound(ctx, attachment.Paths(runID, n))
	if err != nil {
		return nil, err
	}
	for _, d := range docs {
		writes = append(writes, store.Delete(d.Path, time.Time{}))
	}
	ids, err := attachment.Uploaded(docs)
	if err != nil || len(ids) == 0 {
		return writes, err
	}
	paths := make([]string, len(ids))
	for i, id := range ids {
		paths[i] = document.UploadPath(id)
	}
	uploads, err := r.getFound(ctx, paths)
	if err != nil {
		return nil, err
	}
	for _, d := range uploads {
		var u attachment.Upload
		if err := document.Decode(d, &u); err != nil {
			return nil, err
		}
		more, err := u.Release(d, r.now())
		if err != nil {
			return nil, err
		}
		writes = append(writes, more...)
	}
	return writes, nil
}

// eraseUploads deletes the user's uploaded files.
func (r *Records) eraseUploads(ctx context.Context, uid string) error {
	return r.eachPage(ctx, document.UploadsOf(uid, userPage), func(d store.Doc) error {
		err := r.discard(ctx, d)
		if !errors.Is(err, store.ErrConflict) {
			return storeError(err)
		}
		docs, err := r.get(ctx, d.Path)
		if err != nil || !docs[0].Exists() {
			return err
		}
		return storeError(r.discard(ctx, docs[0]))
	})
}

// exportUploads passes the uploaded files that no run has, with their bytes.
func (r *Records) exportUploads(ctx context.Context, uid string, each func(Item) error) error {
	return r.eachPage(ctx, document.UnusedUploadsOf(uid, userPage), func(d store.Doc) error {
		var u attachment.Upload
		if err := document.Decode(d, &u); err != nil {
			return err
		}
		f := u.File(u.Name)
		err := f.Fill(ctx, r.Files)
		if errors.Is(err, attachment.ErrGone) { // deleted in the meantime
			return nil
		}
		if err == nil {
			err = each(Item{Kind: ItemFile, Data: &f})
		}
		return storeError(err)
	})
}

// discard deletes the document of an uploaded file, and has its object deleted by the next sweep.
func (r *Records) discard(ctx context.Context, d store.Doc) error {
	var u attachment.Upload
	if err := document.Decode(d, &u); err != nil {
		return err
	}
	writes, err := u.Discard(d, r.now())
	if err != nil {
		return err
	}
	_, err = r.Store.Commit(ctx, writes...)
	return err
}

// SweepFiles deletes the uploaded files of a shard that no run has and whose time is over, and the objects that no file
// has. It continues until ctx's time is nearly up. A failed deletion does not stop the others, and the next sweep of
// the shard tries it again.
func (r *Records) SweepFiles(ctx context.Context, shard int64) (deleted int, err error) {
	if r.Files == nil {
		return 0, nil
	}
	var failed []error
	for docs, err := range document.Pages(ctx, r.Store, document.DueUploads(shard, r.now(), userPage)) {
		if err != nil {
			return deleted, storeError(err)
		}
		for _, d := range docs {
			if outOfTime(ctx) != nil {
				return deleted, errors.Join(failed...)
			}
			switch err := r.sweepFile(ctx, d); {
			case err == nil:
				deleted++
			case !errors.Is(err, store.ErrConflict): // a run has got the file
				failed = append(failed, fmt.Errorf("%s: %w", d.Path, err))
			}
		}
	}
	return deleted, errors.Join(failed...)
}

// sweepFile deletes a due object and its document, after the file's document if it is a file's.
func (r *Records) sweepFile(ctx context.Context, d store.Doc) error {
	var u attachment.Upload
	if err := document.Decode(d, &u); err != nil {
		return err
	}
	waste := d.Path
	if u.FileID != "" {
		if err := r.discard(ctx, d); err != nil {
			return err
		}
		waste = document.WastePath(blob.ID(u.Object))
	}
	if err := r.Files.Delete(ctx, u.Object); err != nil {
		return err
	}
	_, err := r.Store.Commit(ctx, store.Delete(waste, time.Time{}))
	return err
}
