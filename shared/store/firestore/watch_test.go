package firestore_test

import (
	"context"
	"crypto/rand"
	"io"
	"maps"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	pb "cloud.google.com/go/firestore/apiv1/firestorepb"
	"google.golang.org/api/option"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/countersign-run/countersign/shared/store"
	"github.com/countersign-run/countersign/shared/store/firestore"
	"github.com/countersign-run/countersign/shared/store/storetest"
	"github.com/countersign-run/countersign/shared/testkit/await"
	"github.com/countersign-run/countersign/shared/testkit/cleanup"
	"github.com/countersign-run/countersign/shared/testkit/emulators"
)

// line is a connection between a client and the emulator that a test can cut.
type line struct {
	listener net.Listener
	to       string
	mu       sync.Mutex
	conns    map[net.Conn]bool
	down     bool
	served   sync.WaitGroup
}

func newLine(t *testing.T, to string) *line {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c := &line{listener: l, to: to, conns: map[net.Conn]bool{}}
	c.served.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			c.served.Go(func() { c.join(conn) })
		}
	})
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		c.cut()
		c.served.Wait()
	})
	return c
}

// join carries a connection until one of its ends closes or the line is cut.
func (c *line) join(near net.Conn) {
	far, err := net.Dial("tcp", c.to)
	if err != nil {
		far = near
	}
	c.mu.Lock()
	refused := c.down || err != nil
	c.conns[near], c.conns[far] = true, true
	c.mu.Unlock()
	if !refused {
		var both sync.WaitGroup
		for _, way := range [][2]net.Conn{{near, far}, {far, near}} {
			both.Go(func() {
				_, _ = io.Copy(way[0], way[1]) // it ends in an error if the line is cut
				_ = way[0].Close()
			})
		}
		both.Wait()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	_, _ = near.Close(), far.Close()
	delete(c.conns, near)
	delete(c.conns, far)
}

func (c *line) cut() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.down = true
	for conn := range c.conns {
		_ = conn.Close()
	}
}

func (c *line) mend() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.down = false
}

func TestWatchLost(t *testing.T) {
	host := emulators.Firestore(t)
	project := "demo-" + strings.ToLower(rand.Text())
	between := newLine(t, host)
	connect := func(host string) *firestore.Store {
		t.Setenv("FIRESTORE_EMULATOR_HOST", host)
		st, err := firestore.Open(t.Context(), project, "")
		return cleanup.Close(t, st, err)
	}
	storetest.RunLost(t, connect(between.listener.Addr().String()), connect(host), between.cut, between.mend)
}

// Watching is one RPC, however often the document changes, and none while it does not.
func TestWatchRoundTrips(t *testing.T) {
	t.Setenv("FIRESTORE_EMULATOR_HOST", emulators.Firestore(t))
	wire := &rpcs{calls: map[string]int{}}
	st := open(t, wire.options()...)
	st.Trust()
	version := time.Time{}
	states := 0
	for d, err := range st.Watch(t.Context(), "runs/a") {
		if err != nil || !d.Version.Equal(version) {
			t.Fatal(d.Version, err)
		}
		if states++; states == 5 {
			break
		}
		write := store.Update("runs/a", version, nil, nil)
		if !d.Exists() {
			write = store.Create("runs/a", nil, nil)
		}
		v, err := st.Commit(t.Context(), write)
		if err != nil {
			t.Fatal(err)
		}
		version = v[0]
	}
	if got, want := wire.take(), map[string]int{"Listen": 1, "Commit": 4}; !maps.Equal(got, want) {
		t.Fatalf("sent %v, want %v", got, want)
	}
}

// A closed store is no longer watched.
func TestWatchClosed(t *testing.T) {
	t.Setenv("FIRESTORE_EMULATOR_HOST", emulators.Firestore(t))
	st := open(t)
	var all []error
	for _, err := range st.Watch(t.Context(), "runs/a") {
		if all = append(all, err); err == nil {
			if err := st.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if len(all) != 2 || all[1] == nil {
		t.Fatalf("the watch of a store that was closed gave %v", all)
	}
}

// listeners replaces each listener of a store with the result of change.
func listeners(change func(grpc.ClientStream) grpc.ClientStream) option.ClientOption {
	return option.WithGRPCDialOption(grpc.WithChainStreamInterceptor(func(ctx context.Context, desc *grpc.StreamDesc,
		cc *grpc.ClientConn, method string, next grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
		stream, err := next(ctx, desc, cc, method, opts...)
		if err == nil && desc.StreamName == "Listen" {
			stream = change(stream)
		}
		return stream, err
	}))
}

// canceled is a stream that the server ends, as the emulator does when it is busy.
type canceled struct{ grpc.ClientStream }

func (canceled) RecvMsg(any) error { return status.Error(codes.Canceled, "the server has canceled it") }

// A listener that the server cancels, and not the caller, is opened again.
func TestWatchCanceled(t *testing.T) {
	t.Setenv("FIRESTORE_EMULATOR_HOST", emulators.Firestore(t))
	var begun atomic.Bool
	st := open(t, listeners(func(s grpc.ClientStream) grpc.ClientStream {
		if begun.Swap(true) {
			return s
		}
		return canceled{s}
	}))
	for d, err := range st.Watch(t.Context(), "runs/a") {
		if err != nil || d.Exists() {
			t.Fatal(d, err)
		}
		return
	}
	t.Fatal("no state came")
}

// deaf is a stream that delivers nothing more after the document's first state, whether this stream or an earlier one
// delivered it.
type deaf struct {
	grpc.ClientStream
	told *atomic.Bool
}

func (d deaf) RecvMsg(m any) error {
	for {
		if err := d.ClientStream.RecvMsg(m); err != nil || !d.told.Load() {
			res := m.(*pb.ListenResponse).GetTargetChange()
			d.told.Store(len(res.GetTargetIds()) == 0 && res.GetReadTime() != nil)
			return err
		}
	}
}

// A change that the emulator does not send is still delivered.
func TestWatchMissed(t *testing.T) {
	t.Setenv("FIRESTORE_EMULATOR_HOST", emulators.Firestore(t))
	var told atomic.Bool
	st := open(t, listeners(func(s grpc.ClientStream) grpc.ClientStream { return deaf{s, &told} }))
	ctx, cancel := context.WithTimeout(t.Context(), await.Most)
	defer cancel()
	for d, err := range st.Watch(ctx, "runs/a") {
		if err != nil {
			t.Fatal(err)
		}
		if d.Exists() {
			return
		}
		if _, err := st.Commit(t.Context(), store.Create("runs/a", nil, nil)); err != nil {
			t.Fatal(err)
		}
	}
	t.Fatal("the document's change did not come")
}
