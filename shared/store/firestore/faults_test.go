package firestore

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	pb "cloud.google.com/go/firestore/apiv1/firestorepb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/countersign-run/countersign/shared/store"
	"github.com/countersign-run/countersign/shared/testkit/await"
)

// faulty is a Firestore server that returns the test's errors. The emulator cannot do this.
type faulty struct {
	pb.UnimplementedFirestoreServer
	mu      sync.Mutex
	answers []error // one for each RPC, the last one for all that follow; nil is success
	calls   int
	headers metadata.MD
}

// errHang makes the server hang instead of answering.
var errHang = errors.New("hang")

func (f *faulty) answer(ctx context.Context) error {
	f.mu.Lock()
	f.headers, _ = metadata.FromIncomingContext(ctx)
	err := f.answers[min(f.calls, len(f.answers)-1)]
	f.calls++
	f.mu.Unlock()
	if err == errHang {
		<-ctx.Done()
		return status.FromContextError(ctx.Err()).Err()
	}
	return err
}

// restart starts again with the first answer and returns the number of RPCs so far.
func (f *faulty) restart() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := f.calls
	f.calls = 0
	return n
}

func (f *faulty) Commit(ctx context.Context, req *pb.CommitRequest) (*pb.CommitResponse, error) {
	res := &pb.CommitResponse{CommitTime: timestamppb.Now()}
	for range req.Writes {
		res.WriteResults = append(res.WriteResults, &pb.WriteResult{UpdateTime: res.CommitTime})
	}
	return res, f.answer(ctx)
}

func (f *faulty) BatchGetDocuments(req *pb.BatchGetDocumentsRequest,
	stream pb.Firestore_BatchGetDocumentsServer) error {
	if err := f.answer(stream.Context()); err != nil {
		return err
	}
	for _, name := range req.Documents {
		res := &pb.BatchGetDocumentsResponse{Result: &pb.BatchGetDocumentsResponse_Missing{Missing: name},
			ReadTime: timestamppb.Now()}
		if err := stream.Send(res); err != nil {
			return err
		}
	}
	return nil
}

func (f *faulty) RunQuery(req *pb.RunQueryRequest, stream pb.Firestore_RunQueryServer) error {
	return f.answer(stream.Context())
}

// Listen sends the document as missing once the answers are spent.
func (f *faulty) Listen(stream pb.Firestore_ListenServer) error {
	if err := f.answer(stream.Context()); err != nil {
		return err
	}
	for _, change := range []*pb.TargetChange{{TargetChangeType: pb.TargetChange_ADD, TargetIds: []int32{1}},
		{TargetChangeType: pb.TargetChange_CURRENT, TargetIds: []int32{1}}, {ReadTime: timestamppb.Now()}} {
		res := &pb.ListenResponse{ResponseType: &pb.ListenResponse_TargetChange{TargetChange: change}}
		if err := stream.Send(res); err != nil {
			return err
		}
	}
	<-stream.Context().Done()
	return nil
}

// A listener that the server ends is opened again, unless that would not help.
func TestListenerFaults(t *testing.T) {
	for code, again := range map[codes.Code]bool{codes.Unavailable: true, codes.Internal: true, codes.Aborted: true,
		codes.ResourceExhausted: true, codes.PermissionDenied: false, codes.InvalidArgument: false,
		codes.NotFound: false} {
		t.Run(code.String(), func(t *testing.T) {
			f, st := serve(t, fails(code), fails(code), nil)
			states := 0
			for d, err := range st.Watch(t.Context(), "runs/a") {
				states++
				if again && (err != nil || d.Exists() || f.restart() != 3) || !again && f.restart() != 1 {
					t.Errorf("%+v, %v", d, err)
				}
				if !again {
					check(t, "watch", err, errOther)
				}
				break
			}
			if states != 1 {
				t.Errorf("%d states", states)
			}
		})
	}
}

func serve(t *testing.T, answers ...error) (*faulty, *Store) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	f, server := &faulty{answers: answers}, grpc.NewServer()
	pb.RegisterFirestoreServer(server, f)
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	t.Setenv("FIRESTORE_EMULATOR_HOST", l.Addr().String())
	st, err := Open(t.Context(), "demo-faults", "named")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		server.Stop()
		if err := errors.Join(st.Close(), st.Close(), <-served); err != nil {
			t.Error(err)
		}
	})
	return f, st
}

// secret is an example of what a server's text may contain.
const secret = "projects/p/databases/d/documents/users/ana@example.com"

func fails(c codes.Code) error { return status.Error(c, "no: "+secret) }

