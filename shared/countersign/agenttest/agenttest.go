package agenttest

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"runtime/pprof"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/countersign-run/countersign/shared/base/outbound"
	"github.com/countersign-run/countersign/shared/countersign"
)

// New returns an agent, and fails the test at once if its options are wrong. At the end of the test the agent is
// closed, and the test fails if a goroutine is left that it, its agents or their tools started. Tests may run in
// parallel: each looks for its own goroutines.
func New(t testing.TB, o countersign.Options) *countersign.Agent {
	t.Helper()
	look(t)
	agent, err := countersign.New(o)
	if err != nil {
		t.Fatalf("agenttest: %v", err)
	}
	t.Cleanup(func() {
		if err := agent.Close(); err != nil {
			t.Errorf("agenttest: the agent does not close: %v", err)
		}
	})
	return agent
}

var (
	looked sync.Map // the tests whose goroutines are marked
	marks  atomic.Int64
)

// mark is the profiler's label of a test's goroutines. A goroutine inherits it from the one that starts it.
const mark = "agenttest"

// patience bounds how long a test waits for its goroutines to end.
var patience = 30 * time.Second

// look marks the goroutines that are started from here on by the test, and searches for them behind all that the test
// closes.
func look(t testing.TB) {
	t.Helper()
	if _, done := looked.LoadOrStore(t, true); done {
		return
	}
	of := fmt.Sprint(marks.Add(1))
	pprof.SetGoroutineLabels(pprof.WithLabels(context.Background(), pprof.Labels(mark, of)))
	t.Cleanup(func() {
		looked.Delete(t)
		pprof.SetGoroutineLabels(context.Background()) // this one is not left
		left := ""
		for wait := time.Millisecond; wait < patience; wait *= 2 {
			http.DefaultClient.CloseIdleConnections() // idle connections are not leaks
			outbound.Transport().CloseIdleConnections()
			if left = marked(of); left == "" {
				return
			}
			time.Sleep(wait) // a goroutine that is about to end may need a moment
		}
		t.Errorf("agenttest: goroutines outlive the test:\n%s", left)
	})
}

// marked returns the stacks of the goroutines with the mark.
func marked(of string) string {
	var profile bytes.Buffer
	if err := pprof.Lookup("goroutine").WriteTo(&profile, 1); err != nil {
		return err.Error()
	}
	var left []string
	for stack := range strings.SplitSeq(profile.String(), "\n\n") {
		if strings.Contains(stack, fmt.Sprintf("%q:%q", mark, of)) && !strings.Contains(stack, "os/signal.loop") {
			left = append(left, stack)
		}
	}
	return strings.Join(left, "\n\n")
}
