package records

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/engine/upload"
	"github.com/countersign-run/countersign/shared/store"
	"github.com/countersign-run/countersign/shared/store/attachment"
	"github.com/countersign-run/countersign/shared/store/blob"
	"github.com/countersign-run/countersign/shared/store/document"
)

// Upload stores a file of the user, for the prompts of later requests, and returns it ([upload.Uploads]).
func (r *Records) Upload(ctx context.Context, uid string, f attachment.File) (attachment.Upload, error) {
	if r.Files == nil {
		return attachment.Upload{}, fault.New(fault.Policy, fault.CodeNotBound,
			"This deployment stores no uploaded files.")
	}
	u, err := upload.Uploads{Store: r.Store, Files: r.Files, Now: r.now, Random: r.Random}.Add(ctx, uid, f)
	return u, storeError(err)
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
