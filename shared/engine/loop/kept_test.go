package loop_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/wait"
	"github.com/countersign-run/countersign/shared/engine/loop"
	"github.com/countersign-run/countersign/shared/store"
	"github.com/countersign-run/countersign/shared/store/document"
	"github.com/countersign-run/countersign/shared/store/memory"
	"github.com/countersign-run/countersign/shared/store/output"
	"github.com/countersign-run/countersign/shared/testkit/faulty"
)

// prints gives the assistant an effect whose output is kept, and a model that calls it. The effect needs no approval.
func (w *env) prints(execute, reconcile func(c tool.Call) error) {
	d := w.sendDef("print")
	d.Approval, d.Targets, d.KeepsOutput = tool.NotRequired, nil, true
	d.Execute = func(_ context.Context, c tool.Call, _ sendArgs) (sendResult, error) {
		return sendResult{ID: "1"}, execute(c)
	}
	d.Reconcile = func(_ context.Context, c tool.Call, _ sendArgs) (tool.Verdict, sendResult, string, error) {
		err := reconcile(c)
		return tool.Done, sendResult{ID: "1"}, "", err
	}
	w.loop.Tools["print"] = tool.Define(d)
	w.loop.Model = &asked{tool: "print"}
}

// kept returns the stored output of the run's first action.
func (w *env) kept(runID string) string {
	w.t.Helper()
	ctx := context.Background()
	var r run.Run
	if err := document.Decode(w.document(runID), &r); err != nil || len(r.Outputs) != 1 {
		w.t.Fatalf("%v: %d outputs", err, len(r.Outputs))
	}
	k, err := output.Read(ctx, w.store, runID, r.Outputs[0])
	if err != nil {
		w.t.Fatal(err)
	}
	var b strings.Builder
	if err := k.From(ctx, w.store, 0, func(at int64, p []byte) error {
		if at != int64(b.Len()) {
			w.t.Errorf("bytes from %d on come after %d", at, b.Len())
		}
		b.Write(p)
		return nil
	}); err != nil {
		w.t.Fatal(err)
	}
	return b.String()
}

// TestOutputOfTwoProcesses kills a process while its call prints. The next process finds the call in progress and
// writes its output from the beginning, or from the stored position. The output is stored once.
func TestOutputOfTwoProcesses(t *testing.T) {
	all := strings.Repeat("a line of the output\n", 10_000)
	onEachStore(t, func(t *testing.T, open func(testing.TB) *env) {
		for name, again := range map[string]func(c tool.Call) error{
			"from the beginning": func(c tool.Call) error { _, err := io.WriteString(c.Output, all); return err },
			"from what is kept": func(c tool.Call) error {
				_, err := io.WriteString(io.NewOffsetWriter(c.Output.(io.WriterAt), c.Kept), all[c.Kept:])
				return err
			},
			"from before what is kept": func(c tool.Call) error {
				_, err := c.Output.(io.WriterAt).WriteAt([]byte(all[1:]), 1)
				return err
			},
		} {
			t.Run(name, func(t *testing.T) {
				ctx, w := context.Background(), open(t)
				var first int64
				w.prints(func(c tool.Call) error {
					for at := 0; at < 100_000; at += 10_000 {
						_, _ = io.WriteString(c.Output, all[at:at+10_000])
					}
					runtime.Goexit() // the output so far is stored by then
					return nil
				}, func(c tool.Call) error {
					first = c.Kept
					if _, err := c.Output.(io.WriterAt).WriteAt([]byte("x"), c.Kept+1); err == nil {
						t.Error("a gap is written")
					}
					return again(c)
				})
				var v *run.View
				dying(func() {
					_, _ = w.loop.Start(ctx, loop.StartRequest{UID: "ana", Key: "k"}, loop.Prompt{Text: "x"})
				})
				w.tick(time.Hour)
				v, err := w.loop.Advance(ctx, run.KeyedRunID("ana", "k"), nil)
				if err != nil || v.Status != run.Completed {
					t.Fatalf("%v %+v; want v.Status %v", err, v, run.Completed)
				}
				if got := w.kept(v.RunID); got != all || first == 0 {
					t.Errorf("%d bytes of %d are kept; the second process found %d", len(got), len(all), first)
				}
			})
		}
	})
}

// outputWrites chooses the commits that write an output.
func outputWrites(c *faulty.Call) bool {
	return slices.ContainsFunc(c.Writes, func(o store.Write) bool {
		return strings.Contains(o.Doc.Path, "/outputs/") && o.Op == store.OpUpdate
	})
}

