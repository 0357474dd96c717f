package approval

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/engine/unit"
)

// CheckLimits checks the limits of the user before a run starts for them. The daily limit on model usage applies only
// if the run calls the model.
func CheckLimits(l run.Limits, u *run.User, asksModel bool, now time.Time) error {
	if err := u.Usage.CheckStart(l, now); err != nil || !asksModel {
		return err
	}
	return u.Usage.CheckModelBudget(l, now, 0, 0)
}

// CheckCaps checks the limits of the run's agent on approvals: the number that the user has open, and the number
// requested today. Approvals of other agents do not count. n is how much the approval counts for the day ([Effects]).
func CheckCaps(tx *unit.Tx, u *run.User, n int) error {
	if err := CheckOpen(tx, u); err != nil {
		return err
	}
	return checkDay(tx, u, n)
}

// Effects returns how much a call counts for the daily limit: one, or all its effects if the limit is on effects.
// t may be nil.
func Effects(tx *unit.Tx, t *tool.Tool, args json.RawMessage) int {
	if t == nil || !tx.Limits().CountAllowed {
		return 1
	}
	return t.Effects(args)
}

// Uncounted returns how many effects of a call with these arguments do not count for today yet. An approval counts its
// effects when it is requested. An edit can add effects, and the user may decide on a later day.
func Uncounted(tx *unit.Tx, t *tool.Tool, a *run.Action, args json.RawMessage) int {
	if !tx.Limits().CountAllowed || a.UserInitiated {
		return 0
	}
	return max(0, Effects(tx, t, args)-a.CountedOn(tx.Now))
}

// CheckOpen is CheckCaps without the daily limit. It is for plans: the user has just asked for the plan. A plan does
// not count for the day, and the daily limit applies to the calls of the plan.
func CheckOpen(tx *unit.Tx, u *run.User) error {
	p, count := tx.Limits(), u.CountOf(tx.Run.Agent)
	if p.MaxAsks > 0 && tx.Run.Approvals >= p.MaxAsks {
		return fault.New(fault.Policy, fault.CodeTooMany,
			"This request has asked for %d approvals, which is the limit.", p.MaxAsks)
	}
	if p.MaxOpen > 0 && count.Open >= p.MaxOpen {
		return fault.New(fault.Policy, fault.CodeTooMany,
			"%d approvals are waiting for you. Please answer some of them first.", count.Open).After(time.Minute)
	}
	return nil
}

// CheckEffects checks the daily limit for n effects that do not count yet, if the limit is on effects.
func CheckEffects(tx *unit.Tx, u *run.User, n int) error {
	if !tx.Limits().CountAllowed || n == 0 {
		return nil
	}
	return checkDay(tx, u, n)
}

func checkDay(tx *unit.Tx, u *run.User, n int) error {
	p, now := tx.Limits(), tx.Now
	left := p.MaxPerDay - u.CountOf(tx.Run.Agent).AskedOn(now)
	if p.MaxPerDay == 0 || n <= left {
		return nil
	}
	var message string
	switch {
	case left > 0:
		message = fmt.Sprintf("The limit is %d actions a day, with %d left; this call adds %d. Ask for fewer, or wait.",
			p.MaxPerDay, left, n)
	case p.CountAllowed:
		message = fmt.Sprintf("%d actions were asked for or done today, which is the limit.", p.MaxPerDay)
	default:
		message = fmt.Sprintf("You have been asked for %d approvals today, which is the limit.", p.MaxPerDay)
	}
	return fault.New(fault.Policy, fault.CodeTooMany, "%s %s", message, run.Tomorrow(now)).
		After(run.UntilTomorrow(now))
}
