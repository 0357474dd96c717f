package unit

import (
	"context"
	"fmt"
	"slices"

	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/store/attachment"
	"github.com/countersign-run/countersign/shared/store/document"
)

// AddFiles stores files of the user with the run, after those that it has, and returns their descriptions for an event.
// The caller has checked their types. The limits hold for all files that the user has given the run.
func (tx *Tx) AddFiles(files []attachment.File) ([]attachment.Stored, error) {
	added, err := tx.addFiles(tx.State.Input.Files, files)
	if err != nil {
		return nil, err
	}
	now := append(attachment.FactsOf(tx.State.Input.Files), attachment.FactsOf(added)...)
	return added, attachment.CheckSizes("attachments", now)
}

// AddMade stores the files of an answer of the model, or of a tool's result, with the run. [KeepFiles] has checked that
// they are within the limits of all answers and results.
func (tx *Tx) AddMade(files []attachment.File) ([]attachment.Stored, error) {
	return tx.addFiles(tx.State.Made, files)
}

// addFiles stores files after all those that the run has. had are those that count for the same limit.
func (tx *Tx) addFiles(had []attachment.Stored, files []attachment.File) ([]attachment.Stored, error) {
	if len(files) == 0 {
		return nil, nil
	}
	if err := readThread(tx); err != nil {
		return nil, err
	}
	all, err := tx.uploaded(had, files)
	if err != nil {
		return nil, err
	}
	added := attachment.Describe(all, slices.Concat(tx.State.Input.Files, tx.State.Made)...)
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
	for _, f := range slices.Concat(tx.State.Input.Files, tx.State.Made) {
		counted[f.FileID] = true
	}
	for _, f := range had {
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
