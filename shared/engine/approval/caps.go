package approval

import (
	"time"

	"github.com/countersign-run/countersign/shared/agent/run"
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
// requested today. Approvals of other agents do not count.
func CheckCaps(tx *unit.Tx, u *run.User) error {
	if err := CheckOpen(tx, u); err != nil {
		return err
	}
	return checkDay(tx, u)
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

// CheckAllowed checks the daily limit for a call that runs without approval, if the limit includes such calls.
func CheckAllowed(tx *unit.Tx, u *run.User) error {
	if !tx.Limits().CountAllowed {
		return nil
	}
	return checkDay(tx, u)
}

func checkDay(tx *unit.Tx, u *run.User) error {
	p, now := tx.Limits(), tx.Now
	if p.MaxPerDay == 0 || u.CountOf(tx.Run.Agent).AskedOn(now) < p.MaxPerDay {
		return nil
	}
	message := "You have been asked for %d approvals today, which is the limit. %s"
	if p.CountAllowed {
		message = "%d actions were asked for or done today, which is the limit. %s"
	}
	return fault.New(fault.Policy, fault.CodeTooMany, message, p.MaxPerDay, run.Tomorrow(now)).
		After(run.UntilTomorrow(now))
}
