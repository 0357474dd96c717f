package unit

import (
	"context"

	"github.com/countersign-run/countersign/shared/store/attachment"
)

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