// TestOutputDuringOutage makes the store fail while a call prints, loses the answers of commits, and lets another
// process write the same output in between. All of the output is kept, once.
func TestOutputDuringOutage(t *testing.T) {
	all := strings.Repeat("a line of the output\n", 10_000)
	odd := func(n int) bool { return n%2 == 1 }
	var own store.Store // the other process's
	for name, hook := range map[string]faulty.Hook{
		"the store is down": faulty.Each(odd, faulty.Down),
		"answers are lost":  faulty.Each(odd, faulty.Lost),
		"commits fail":      faulty.Each(odd, faulty.Fail(errors.New("broken"))),
		"another process": faulty.Nth(2, func(ctx context.Context, c *faulty.Call, next faulty.Next) error {
			parts := strings.Split(c.Writes[len(c.Writes)-1].Doc.Path, "/")
			k, err := output.Read(ctx, own, parts[1], parts[3])
			if err == nil {
				err = k.Append(ctx, own, k.Bytes, []byte(all[k.Bytes:k.Bytes+70_000]))
			}
			if err != nil {
				t.Error(err)
			}
			return next(ctx)
		}),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := timed(t)
				own = w.store
				w.prints(func(c tool.Call) error {
					for at := 0; at < len(all); at += 10_000 {
						_, _ = io.WriteString(c.Output, all[at:at+10_000])
						time.Sleep(200 * time.Millisecond)
					}
					return nil
				}, nil)
				w.loop.Store = faulty.Wrap(w.store, faulty.Commits(faulty.Of(outputWrites, hook)))
				v, err := w.start()
				if err != nil || v.Status != run.Completed {
					t.Fatalf("%v %+v; want v.Status %v", err, v, run.Completed)
				}
				if got := w.kept(v.RunID); got != all {
					t.Errorf("%d bytes of %d are kept", len(got), len(all))
				}
			})
		})
	}
}

// TestOutputOfDeletedRun deletes the conversation of an unreadable run after it has printed. The output is found
// through the audit, and deleted too.
func TestOutputOfDeletedRun(t *testing.T) {
	onEachStore(t, func(t *testing.T, open func(testing.TB) *env) {
		ctx, w := context.Background(), open(t)
		w.prints(func(c tool.Call) error {
			_, err := io.WriteString(c.Output, strings.Repeat("0123456789abcdef", 5<<10))
			return err
		}, nil)
		v, err := w.start()
		if err != nil || len(w.kept(v.RunID)) != 80<<10 {
			t.Fatalf("%v %+v", err, v)
		}
		w.setAside(v.RunID, `{"id":5}`)
		if gone, err := w.rec.DeleteThread(ctx, "ana", v.ThreadID); err != nil || !gone {
			t.Fatalf("%t %v", gone, err)
		}
		id := v.Actions[0].ActionID
		docs, err := w.store.Get(ctx, document.OutputPath(v.RunID, id), document.OutputPartPath(v.RunID, id, 0))
		if err != nil || docs[0].Exists() || docs[1].Exists() {
			t.Errorf("%v: the output is left: %t, %t", err, docs[0].Exists(), docs[1].Exists())
		}
	})
}

// timed is an env on the clock of a synctest bubble.
func timed(t *testing.T) *env {
	w := &env{t: t, now: began}
	w.on(memory.New(time.Now), func(time.Duration) {})
	w.loop.Sleep, w.loop.Now = wait.For, time.Now
	return w
}

// atPace lets a call print at the pace of print, on a store that counts, and returns the number of commits that wrote
// its output.
func atPace(t *testing.T, print func(c tool.Call)) (commits int, kept string) {
	synctest.Test(t, func(t *testing.T) {
		w := timed(t)
		w.prints(func(c tool.Call) error { print(c); return nil }, nil)
		w.loop.Store = faulty.Wrap(w.store,
			faulty.Commits(faulty.Of(outputWrites, faulty.Before(func(*faulty.Call) { commits++ }))))
		v, err := w.loop.Start(t.Context(), loop.StartRequest{UID: "ana"}, loop.Prompt{Text: "x"})
		if err != nil || v.Status != run.Completed {
			t.Fatalf("%v %+v; want v.Status %v", err, v, run.Completed)
		}
		kept = w.kept(v.RunID)
	})
	return commits, kept
}

// TestOutputCommitRate counts the commits of outputs of several kinds.
func TestOutputCommitRate(t *testing.T) {
	for name, c := range map[string]struct {
		lines   int
		every   time.Duration
		commits int
	}{
		"nothing":                {0, 0, 0},
		"all at once":            {1000, 0, 1},
		"a line for ten seconds": {1000, 10 * time.Millisecond, 21},
		"a line a second":        {10, time.Second, 10},
		"a line a minute":        {5, time.Minute, 5},
	} {
		t.Run(name, func(t *testing.T) {
			commits, kept := atPace(t, func(call tool.Call) {
				for i := range c.lines {
					_, _ = fmt.Fprintf(call.Output, "line %d\n", i)
					time.Sleep(c.every)
				}
			})
			if commits != c.commits {
				t.Errorf("%d commits, want %d", commits, c.commits)
			}
			if n := strings.Count(kept, "\n"); n != c.lines {
				t.Errorf("%d lines of %d are kept", n, c.lines)
			}
		})
	}
}
