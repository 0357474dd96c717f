package crash

import (
	"context"
	"maps"

	"github.com/countersign-run/countersign/shared/testkit"
	"github.com/countersign-run/countersign/shared/testkit/fakegoogle"
	"github.com/countersign-run/countersign/shared/testkit/invariants"
)

// judge checks all invariants, answers the reviews, and checks again.
func (t *trial) judge(ctx context.Context) error {
	t.env.tearNext(fakegoogle.None, 0)
	if err := t.quiet(ctx); err != nil {
		return err
	}
	for n := range t.started() {
		if a := t.look(n); len(a.Approvals) > 0 && a.Approvals[0].Kind == "review" {
			t.outcome.reviews++
		}
	}
	if err := t.hold(ctx); err != nil {
		return err
	}
	effects := t.env.effectsOf(t.uid)
	t.outcome.effects = len(effects)
	if t.outcome.reviews == 0 && t.torn == fakegoogle.None && !t.slow && !t.walk.effects(len(effects)) {
		if len(effects) > t.started() {
			t.problem("%d effects; %s", len(effects), t.ends())
		} else {
			t.overdue("%d effects; %s", len(effects), t.ends())
		}
	}
	if t.outcome.reviews > 0 && t.kind.proves() && t.torn == fakegoogle.None && !t.walk.ends {
		t.overdue("somebody is asked about what could be found out")
	}
	return t.answerReviews(ctx)
}

// answerReviews settles unknown outcomes as the user: every second time by trying again.
func (t *trial) answerReviews(ctx context.Context) error {
	for n := range t.started() {
		for round := 0; round < 3; round++ {
			a := t.look(n)
			if len(a.Approvals) == 0 {
				break
			}
			decision := "approve_once"
			if a.Approvals[0].Kind == "review" {
				decision = []string{"confirm_done", "start_new"}[t.env.random.IntN(2)]
			}
			if err := t.answer(ctx, a.Approvals[0], decision); err != nil {
				return err
			}
		}
	}
	if t.outcome.reviews == 0 {
		return nil
	}
	return t.hold(ctx)
}

func (t *trial) answer(ctx context.Context, a testkit.Approval, decision string) error {
	// without its hash
	got, err := t.at(t.env.worker).Resolve(ctx, testkit.Approval{ApprovalID: a.ApprovalID}, decision)
	if err != nil {
		return err
	}
	if got.HTTP != 200 {
		t.problem("%s: %d %s", decision, got.HTTP, got.Body)
	}
	return t.settle(ctx, "after "+decision, t.rested)
}

// quiet delivers old messages again, which must change nothing.
func (t *trial) quiet(ctx context.Context) error {
	for _, id := range t.runs[:t.started()] {
		if err := t.env.deliver(ctx); err != nil {
			return err
		}
		before, err := invariants.Versions(ctx, t.env.store, id)
		if err != nil {
			return err
		}
		for range 3 {
			t.env.again(ctx, id, t.env.worker)
		}
		after, err := invariants.Versions(ctx, t.env.store, id)
		if err != nil {
			return err
		}
		if !maps.Equal(before, after) {
			t.problem("invariant 21: an old message changed something")
		}
	}
	return nil
}

// hold compares the stored documents with the providers' effects.
func (t *trial) hold(ctx context.Context) error {
	rules := invariants.Rules{MaxTurns: 3, MaxOpen: 20, Resting: true}
	for _, id := range t.runs[:t.started()] {
		found, err := invariants.Run(ctx, t.env.store, id, t.env.effectsOf(t.uid), rules)
		if err != nil {
			return err
		}
		for _, v := range found {
			t.problem("%v", v)
		}
	}
	return nil
}
