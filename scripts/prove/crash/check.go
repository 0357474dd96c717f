package crash

import (
	"maps"

	"github.com/countersign-run/countersign/scripts/prove/proof"
	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/testkit"
	"github.com/countersign-run/countersign/shared/testkit/fakegoogle"
	"github.com/countersign-run/countersign/shared/testkit/invariants"
)

// checkTrial checks all invariants, answers the reviews, and checks again.
func (t *trial) checkTrial() {
	t.env.failNext(fakegoogle.None, 0)
	t.quiet()
	for n := range t.started() {
		if a := t.view(n); len(a.Approvals) > 0 && a.Approvals[0].Kind == "review" {
			t.outcome.reviews++
		}
	}
	t.checkInvariants()
	effects := t.count()
	t.outcome.effects = effects
	if t.kind.onHost {
		t.checkHost()
	} else {
		t.checkProvided(effects)
	}
	if t.kind.mailed {
		t.checkReminders()
	}
	if t.answerReviews() {
		t.checkInvariants()
	}
	t.checkEvents()
	switch {
	case t.kind.onHost:
		t.nextRun()
	case t.kind.contained:
		t.checkContainers()
	}
}

// checkProvided checks the number of a provider's effects, and that the user is not asked about outcomes that the
// provider can report.
func (t *trial) checkProvided(effects int) {
	if t.outcome.reviews == 0 && t.fault == fakegoogle.None && !t.slow && !t.scenario.effects(effects) {
		if effects > t.started() {
			t.problem("%d effects; %s", effects, t.ends())
		} else {
			t.overdue("%d effects; %s", effects, t.ends())
		}
	}
	if t.outcome.reviews > 0 && t.kind.proves() && t.fault == fakegoogle.None && !t.scenario.ends {
		t.overdue("the user is asked about an outcome that the provider could report")
	}
}

// answerReviews answers reviews of unknown outcomes as the user, and chooses to try again every second time. It
// approves everything else that waits, such as the new plan for a failed task. It reports whether anything waited.
func (t *trial) answerReviews() (answered bool) {
	for n := range t.started() {
		for range 3 {
			a := t.view(n)
			if len(a.Approvals) == 0 {
				break
			}
			decision := "approve_once"
			if a.Approvals[0].Kind == "review" {
				decision = []string{"confirm_done", "start_new"}[t.env.random.IntN(2)]
				if t.kind.readsOnly { // the effects of such commands do not name their action
					decision = "confirm_done"
				}
			}
			t.answer(a.Approvals[0], decision)
			answered = true
		}
	}
	return answered
}

func (t *trial) answer(a testkit.Approval, decision string) {
	if a.Kind != string(run.KindPlan) {
		a.ArgsHash = "" // not every client sends it
	}
	got, err := t.at(t.env.worker).Resolve(t.ctx, a, decision)
	if proof.Must(err); got.HTTP != 200 {
		t.problem("%s: %d %s", decision, got.HTTP, got.Body)
	}
	t.settle("after "+decision, t.rested)
}

// quiet delivers old messages again. They must change nothing.
func (t *trial) quiet() {
	for _, id := range t.runs[:t.started()] {
		proof.Must(t.env.deliver(t.ctx, t.env.worker))
		before, err := invariants.Versions(t.ctx, t.env.store, id)
		proof.Must(err)
		for range 3 {
			t.env.again(t.ctx, id, t.env.worker)
		}
		after, err := invariants.Versions(t.ctx, t.env.store, id)
		if proof.Must(err); !maps.Equal(before, after) {
			t.problem("invariant 21: an old message changed something: from %v to %v; %s", before, after, t.ends())
		}
	}
}

// checkInvariants compares the stored documents with the providers' effects.
func (t *trial) checkInvariants() {
	rules := invariants.Rules{MaxTurns: 3, MaxOpen: 20, Resting: true, Strict: []string{run.Terminal, run.Planner}}
	if t.kind.plans {
		rules.MaxTurns = 10
	}
	if t.kind == edit {
		rules.MaxTurns = 14 // the model reads the file first, and then edits it again
	}
	for _, id := range t.runs[:t.started()] {
		found, err := invariants.Run(t.ctx, t.env.store, id, t.effects(), rules)
		proof.Must(err)
		for _, v := range found {
			t.problem("%v", v)
		}
	}
}
