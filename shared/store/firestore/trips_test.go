package firestore_test

import (
	"context"
	"errors"
	"maps"
	"path"
	"sync"
	"testing"
	"time"

	"google.golang.org/api/option"
	"google.golang.org/grpc"

	"github.com/countersign-run/countersign/shared/store"
	"github.com/countersign-run/countersign/shared/testkit/emulators"
)

// rpcs counts the calls on the wire by method.
type rpcs struct {
	mu    sync.Mutex
	calls map[string]int
}

func (r *rpcs) count(method string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls[path.Base(method)]++
}

func (r *rpcs) take() map[string]int {
	r.mu.Lock()
	defer r.mu.Unlock()
	taken := r.calls
	r.calls = map[string]int{}
	return taken
}

func (r *rpcs) options() []option.ClientOption {
	unary := func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, next grpc.UnaryInvoker,
		opts ...grpc.CallOption) error {
		r.count(method)
		return next(ctx, method, req, reply, cc, opts...)
	}
	stream := func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, next grpc.Streamer,
		opts ...grpc.CallOption) (grpc.ClientStream, error) {
		r.count(method)
		return next(ctx, desc, cc, method, opts...)
	}
	return []option.ClientOption{
		option.WithGRPCDialOption(grpc.WithChainUnaryInterceptor(unary)),
		option.WithGRPCDialOption(grpc.WithChainStreamInterceptor(stream)),
	}
}

// Each method sends one RPC, whatever its result. A call that is refused locally sends none.
func TestRoundTrips(t *testing.T) {
	t.Setenv("FIRESTORE_EMULATOR_HOST", emulators.Firestore(t))
	wire := &rpcs{calls: map[string]int{}}
	st := open(t, wire.options()...)
	ctx := t.Context()
	due := map[string]any{"due": time.Now(), "dueShard": int64(1)}
	commit := func(writes ...store.Write) error { _, err := st.Commit(ctx, writes...); return err }
	get := func(paths ...string) error { _, err := st.Get(ctx, paths...); return err }
	query := func(q store.Query) error { _, err := st.Query(ctx, q); return err }
	for _, c := range []struct {
		name string
		call func() error
		want map[string]int
		err  error
	}{
		{"commit", func() error {
			return commit(store.Create("runs/a", due, nil), store.Create("runs/a/events/1", nil, nil),
				store.Delete("runs/x", time.Time{}))
		}, map[string]int{"Commit": 1}, nil},
		{"conflict", func() error { return commit(store.Create("runs/b", nil, nil), store.Create("runs/a", nil, nil)) },
			map[string]int{"Commit": 1}, store.ErrConflict},
		{"get", func() error { return get("runs/a", "runs/none", "runs/a/events/1", "runs/a") },
			map[string]int{"BatchGetDocuments": 1}, nil},
		{"query", func() error { return query(store.Query{Collection: "queue", OrderBy: "due", Limit: 20}) },
			map[string]int{"RunQuery": 1}, nil},
		{"get of nothing", func() error { return get() }, map[string]int{}, nil},
		{"bad path", func() error { return get("runs/..") }, map[string]int{}, store.ErrBadPath},
		{"too large", func() error { return commit(store.Create("runs/c", nil, make([]byte, store.MaxDoc))) },
			map[string]int{}, store.ErrTooLarge},
		{"no such index", func() error { return query(store.Query{Collection: "runs", OrderBy: "uid", Limit: 20}) },
			map[string]int{}, store.ErrInvalid},
	} {
		t.Run(c.name, func(t *testing.T) {
			wire.take()
			if err := c.call(); !errors.Is(err, c.err) {
				t.Fatalf("gave %v, want %v", err, c.err)
			}
			if got := wire.take(); !maps.Equal(got, c.want) {
				t.Fatalf("sent %v, want %v", got, c.want)
			}
		})
	}
}
