package plan

import (
	"slices"
	"time"

	"github.com/countersign-run/countersign/shared/base/fault"
)

// A Card is one showing of a plan to its user: an approval. The same plan may be on several cards of a session.
type Card struct {
	ApprovalID string
	Hash       string // of the plan that it shows
	Became     string // TypeConfirmed or a How; empty: it waits
	Confirmed  string // the hash of the plan that was confirmed, which its user may have edited
}

// about reports whether the hash is that of a plan that the card shows, or by which it was confirmed. No hash is about
// no card.
func (c Card) about(hash string) bool { return hash != "" && (c.Hash == hash || c.Confirmed == hash) }

// answered reports whether the card was closed in one of the ways.
func (c Card) answered(ways []string) bool { return slices.Contains(ways, c.Became) }

// The errors of an answer that names no card that can be answered.
var (
	errBeingMade = fault.New(fault.Policy, fault.CodeNotWaiting,
		"No plan waits; it is being made.").After(time.Second)
	errUnconfirmed = fault.New(fault.Policy, fault.CodeAlreadyResolved,
		"This has ended, and no plan was confirmed.")
	errTwoCards = fault.New(fault.Policy, fault.CodeStaleView,
		"You have answered an earlier card with exactly this plan. "+
			"Please look at the card that waits, and send its approvalId with your answer.")
)

// Answered returns the card that an answer is about. The answer names the card by its approvalID, or else the plan by
// its hash, or neither, which means the newest card. answered are the ways in which an earlier card of the same plan
// may have been closed by the same answer: a hash alone could then repeat that answer, and names no card. Errors:
// PolicyError not_waiting while a plan is made, already_resolved where none was confirmed before the end, stale_view
// for a hash that names no card; AuthError not_found for an approval that is none of the session's cards.
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
	case len(of) == 0: // the decision says what is wrong with the hash
		return s.Cards[len(s.Cards)-1].ApprovalID, nil
	case slices.ContainsFunc(of, func(c Card) bool { return c.answered(answered) }):
		return "", errTwoCards
	}
	return of[len(of)-1].ApprovalID, nil
}
