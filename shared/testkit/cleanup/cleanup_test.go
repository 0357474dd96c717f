package cleanup_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/countersign-run/countersign/shared/testkit/cleanup"
)

// recorder is a test that records its failures, and runs its cleanups when end is called.
type recorder struct {
	*testing.T
	failures []string
	cleanups []func()
}

func (r *recorder) Error(args ...any)  { r.failures = append(r.failures, "error: "+fmt.Sprint(args...)) }
func (r *recorder) Fatal(args ...any)  { panic("fatal: " + fmt.Sprint(args...)) }
func (r *recorder) Cleanup(end func()) { r.cleanups = append(r.cleanups, end) }

func (r *recorder) end() {
	for _, end := range r.cleanups {
		end()
	}
}

type closer struct {
	closed int
	err    error
}

func (c *closer) Close() error { c.closed++; return c.err }

func TestClose(t *testing.T) {
	r, good := &recorder{T: t}, &closer{}
	if got := cleanup.Close(r, good, nil); got != good || good.closed != 0 {
		t.Errorf("Close returned %p, closed %d times; want %p, open", got, got.closed, good)
	}
	cleanup.Close(r, &closer{err: errors.New("the disk is full")}, nil)
	r.end()
	if good.closed != 1 {
		t.Errorf("closed %d times; want once", good.closed)
	}
	if diff := cmp.Diff([]string{"error: the disk is full"}, r.failures); diff != "" {
		t.Errorf("failures (-want +got):\n%s", diff)
	}
}

// TestCloseAfterAFailure passes the error of a failed open. The test fails, and nothing is closed.
func TestCloseAfterAFailure(t *testing.T) {
	r := &recorder{T: t}
	defer func() {
		if got := recover(); got != "fatal: no such folder" {
			t.Errorf("the failure is %v", got)
		}
		r.end() // a panic here would mean that something was closed
	}()
	cleanup.Close[*closer](r, nil, errors.New("no such folder"))
}
