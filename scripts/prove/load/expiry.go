package load

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/countersign-run/countersign/scripts/prove/proof"
	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/app"
	"github.com/countersign-run/countersign/shared/base/wait"
	"github.com/countersign-run/countersign/shared/config"
	"github.com/countersign-run/countersign/shared/store"
	"github.com/countersign-run/countersign/shared/store/document"
)

// expireTogether gives approvals enough time for all of them to be requested, and sweeps once a minute, as the cloud's
// scheduler does.
func expireTogether(g *env) {
	g.settings["APPROVAL_TTL"] = "2m"
	if g.For < time.Minute {
		g.expires = 15 * time.Second // a busy machine requests all of them before the first expires
		return
	}
	g.sweeps = time.Minute
}

// expiry is L13: unanswered approvals expire together. Readers see that at once. The measured time is the time until
// each run has ended in the store.
func expiry(ctx context.Context, g *env, r *Report) {
	g.begin(ctx)
	all, err := g.asked(ctx)
	proof.Must(err)
	ids := make([]string, len(all))
	last := time.Time{}
	for i, w := range all {
		ids[i] = w.runID
		if w.approval.ExpiresAt.After(last) {
			last = w.approval.ExpiresAt
		}
	}
	proof.Must(wait.For(ctx, time.Until(last)))
	stop := g.watch(r)
	most, err := g.ended(ctx, ids)
	proof.Must(err)
	took := stop()
	r.Figures["expired"], r.Figures["mostPerSecond"] = len(ids), round(most)
	r.atMost("worked off in s", took.Seconds(), 300)
	r.atMost("errors", float64(g.errors.sum()+g.failed.sum()), 0)
}

// look is the time between two reads of the store.
const look = 2 * time.Second

// ended waits until each run has ended in the store, and returns the largest number of runs that ended in one second.
// The remaining time is spent waiting for the next sweep.
func (g *env) ended(ctx context.Context, ids []string) (most float64, err error) {
	cfg, err := config.Load(order{Settings: g.settings}.setting)
	if err != nil {
		return 0, err
	}
	st, err := app.OpenStore(ctx, cfg, time.Now)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, st.Close()) }()
	ctx, cancel := context.WithTimeout(ctx, 10*time.Minute)
	defer cancel()
	for before := time.Now().Add(-look); ; {
		left, err := unended(ctx, patient(st), ids)
		if err != nil {
			return 0, err
		}
		most = max(most, float64(len(ids)-len(left))/time.Since(before).Seconds())
		if ids = left; len(ids) == 0 {
			return most, nil
		}
		before = time.Now()
		if err := wait.For(ctx, look); err != nil {
			return 0, fmt.Errorf("%d runs have not ended: %w", len(ids), err)
		}
	}
}

// unended returns the runs that have not ended.
func unended(ctx context.Context, st store.Store, ids []string) (left []string, err error) {
	for page := range slices.Chunk(ids, 100) {
		paths := make([]string, len(page))
		for i, id := range page {
			paths[i] = document.RunPath(id)
		}
		docs, err := st.Get(ctx, paths...)
		if err != nil {
			return nil, err
		}
		for _, d := range docs {
			if s := run.Status(document.RunFieldsOf(d).Status); s != run.Completed && s != run.Failed {
				left = append(left, document.ID(d))
			}
		}
	}
	return left, nil
}
