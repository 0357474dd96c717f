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

// File returns a file of a prompt of the run's user. The error is [attachment.ErrGone] if it was deleted.
func (s *Snapshot) File(ctx context.Context, ref attachment.Ref) (*attachment.File, error) {
	docs, err := s.readChunks(ctx, ref.Paths())
	if err != nil {
		return nil, err
	}
	return attachment.Join(s.Run.UID, docs)
}