func TestFaults(t *testing.T) {
	for _, c := range []struct {
		name    string
		answers []error
		commit  error // what errors.Is must match, nil for success, errOther for none of the port's errors
		read    error
		calls   int // number of RPCs of a commit
	}{
		{"success", []error{nil}, nil, nil, 1},
		{"already exists", []error{fails(codes.AlreadyExists)}, store.ErrConflict, errOther, 1},
		{"failed precondition", []error{fails(codes.FailedPrecondition)}, store.ErrConflict, errOther, 1},
		{"not found", []error{fails(codes.NotFound)}, store.ErrConflict, errOther, 1},
		{"aborted", []error{fails(codes.Aborted)}, store.ErrConflict, errOther, 1},
		{"later version", []error{status.Error(codes.InvalidArgument,
			"Invalid base version, it is greater than the stored version")}, store.ErrConflict, errOther, 1},
		{"unavailable", []error{fails(codes.Unavailable)}, store.ErrUnavailable, store.ErrUnavailable, attempts},
		{"unavailable once", []error{fails(codes.Unavailable), nil}, nil, nil, 2},
		{"unavailable twice", []error{fails(codes.Unavailable), fails(codes.Unavailable), nil}, nil, nil, 3},
		{"conflict with what may be our own commit", []error{fails(codes.Unavailable), fails(codes.AlreadyExists)},
			store.ErrUnavailable, errOther, 2},
		{"deadline", []error{fails(codes.DeadlineExceeded)}, store.ErrUnavailable, store.ErrUnavailable, 1},
		{"exhausted", []error{fails(codes.ResourceExhausted)}, store.ErrUnavailable, store.ErrUnavailable, 1},
		{"internal", []error{fails(codes.Internal)}, store.ErrUnavailable, store.ErrUnavailable, 1},
		{"permission denied", []error{fails(codes.PermissionDenied)}, errOther, errOther, 1},
		{"bad argument", []error{fails(codes.InvalidArgument)}, errOther, errOther, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			f, st := serve(t, c.answers...)
			_, err := st.Commit(t.Context(), store.Create("runs/a", nil, nil))
			check(t, "commit", err, c.commit)
			if n := f.restart(); n != c.calls {
				t.Errorf("a commit was sent %d times, want %d", n, c.calls)
			}
			_, err = st.Get(t.Context(), "runs/a")
			check(t, "get", err, c.read)
			f.restart()
			_, err = st.Query(t.Context(), store.Query{Collection: "queue", OrderBy: "due", Limit: 1})
			check(t, "query", err, c.read)
		})
	}
}

var errOther = errors.New("none of the port's errors")

func check(t *testing.T, method string, err, want error) {
	t.Helper()
	sentinel := errors.Is(err, store.ErrConflict) || errors.Is(err, store.ErrUnavailable)
	switch {
	case want == nil && err == nil:
	case want == errOther && err != nil && !sentinel:
	case want == nil || err == nil || !errors.Is(err, want):
		t.Errorf("%s gave %v, want %v", method, err, want)
	}
	if err != nil && strings.Contains(err.Error(), secret) {
		t.Errorf("%s: the error repeats the server's text: %v", method, err)
	}
}

// A server that accepts the call and never answers does not block the caller longer than the limit.
func TestHungServer(t *testing.T) {
	if callTimeout > 9*time.Second {
		t.Fatalf("a call may take %v, and a user is answered within 10 s", callTimeout)
	}
	_, st := serve(t, errHang)
	st.timeout = 100 * time.Millisecond
	_, err := st.Commit(t.Context(), store.Create("runs/a", nil, nil))
	check(t, "commit", err, store.ErrUnavailable)
	_, err = st.Get(t.Context(), "runs/a")
	check(t, "get", err, store.ErrUnavailable)
	_, err = st.Query(t.Context(), store.Query{Collection: "queue", OrderBy: "due", Limit: 1})
	check(t, "query", err, store.ErrUnavailable)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err = st.Commit(ctx, store.Create("runs/a", nil, nil))
	if !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, store.ErrUnavailable) {
		t.Fatalf("a caller out of time got %v", err)
	}
}

// A server that was sent the caller's deadline may report it before the caller's own clock does.
func TestDeadlineReportedByServer(t *testing.T) {
	_, st := serve(t, fails(codes.DeadlineExceeded))
	ctx, cancel := context.WithTimeout(t.Context(), await.Most)
	defer cancel()
	st.timeout = 2 * await.Most
	_, err := st.Get(ctx, "runs/a")
	if !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, store.ErrUnavailable) {
		t.Fatalf("a caller out of time got %v", err)
	}
}

// A server that accepts the connection and never sends anything does not block the caller longer than the limit either.
func TestSilentServer(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	t.Setenv("FIRESTORE_EMULATOR_HOST", l.Addr().String())
	st, err := Open(t.Context(), "demo-silent", "")
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	st.timeout = 100 * time.Millisecond
	_, err = st.Get(t.Context(), "runs/a")
	check(t, "get", err, store.ErrUnavailable)
}

func TestNamedDatabase(t *testing.T) {
	f, st := serve(t, nil)
	if _, err := st.Get(t.Context(), "runs/a"); err != nil {
		t.Fatal(err)
	}
	const root = "projects/demo-faults/databases/named"
	if got := f.headers.Get("google-cloud-resource-prefix"); len(got) != 1 || got[0] != root {
		t.Errorf("resource prefix %q", got)
	}
	if got := strings.Join(f.headers.Get("x-goog-request-params"), "&"); !strings.Contains(got,
		"project_id=demo-faults&database_id=named") {
		t.Errorf("request parameters %q", got)
	}
	if _, err := Open(t.Context(), "", "named"); err == nil {
		t.Error("opened without a project")
	}
}
