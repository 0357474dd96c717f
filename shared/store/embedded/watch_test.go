package embedded_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/countersign-run/countersign/shared/store"
	"github.com/countersign-run/countersign/shared/store/embedded"
	"github.com/countersign-run/countersign/shared/testkit/await"
)

// took is the maximum time that a test waits for an expected event.
const took = await.Most

func watched(t *testing.T, st store.Store, path string, enough func(store.Doc) bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), took)
	defer cancel()
	for d, err := range st.Watch(ctx, path) {
		if err != nil {
			t.Fatal(err)
		}
		if enough(d) {
			return
		}
	}
	t.Fatalf("the state of %s did not come in %v", path, took)
}

// A watcher in this process receives the commits of another process.
func TestWatchOtherProcess(t *testing.T) {
	dir := t.TempDir()
	st := file(t, dir, time.Now)
	cmd := child(t, "append", dir)
	out := &strings.Builder{}
	cmd.Stdout = out
	states := 0
	watched(t, st, "runs/30", func(d store.Doc) bool {
		if states++; states == 1 { // it does not exist yet
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
		}
		return string(d.Data) == "30"
	})
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if cmd.Wait() == nil || states != 2 {
		t.Fatalf("%d states came; the other process wrote %s", states, out)
	}
}

// The watcher receives a change, a deletion and a new document of another process.
func TestWatchOtherConnection(t *testing.T) {
	dir := t.TempDir()
	st, other := file(t, dir, time.Now), file(t, dir, time.Now)
	must := func(writes ...store.Write) time.Time {
		v, err := other.Commit(t.Context(), writes...)
		if err != nil {
			t.Fatal(err)
		}
		return v[0]
	}
	version := must(store.Create("runs/a", nil, []byte("1")))
	var seen []string
	watched(t, st, "runs/a", func(d store.Doc) bool {
		seen = append(seen, string(d.Data))
		switch len(seen) {
		case 1:
			version = must(store.Update("runs/a", version, nil, []byte("2")))
		case 2:
			must(store.Delete("runs/a", version))
		case 3:
			must(store.Create("runs/a", nil, []byte("3")))
		}
		return len(seen) == 4
	})
	if got := strings.Join(seen, ","); got != "1,2,,3" {
		t.Fatalf("saw %s", got)
	}
}

// Elsewhere signals commits of other processes, but not commits of this one.
func TestElsewhere(t *testing.T) {
	dir := t.TempDir()
	st, other := file(t, dir, time.Now), file(t, dir, time.Now)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	one, two := st.Elsewhere(ctx), st.Elsewhere(ctx)
	signalled := func(what string) {
		t.Helper()
		for _, c := range []<-chan struct{}{one, two} {
			select {
			case <-c:
			case <-time.After(took):
				t.Fatalf("no signal of %s", what)
			}
		}
	}
	signalled("the beginning")
	for _, p := range []string{"runs/a", "runs/b"} {
		if _, err := other.Commit(t.Context(), store.Create(p, nil, nil)); err != nil {
			t.Fatal(err)
		}
		// the first check signals once more, so this signal may be that one; the next signal is not
		signalled("another's commit")
	}
	cancel()
	if _, err := st.Commit(t.Context(), store.Create("runs/c", nil, nil)); err != nil {
		t.Fatal(err)
	}
}

// One goroutine checks the file while there are listeners, and none does after the last one has gone.
func TestElsewhereWithoutListeners(t *testing.T) {
	st := file(t, t.TempDir(), time.Now)
	before := goleak.IgnoreCurrent()
	ctx, cancel := context.WithCancel(t.Context())
	for range 10 {
		<-st.Elsewhere(ctx)
	}
	cancel()
	if err := goleak.Find(before); err != nil {
		t.Fatal(err)
	}
	if again := st.Elsewhere(t.Context()); len(again) != 1 {
		t.Fatal("no signal at the second beginning")
	}
}

// Closing a store ends its watchers and the checks of its file.
func TestWatchClosed(t *testing.T) {
	for name, open := range map[string]func() (*embedded.Store, error){
		"file":   func() (*embedded.Store, error) { return embedded.Open(t.TempDir(), time.Now) },
		"memory": func() (*embedded.Store, error) { return embedded.OpenMemory(time.Now) },
	} {
		t.Run(name, func(t *testing.T) {
			st, err := open()
			if err != nil {
				t.Fatal(err)
			}
			var ended error
			for _, ended = range st.Watch(t.Context(), "runs/a") {
				if ended == nil {
					if err := st.Close(); err != nil {
						t.Fatal(err)
					}
				}
			}
			if ended == nil {
				t.Fatal("the sequence ended without an error")
			}
			for _, err := range st.Watch(t.Context(), "runs/a") {
				if err == nil {
					t.Fatal("a closed store is watched")
				}
			}
		})
	}
}
