package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/base/visible"
	"github.com/countersign-run/countersign/shared/base/wait"
	"github.com/countersign-run/countersign/shared/engine/planner"
)

// list prints the user's newest sessions.
func (c *command) list(ctx context.Context) error {
	a, err := c.ask(ctx, http.MethodGet, plans, nil)
	if err != nil {
		return err
	}
	if c.json {
		_, err := fmt.Fprintf(c.out, "%s\n", strings.TrimSpace(string(a)))
		return err
	}
	var all struct{ Sessions []planner.Listed }
	if err := json.Unmarshal(a, &all); err != nil {
		return err
	}
	if len(all.Sessions) == 0 {
		fmt.Fprintln(c.out, "There are no sessions yet; plan start WISH creates one.")
	}
	for _, s := range all.Sessions {
		prompt, _ := visible.Line(s.Prompt)
		fmt.Fprintf(c.out, "%s  %-21s  %s  %s\n", s.SessionID, s.Status, s.CreatedAt.Format(time.RFC3339), prompt)
	}
	return nil
}

// shown is the number of a hash's characters that a user types.
const shown = 8

// decide prints the card that waits, and approves or rejects exactly that card. The user confirms an approval with the
// beginning of the card's hash, or with -yes-hash.
func (c *command) decide(ctx context.Context) error {
	if c.json && c.name == "approve" && c.hash == "" {
		return errors.New("-json requires -yes-hash: it does not ask you to type the hash")
	}
	s, body, err := c.send(ctx, http.MethodGet, c.path(""), nil)
	if err != nil {
		return err
	}
	card, err := c.waiting(s.Approvals)
	if err != nil {
		return err
	}
	decision := map[string]string{"approvalId": card.ApprovalID, "argsHash": card.ArgsHash, "decision": "reject"}
	if c.name == "approve" {
		s.Approvals = []run.ApprovalView{*card}
		if !c.json {
			err = c.print(s, body)
		}
		if err == nil {
			err = c.sameHash(ctx, card.ArgsHash)
		}
		if err != nil {
			return err
		}
		if decision["decision"] = "approve_once"; card.Kind == run.KindReview {
			decision["decision"] = "confirm_done"
		}
	}
	if _, err := c.ask(ctx, http.MethodPost, "/api/agent/approvals/resolve", decision); err != nil {
		return err
	}
	return c.show(ctx)
}

// waiting returns the card named by -card, or the only one.
func (c *command) waiting(cards []run.ApprovalView) (*run.ApprovalView, error) {
	for i, a := range cards {
		if a.ApprovalID == c.card || c.card == "" && len(cards) == 1 {
			return &cards[i], nil
		}
	}
	switch {
	case len(cards) == 0:
		return nil, errors.New("no card waits in this session")
	case c.card != "":
		return nil, fmt.Errorf("no card %s waits in this session", c.card)
	}
	return nil, fmt.Errorf("%d cards wait: name one with -card; show SESSION prints their IDs", len(cards))
}

// sameHash returns nil if the user gave or typed the hash of the card, or at least its first characters.
func (c *command) sameHash(ctx context.Context, hash string) error {
	given := c.hash
	if given == "" {
		fmt.Fprintf(c.out, "The card's hash is %s.\nTo approve exactly this card, type the first %d characters of its "+
			"hash: ", hash, shown)
		var err error
		if given, err = c.typed(ctx); err != nil {
			return err
		}
	}
	if len(given) >= shown && strings.HasPrefix(hash, given) {
		return nil
	}
	fmt.Fprintln(c.out, "Not approved: this is not the hash of the card, or less than its first 8 characters.")
	return errNo
}

// watch prints the session after each change, until it needs its user or has ended.
func (c *command) watch(ctx context.Context) error {
	for last := int64(-1); ; {
		s, body, err := c.send(ctx, http.MethodGet, c.path(""), nil)
		if err != nil {
			return err
		}
		if s.LastEvent != last {
			last = s.LastEvent
			if err := c.print(s, body); err != nil {
				return err
			}
		}
		switch s.Status {
		case "FAILED", "DEADLINE_EXCEEDED":
			return errNo
		case "COMPLETED", "AWAITING_CONFIRMATION":
			return nil
		}
		if len(s.Approvals) > 0 {
			return nil
		}
		if err := wait.For(ctx, c.every); err != nil {
			return err
		}
	}
}
