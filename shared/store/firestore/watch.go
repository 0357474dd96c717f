package firestore

import (
	"context"
	"errors"
	"io"
	"iter"
	"time"

	pb "cloud.google.com/go/firestore/apiv1/firestorepb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/countersign-run/countersign/shared/base/wait"
	"github.com/countersign-run/countersign/shared/store"
)

// mostTries bounds the pause before a lost listener is opened again, to about 3 to 6 seconds.
const mostTries = 4

// Watch implements [store.Store] with a Listen RPC. It opens a new one when it is lost.
func (s *Store) Watch(ctx context.Context, path string) iter.Seq2[store.Doc, error] {
	if s.emulated {
		return s.watchEmulator(ctx, path)
	}
	return s.watch(ctx, path)
}

func (s *Store) watch(ctx context.Context, path string) iter.Seq2[store.Doc, error] {
	return func(yield func(store.Doc, error) bool) {
		if err := store.CheckGet([]string{path}); err != nil {
			yield(store.Doc{}, err)
			return
		}
		var last *store.Doc // version and read time of the last delivered state
		for try := 1; ; try = min(try+1, mostTries) {
			more := true
			err := s.listen(ctx, path, func(d store.Doc) bool {
				try = 0 // the connection works
				if last != nil && (d.ReadTime.Before(last.ReadTime) || d.Version.Equal(last.Version)) {
					return true
				}
				last = &store.Doc{Version: d.Version, ReadTime: d.ReadTime}
				more = yield(d, nil)
				return more
			})
			switch {
			case !more || ctx.Err() != nil:
				return
			case s.closed.Load() || !passing(err):
				yield(store.Doc{}, wrap(ctx, ctx, "watch", err, false))
				return
			case wait.Backoff(ctx, firstPause, max(try, 1)) != nil:
				return
			}
		}
	}
}

// passing reports whether a new listener may be opened after one that ended with err. The server sometimes ends a
// listener without a fault.
func passing(err error) bool {
	if errors.Is(err, io.EOF) {
		return true
	}
	if _, ofServer := status.FromError(err); !ofServer {
		return false
	}
	switch status.Code(err) {
	case codes.Unavailable, codes.Internal, codes.ResourceExhausted, codes.DeadlineExceeded, codes.Aborted,
		codes.Unknown, codes.Canceled: // by the server: the caller's cancel was checked before
		return true
	}
	return false
}

// errStale means that the server no longer guarantees the state that it has sent.
var errStale = status.Error(codes.Unavailable, "the listener must restart")

// listen listens to the document until an error occurs or state returns false. It calls state with each state of the
// document that the server guarantees.
func (s *Store) listen(ctx context.Context, path string, state func(store.Doc) bool) error {
	ctx, cancel := context.WithCancel(metadata.NewOutgoingContext(ctx, s.headers.Copy()))
	defer cancel() // ends the RPC
	stream, err := s.client.Listen(ctx)
	if err != nil {
		return err
	}
	const target = 1
	err = stream.Send(&pb.ListenRequest{Database: s.root, TargetChange: &pb.ListenRequest_AddTarget{
		AddTarget: &pb.Target{TargetId: target, TargetType: &pb.Target_Documents{
			Documents: &pb.Target_DocumentsTarget{Documents: []string{s.documentName(path)}}}}}})
	if err != nil && !errors.Is(err, io.EOF) { // Recv returns the cause of an EOF
		return err
	}
	l := listener{path: path, doc: store.Doc{Path: path}}
	for {
		res, err := stream.Recv()
		if err != nil {
			return err
		}
		at, err := l.take(s, res)
		if err != nil {
			return err
		}
		if at.IsZero() || l.told {
			continue
		}
		d := l.doc
		d.ReadTime = at
		l.told, l.doc.Data, l.doc.Fields = true, nil, nil // an idle listener need not keep them
		if !state(d) {
			return nil
		}
	}
}

// listener holds the state that one Listen RPC has sent for its document.
type listener struct {
	path    string
	doc     store.Doc
	current bool // the server has sent the document's state at the beginning
	told    bool // the state was passed on
}

// take processes a message. It returns the time at which the document had the state in the listener, or zero if the
// server has not confirmed the state yet.
func (l *listener) take(s *Store, res *pb.ListenResponse) (at time.Time, err error) {
	switch r := res.ResponseType.(type) {
	case *pb.ListenResponse_DocumentChange:
		l.told, l.doc = false, store.Doc{Path: l.path}
		if len(r.DocumentChange.TargetIds) > 0 {
			l.doc, err = s.decode(r.DocumentChange.Document)
		}
	case *pb.ListenResponse_DocumentDelete, *pb.ListenResponse_DocumentRemove:
		l.told, l.doc = false, store.Doc{Path: l.path}
	case *pb.ListenResponse_Filter:
		if exists := r.Filter.Count > 0; exists != l.doc.Exists() {
			err = errStale
		}
	case *pb.ListenResponse_TargetChange:
		return l.change(r.TargetChange)
	}
	return time.Time{}, err
}

func (l *listener) change(c *pb.TargetChange) (at time.Time, err error) {
	switch c.TargetChangeType {
	case pb.TargetChange_CURRENT:
		l.current = true
	case pb.TargetChange_RESET:
		l.told, l.doc, l.current = false, store.Doc{Path: l.path}, false
	case pb.TargetChange_REMOVE:
		if c.Cause != nil {
			return time.Time{}, status.ErrorProto(c.Cause)
		}
		return time.Time{}, errStale
	case pb.TargetChange_NO_CHANGE:
		if l.current && len(c.TargetIds) == 0 && c.ReadTime != nil {
			return c.ReadTime.AsTime(), nil
		}
	}
	return time.Time{}, nil
}
