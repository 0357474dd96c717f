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

// New returns an agent. It fails the test at once if the options are wrong. At the end of the test it closes the
// agent, and fails the test if a goroutine that the agent, its tools or its other users' agents started is still
// running. Tests can run in parallel, because each test looks only for its own goroutines.
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
	looked sync.Map // the tests that have a goroutine mark
	marks  atomic.Int64
)

// mark is the profiler's label of a test's goroutines. A goroutine inherits it from the one that starts it.
const mark = "agenttest"

// patience is how long a test waits for its goroutines to end.
var patience = 30 * time.Second

// look marks the goroutines that the test starts from now on. At the end of the test, after everything else is
// closed, it searches for marked goroutines.
func look(t testing.TB) {
	t.Helper()
	if _, done := looked.LoadOrStore(t, true); done {
		return
	}
	of := fmt.Sprint(marks.Add(1))
	pprof.SetGoroutineLabels(pprof.WithLabels(context.Background(), pprof.Labels(mark, of)))
	t.Cleanup(func() {
		looked.Delete(t)
		pprof.SetGoroutineLabels(context.Background()) // the test's own goroutine
		left := ""
		for wait := time.Millisecond; wait < patience; wait *= 2 {
			http.DefaultClient.CloseIdleConnections() // idle connections are not leaks
			outbound.Transport().CloseIdleConnections()
			if left = marked(of); left == "" {
				return
			}
			time.Sleep(wait) // a goroutine may be about to end
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
