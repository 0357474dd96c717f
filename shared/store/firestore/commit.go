package firestore

import (
	"context"
	"fmt"
	"time"

	pb "cloud.google.com/go/firestore/apiv1/firestorepb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/countersign-run/countersign/shared/store"
)

// Commit implements [store.Store] with one Commit RPC.
func (s *Store) Commit(ctx context.Context, writes ...store.Write) ([]time.Time, error) {
	if err := store.CheckCommit(writes); err != nil {
		return nil, err
	}
	req := &pb.CommitRequest{Database: s.root, Writes: make([]*pb.Write, len(writes))}
	for i, w := range writes {
		var err error
		if req.Writes[i], err = s.write(w); err != nil {
			return nil, fmt.Errorf("write %d: %w", i+1, err)
		}
	}
	var res *pb.CommitResponse
	err := s.call(ctx, "commit", func(ctx context.Context) (err error) {
		res, err = s.client.Commit(ctx, req)
		return err
	})
	if err != nil {
		return nil, err
	}
	return versions(writes, res)
}

func (s *Store) write(w store.Write) (*pb.Write, error) {
	out := &pb.Write{CurrentDocument: precondition(w)}
	switch w.Op {
	case store.OpDelete:
		out.Operation = &pb.Write_Delete{Delete: s.documentName(w.Doc.Path)}
		return out, nil
	case store.OpCheck:
		// A mask without fields changes nothing and keeps the update time.
		out.Operation = &pb.Write_Update{Update: &pb.Document{Name: s.documentName(w.Doc.Path)}}
		out.UpdateMask = &pb.DocumentMask{}
		return out, nil
	}
	fields, err := encodeFields(w.Doc)
	if err != nil {
		return nil, err
	}
	// Without an update mask, the document is replaced.
	out.Operation = &pb.Write_Update{Update: &pb.Document{Name: s.documentName(w.Doc.Path), Fields: fields}}
	return out, nil
}

func precondition(w store.Write) *pb.Precondition {
	switch {
	case w.Op == store.OpCreate:
		return &pb.Precondition{ConditionType: &pb.Precondition_Exists{Exists: false}}
	case w.Doc.Version.IsZero():
		return nil
	}
	return &pb.Precondition{ConditionType: &pb.Precondition_UpdateTime{UpdateTime: timestamppb.New(w.Doc.Version)}}
}

func versions(writes []store.Write, res *pb.CommitResponse) ([]time.Time, error) {
	if len(res.GetWriteResults()) != len(writes) {
		return nil, fmt.Errorf("firestore store: commit: %d results for %d writes", len(res.GetWriteResults()),
			len(writes))
	}
	out := make([]time.Time, len(writes))
	for i, r := range res.GetWriteResults() {
		switch writes[i].Op {
		case store.OpDelete:
			continue
		case store.OpCheck:
			out[i] = writes[i].Doc.Version
			continue
		}
		at := r.GetUpdateTime()
		if at == nil {
			at = res.GetCommitTime()
		}
		out[i] = at.AsTime()
	}
	return out, nil
}
