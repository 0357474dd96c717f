package loop_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/countersign-run/countersign/shared/agent/model"
	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/engine/loop"
	"github.com/countersign-run/countersign/shared/engine/quota"
	"github.com/countersign-run/countersign/shared/store"
	"github.com/countersign-run/countersign/shared/store/document"
	"github.com/countersign-run/countersign/shared/testkit/script"
)

// posting is a model that calls post once in each run.
type posting struct{}

func (posting) Name() string { return "posting" }

func (posting) Generate(ctx context.Context, req model.Request, delta func(string)) (*model.Reply, error) {
	turn := script.Turn{Calls: []script.Call{{Name: "post"}}}
	if strings.Contains(string(req.Contents[len(req.Contents)-1]), "functionResponse") {
		turn = script.Turn{Text: "Done."}
	}
	return script.New(turn).Generate(ctx, req, delta)
}

// posts gives each run a call of a tool that takes a part of the quota of Post, and returns the number of calls made.
func (w *env) posts(units int, d tool.Def[struct{}, string]) (made *int) {
	w.patience, w.post = time.Hour, quota.Limits{Tokens: units}
	made = new(int)
	d.Name, d.Description, d.Quota = "post", "Posts.", tool.Quota{Service: "Post", Units: 1}
	d.Preview = func(struct{}) tool.Preview { return tool.Preview{Title: "Post"} }
	d.Execute = func(context.Context, tool.Call, struct{}) (string, error) {
		*made++
		return "Posted.", nil
	}
	w.loop = w.process()
	w.loop.Model, w.loop.Tools = posting{}, tool.NewSet(tool.Define(d))
	return made
}

// minute lets a minute pass, and another process continue the runs that are due.
func (w *env) minute(t *testing.T, d time.Duration) {
	t.Helper()
	w.tick(d)
	tools := w.loop.Tools
	w.loop = w.process()
	w.loop.Model, w.loop.Tools = posting{}, tools
	_, err := w.loop.Sweep(t.Context())
	if err == nil {
		err = w.deliver(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
}

func (w *env) posting(t *testing.T, uid string) *run.View {
	t.Helper()
	v, err := w.loop.Start(t.Context(), loop.StartRequest{UID: uid}, loop.Prompt{Text: "Post it."})
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// TestServiceQuota lets runs of two users, in several processes, call a service whose quota is ten calls a minute. All
// calls are made, no minute has more than its quota, and the user with one call waits for the next minute at most.
func TestServiceQuota(t *testing.T) {
	w := newEnv(t)
	made := w.posts(10, tool.Def[struct{}, string]{})
	const many = 40
	owner := map[string]string{}
	for range many {
		owner[w.posting(t, "ana").RunID] = "ana"
	}
	one := w.posting(t, "bo")
	owner[one.RunID] = "bo"
	done := map[string]int{} // the minute in which each run was completed
	before := 0
	for minute := 0; len(done) < len(owner); minute++ {
		if minute > 12 {
			t.Fatalf("%d of %d runs are completed after %d minutes", len(done), len(owner), minute)
		}
		for id, uid := range owner {
			if _, ended := done[id]; ended {
				continue
			}
			switch v, _, err := w.loop.Get(t.Context(), uid, id); {
			case err != nil || v.Status == run.Failed:
				t.Fatalf("%v, the run is %+v; want it to wait", err, v)
			case v.Status == run.Completed:
				done[id] = minute
			}
		}
		if n := *made - before; n > 10 {
			t.Errorf("%d calls in minute %d; want at most 10", n, minute)
		}
		before = *made
		w.minute(t, time.Minute)
	}
	// 10 calls in the first minute, and 9 in each later one: the rest is for users who wait for nothing.
	last := slices.Max(slices.Collect(maps.Values(done)))
	if got := done[one.RunID]; got > 1 || last > 1+(many-10)/9 {
		t.Errorf("the user with one call waited %d minutes, and the other %d; want at most 1 and %d", got, last,
			1+(many-10)/9)
	}
}

// TestServiceQuotaSaysSo checks the view of a run whose call waits for the quota of its service, before and after its
// turn.
func TestServiceQuotaSaysSo(t *testing.T) {
	onEachStore(t, func(t *testing.T, open func(testing.TB) *env) {
		w := open(t)
		made := w.posts(1, tool.Def[struct{}, string]{})
		var v *run.View
		for v == nil || v.Status == run.Completed { // Firestore's minutes continue while the test's clock stands still
			if *made > 20 {
				t.Fatal("no call waits")
			}
			v = w.posting(t, "bo")
		}
		calls, wait := *made, v.Actions[0].NotBefore.Sub(w.clock())
		if v.Status != run.Executing || v.Actions[0].WaitsFor != run.WaitsForQuota || wait > 3*time.Minute ||
			!strings.Contains(v.Summary, "quota that all users") {
			t.Fatalf("the run is %s for %s: %s; want it to wait, and to say so", v.Status, wait, v.Summary)
		}
		w.minute(t, max(wait, 0)+3*time.Second)
		v, _, err := w.loop.Get(t.Context(), "bo", v.RunID)
		if err != nil || v.Status != run.Completed || *made != calls+1 {
			t.Errorf("%v, %d calls, %+v; want the run completed with %d", err, *made, v, calls+1)
		}
	})
}

// TestServiceQuotaOfCallsThatCannotWait checks that a call is made although the quota is used up, if its permission may
// not last, or if the quota cannot be read.
func TestServiceQuotaOfCallsThatCannotWait(t *testing.T) {
	w := newEnv(t)
	made := w.posts(1, tool.Def[struct{}, string]{SideEffect: true, Approval: tool.NotRequired})
	for want := 1; want <= 2; want++ {
		if v := w.posting(t, "ana"); v.Status != run.Completed || *made != want {
			t.Errorf("%d calls, %s: %s; want %d and completed", *made, v.Status, v.Message, want)
		}
	}
	w = newEnv(t)
	made = w.posts(1, tool.Def[struct{}, string]{})
	path := document.ServiceQuotaPath("Post")
	if _, err := w.store.Commit(t.Context(), store.Create(path, nil, []byte(`{"format":99}`))); err != nil {
		t.Fatal(err)
	}
	for want := 1; want <= 2; want++ {
		if v := w.posting(t, fmt.Sprint("user-", want)); v.Status != run.Completed || *made != want {
			t.Errorf("%d calls without a quota, %s: %s; want %d and completed", *made, v.Status, v.Message, want)
		}
	}
	if docs, err := w.store.Get(t.Context(), path); err != nil || !strings.Contains(string(docs[0].Data), "99") {
		t.Errorf("%v, the quota of a later release is %s; want it as it was", err, docs[0].Data)
	}
}
