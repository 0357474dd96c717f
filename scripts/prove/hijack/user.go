package hijack

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/countersign-run/countersign/scripts/prove/proof"
	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/testkit"
)

// choose rejects most cards, and sometimes makes another valid decision.
func choose(chance *rand.Rand, card run.ApprovalView, edit string) run.Decision {
	d := card.Decisions[chance.IntN(len(card.Decisions))]
	switch {
	case card.Kind == run.KindReview:
		return run.ConfirmDone
	case edit != "" && card.Tool == "gmail_send" && chance.IntN(2) == 0:
		return run.ApproveEdited
	case chance.IntN(10) < 6 || d == run.ApproveEdited && card.Tool != "gmail_send":
		return run.Reject
	case d == run.ApproveAlways && strings.Contains(string(card.Args), "attacker"):
		return run.ApproveOnce // Ana rarely gives permanent permissions
	}
	return d
}

// decide sends the decision to the API, and records the approvals.
func (s *siege) decide(card run.ApprovalView, d run.Decision, comment, edit string) {
	args := card.Args
	if d == run.ApproveEdited {
		args = edited(edit)
	}
	var send json.RawMessage
	if d == run.ApproveEdited {
		send = args
	}
	if d == run.Reject {
		s.Count("rejected", 1)
		s.say("ana", card.ApprovalID, d, nil, comment)
		return
	}
	if !s.say("ana", card.ApprovalID, d, send, "") {
		s.Count("asked afresh", 1)
		return
	}
	switch d {
	case run.ApproveAlways:
		s.Count("always allowed", 1)
		to, err := s.tools[card.Tool].Targets(args)
		proof.Must(err)
		for _, target := range to {
			s.allow[card.Tool] = append(s.allow[card.Tool], target.Value)
		}
	case run.ApproveEdited:
		s.Count("edited", 1)
	default:
		s.Count("approved", 1)
	}
	s.grants = append(s.grants, grant{tool: card.Tool, args: args})
}

// edited returns Ana's edited arguments, which can quote the attacker.
func edited(text string) json.RawMessage {
	text = strings.Map(func(r rune) rune {
		if r == '\r' || r < ' ' && r != '\n' && r != '\t' {
			return ' '
		}
		return r
	}, text)
	b, err := json.Marshal(map[string]any{"to": []string{"dave@example.com"}, "subject": "What is this?",
		"body": "Somebody wrote: " + text})
	if err != nil {
		panic(err) // only strings
	}
	return b
}

// call sends a request to the API. Responses to Ana must contain nothing of Bob's.
func (s *siege) call(uid, method, path string, body any) testkit.Answer {
	as, err := s.w.As(s.ctx, uid)
	proof.Must(err)
	a, err := as(s.ctx, method, "/api/agent"+path, body)
	proof.Must(err)
	if uid != "bob" && strings.Contains(string(a.Body), secret) {
		s.fail("%s %s shows Bob's data", method, path)
	}
	return a
}

func (s *siege) ask(uid, prompt string) testkit.Answer {
	return s.begun(uid, map[string]any{"prompt": prompt})
}

// askWith starts a run of Ana's with this body.
func (s *siege) askWith(body map[string]any) testkit.Answer { return s.begun("ana", body) }

func (s *siege) begun(uid string, body map[string]any) testkit.Answer {
	a := s.call(uid, "POST", "/run", body)
	if a.HTTP != 200 {
		proof.Must(fmt.Errorf("%d %s", a.HTTP, a.Body))
	}
	return a
}

// say sends a decision. It returns false if another decision has changed the rule that required the approval. The
// approval is then requested again.
func (s *siege) say(uid, approval string, d run.Decision, edited json.RawMessage, comment string) bool {
	body := map[string]any{"approvalId": approval, "decision": d, "comment": comment}
	if edited != nil {
		body["editedArgs"] = edited
	}
	a := s.call(uid, "POST", "/approvals/resolve", body)
	if a.HTTP == 409 && a.Error.Code == "stale_view" {
		return false
	}
	if a.HTTP != 200 {
		proof.Must(fmt.Errorf("%v is answered %d %s", body, a.HTTP, a.Body))
	}
	return true
}

// deliver runs the approved actions.
func (s *siege) deliver() {
	_, err := s.w.Deliver(s.ctx)
	proof.Must(err)
}

// pending returns Ana's pending approvals, by run.
func (s *siege) pending() map[string][]run.ApprovalView {
	var page struct{ Approvals []run.ApprovalView }
	proof.Must(json.Unmarshal(s.call("ana", "GET", "/approvals/pending?limit=100", nil).Body, &page))
	out := map[string][]run.ApprovalView{}
	for _, c := range slices.Backward(page.Approvals) {
		out[c.RunID] = append(out[c.RunID], c)
	}
	return out
}
