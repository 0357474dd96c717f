package plan

import (
	"slices"
	"time"

	"github.com/countersign-run/countersign/shared/base/fault"
)

// A Card is one approval that showed a plan to its user. Several cards of a session can show the same plan.
type Card struct {
	ApprovalID string
	Hash       string // hash of the plan
	Became     string // TypeConfirmed or a How; empty: it waits
	Confirmed  string // hash of the plan that was confirmed, which the user may have edited
}

// about reports whether the hash is that of the plan on the card, or of the plan that was confirmed with it. It is
// false for an empty hash.
func (c Card) about(hash string) bool { return hash != "" && (c.Hash == hash || c.Confirmed == hash) }

// answered reports whether the card was closed in one of the ways.
func (c Card) answered(ways []string) bool { return slices.Contains(ways, c.Became) }

// The errors of an answer to a card that cannot be answered.
var (
	errBeingMade = fault.New(fault.Policy, fault.CodeNotWaiting,
		"No plan is waiting; one is being made.").After(time.Second)
	errUnconfirmed = fault.New(fault.Policy, fault.CodeAlreadyResolved,
		"This has ended, and no plan was confirmed.")
	errTwoCards = fault.New(fault.Policy, fault.CodeStaleView,
		"An earlier card showed exactly this plan. "+
			"Please check the waiting card, and send its approvalId with your answer.")
)

// Answered returns the approval ID of the card that an answer is about. The answer names the card by approvalID, or its
// plan by hash. If both are empty, it means the newest card.
//
// A hash that several cards have shown does not identify a card, because an answer to the first card can arrive after
// the second card was shown. The hash is taken only if the newest of these cards was closed by the same answer, in one
// of the ways that answered lists: then it repeats that answer.
//
// Errors: PolicyError not_waiting while a plan is being made, already_resolved if the session ended without a confirmed
// plan, stale_view for an ambiguous hash; AuthError not_found for an approval that is not a card of the session.
func Answered(s *Session, approvalID, hash string, answered ...string) (string, error) {
	if s.Unreadable {
		return "", ErrUnreadable
	}
	if approvalID != "" {
		if !slices.ContainsFunc(s.Cards, func(c Card) bool { return c.ApprovalID == approvalID }) {
			return "", fault.NotFound()
		}
		return approvalID, nil
	}
	if s.Phase() == Ended && s.Confirmed == nil {
		return "", errUnconfirmed
	}
	var of []Card
	for _, c := range s.Cards {
		if c.about(hash) {
			of = append(of, c)
		}
	}
	switch {
	case len(of) > 0 && of[len(of)-1].answered(answered):
		return of[len(of)-1].ApprovalID, nil
	case s.Phase() == Planning || len(s.Cards) == 0:
		return "", errBeingMade
	case len(of) == 0: // the decision's own check reports the fault of the hash
		return s.Cards[len(s.Cards)-1].ApprovalID, nil
	case len(of) > 1:
		return "", errTwoCards
	}
	return of[len(of)-1].ApprovalID, nil
}
