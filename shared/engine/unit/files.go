package unit

import (
	"context"
	"fmt"

	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/store/attachment"
	"github.com/countersign-run/countersign/shared/store/document"
)

// AddFiles stores files with the run, after those that it has, and returns their descriptions for an event. The caller
// has checked their types. The limits hold for all files of the run.
func (tx *Tx) AddFiles(files []attachment.File) ([]attachment.Stored, error) {
	if len(files) == 0 {
		return nil, nil
	}
	if err := readThread(tx); err != nil {
		return nil, err
	}
	had := tx.State.Input.Files
	all, err := tx.uploaded(had, files)
	if err != nil {
		return nil, err
	}
	added := attachment.Describe(all, had...)
	now := append(attachment.FactsOf(had), attachment.FactsOf(added)...)
	if err := attachment.CheckSizes("attachments", now); err != nil {
		return nil, err
	}
	for path, doc := range attachment.Documents(tx.Run.UID, tx.Run.ID, all, added) {
		tx.Put(path, doc)
	}
	tx.Run.FileParts += attachment.Count(added)
	tx.Thread.Files = true
	return added, nil
}

// uploaded returns the files, with those that were uploaded before as they are stored, and counts the run with each of
// them that it does not have yet.
func (tx *Tx) uploaded(had []attachment.Stored, files []attachment.File) (all []attachment.File, err error) {
	counted, size := map[string]bool{}, 0
	for _, f := range had {
		counted[f.FileID] = true
		size += f.Size
	}
	for i, f := range files {
		size += len(f.Data)
		if f.FileID != "" {
			u, err := uploadOf(tx, i, f.FileID)
			if err != nil {
				return nil, err
			}
			if size += u.Size; !counted[f.FileID] {
				counted[f.FileID] = true
				u.Runs, u.Fresh = u.Runs+1, false
				tx.PutFields(document.UploadPath(f.FileID), u.Fields(), u)
			}
			f = u.File(f.Name)
		}
		if size > attachment.MaxUpload {
			return nil, fault.Invalid(fmt.Sprintf("attachments[%d]", i), "%d bytes with the files before it; the "+
				"limit is %d", size, attachment.MaxUpload)
		}
		all = append(all, f)
	}
	return all, nil
}

// uploadOf returns the user's uploaded file, which is file i of the request.
func uploadOf(tx *Tx, i int, id string) (u attachment.Upload, err error) {
	doc, err := tx.Doc(document.UploadPath(id), &u)
	if err == nil && (!doc.Exists() || u.UID != tx.Run.UID) {
		err = fault.Invalid(fmt.Sprintf("attachments[%d].fileId", i), "you have no file with this ID; a file that no "+
			"run has is deleted %d hours after its upload", int(attachment.Unused.Hours()))
	}
	return u, err
}

// ReadAhead reads documents that never change, unless they are cached.
func (s *Snapshot) ReadAhead(ctx context.Context, paths []string) error {
	_, err := s.readChunks(ctx, paths)
	return err
}

// File returns a file of a prompt of the run's user. The bytes of an uploaded file are read once. The error is
// [attachment.ErrGone] if the file was deleted.
func (s *Snapshot) File(ctx context.Context, ref attachment.Ref) (*attachment.File, error) {
	docs, err := s.readChunks(ctx, ref.Paths())
	if err != nil {
		return nil, err
	}
	f, err := attachment.Join(s.Run.UID, docs)
	if err != nil || f.Object() == "" {
		return f, err
	}
	f.Data = s.bytes[f.Object()]
	if err := f.Fill(ctx, s.files); err != nil {
		return nil, err
	}
	s.bytes[f.Object()] = f.Data
	return f, nil
}
