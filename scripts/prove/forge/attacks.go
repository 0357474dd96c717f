package forge

import (
	"context"
	"crypto/ed25519"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/countersign-run/countersign/scripts/prove/proof"
	"github.com/countersign-run/countersign/shared/agent/decision"
	"github.com/countersign-run/countersign/shared/agent/policy"
	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/store/document"
	"github.com/countersign-run/countersign/shared/tools/gmail"
)

// attack is one kind of write into the store.
type attack struct {
	name  string
	host  bool         // it needs a host
	begin func(*scene) // brings the user into the situation; nil: a call waits
	write func(*scene)
	then  func(*scene) // what the user does afterwards; nil: nothing
}

// waits starts a run whose call waits for approval.
func waits(s *scene) { s.asked = s.ask(s.uid, bob, "hello") }

func rejected(s *scene) {
	waits(s)
	s.decide(s.uid, s.asked, "reject", 0)
}

func approved(s *scene) {
	waits(s)
	s.decide(s.uid, s.asked, "approve_once", 0)
}

func held(s *scene) {
	waits(s)
	s.decide(s.uid, s.asked, "approve_once", 60)
}

// always allows e-mails to Bob. One was sent.
func always(s *scene) {
	waits(s)
	s.decide(s.uid, s.asked, "approve_and_always_allow_recipient", 0)
	s.settle(s.asked)
}

// again starts a run that sends Bob another e-mail.
func again(s *scene) { s.asked = s.ask(s.uid, bob, "once more") }

// yes adds an approval with the signature to the run.
func yes(s *scene, sig *decision.Signature) {
	s.run(func(r *run.Run) { addYes(s, r, sig) })
	s.close()
}

func addYes(s *scene, r *run.Run, sig *decision.Signature) {
	ap := s.asked.Approvals[0]
	add(r, run.Event{Type: run.ActionDecided, ActionID: ap.ActionID, Decided: &run.Decided{ApprovalID: ap.ApprovalID,
		Decision: run.ApproveOnce, By: s.uid, ArgsHash: ap.ArgsHash, Proof: sig}})
}

// close closes the card, as an approval does.
func (s *scene) close() {
	change(s, document.ApprovalPath(s.asked.Approvals[0].ApprovalID), func(a *run.Approval) {
		a.Status, a.Decision, a.DecidedAt = run.ApprovalApproved, run.ApproveOnce, time.Now()
	})
}

// genuine returns the signature of a user's decision about another call, an e-mail to Bob.
func (s *scene) genuine(uid string) *decision.Signature {
	other := s.asked
	s.asked = s.ask(uid, bob, "genuine")
	s.decide(uid, s.asked, "approve_once", 0)
	s.settle(s.asked)
	docs, err := s.App.Store.Get(s.ctx, document.RunPath(s.asked.RunID))
	proof.Must(err)
	var r run.Run
	proof.Must(document.Decode(docs[0], &r))
	s.asked = other
	return decided(&r).Proof
}

// invented returns a signature by a key of the attacker, under the key ID.
func invented(id string) *decision.Signature {
	key, err := decision.NewKey(make([]byte, ed25519.SeedSize))
	proof.Must(err)
	sig, err := key.Sign(context.Background(), []byte("x"))
	proof.Must(err)
	return &decision.Signature{Key: id, At: time.Now(), Until: time.Now().Add(time.Hour), Sig: sig}
}

// allow adds an entry for Bob to the always-allow list.
func (s *scene) allow(sig *decision.Signature) {
	var place tool.Place
	change(s, document.ApprovalPath(s.asked.Approvals[0].ApprovalID), func(a *run.Approval) { place = a.Place })
	s.user(func(u *run.User) {
		u.Allow = append(u.Allow, policy.Entry{ID: policy.EntryID(s.uid, gmail.Name, bob), Tool: gmail.Name,
			Recipient: bob, Place: place, CreatedAt: time.Now(), ExpiresAt: time.Now().Add(policy.EntryLife),
			Proof: sig})
	})
}

// standing replaces the stored call with one that an entry of the always-allow list allows.
func standing(s *scene) {
	s.run(func(r *run.Run) {
		p := proposed(r)
		p.RequiresApproval, p.PolicyDecision, p.Rule = false, "allow", policy.RuleAllowlisted
		p.Allowed = []string{policy.EntryID(s.uid, gmail.Name, bob)}
		asNew(r)
	})
}

// started stores that a process began the call with the handle and then died.
func (s *scene) started(handle string) {
	s.run(func(r *run.Run) {
		add(r, run.Event{Type: run.ActionStarted, ActionID: s.asked.Approvals[0].ActionID,
			Started: &run.Started{Owner: "dead", Attempt: 1, Handle: handle}})
	})
}

// asNew removes the waits, as if no call had waited for a decision yet.
func asNew(r *run.Run) {
	r.Log.Tail = slices.DeleteFunc(r.Log.Tail, func(e run.Event) bool { return e.Wait != nil })
	for i := range r.Log.Tail {
		r.Log.Tail[i].Seq = int64(i + 1)
	}
	r.Log.Count = int64(len(r.Log.Tail))
}

// other is the attacker's e-mail.
const other = `{"body":"other","subject":"other","to":["eve@example.com"]}`

// rehash makes the stored hashes match the stored arguments.
func rehash(s *scene, r *run.Run, args json.RawMessage) {
	p := proposed(r)
	p.Args = args
	p.ArgsHash = run.ArgsHash(r.UID, s.App.API.Loop.Tools[gmail.Name].Spec, p.Place, args)
	if i := slices.IndexFunc(r.Log.Tail, func(e run.Event) bool { return e.Decided != nil }); i >= 0 {
		r.Log.Tail[i].Decided.ArgsHash = p.ArgsHash
	}
}

// mail returns canonical arguments of the e-mail tool.
func mail(s *scene) json.RawMessage {
	args, err := s.App.API.Loop.Tools[gmail.Name].Normalize(json.RawMessage(other))
	proof.Must(err)
	return args
}

func ofKey(s *scene) string { return s.genuine(s.uid).Key }

// all returns every attack.
func all() []attack { return slices.Concat(attacks, places, withPasskeys) }

// attacks are the attacks on decisions, calls and standing permissions.
var attacks = []attack{
	{name: "a yes without a signature", write: func(s *scene) { yes(s, nil) }},
	{name: "a yes with an empty signature", write: func(s *scene) { yes(s, &decision.Signature{}) }},
	{name: "a yes signed with the attacker's key", write: func(s *scene) { yes(s, invented("mine")) }},
	{name: "a yes signed with the attacker's key under the server's name", begin: func(s *scene) {
		waits(s)
		s.sig = invented(ofKey(s))
	}, write: func(s *scene) { yes(s, s.sig) }},
	{name: "the signature of another yes of the user", begin: func(s *scene) {
		waits(s)
		s.sig = s.genuine(s.uid)
	}, write: func(s *scene) { yes(s, s.sig) }},
	{name: "the signature of another user's yes", begin: func(s *scene) {
		waits(s)
		s.sig = s.genuine(s.uid + "-other")
	}, write: func(s *scene) { yes(s, s.sig) }},
	{name: "the signature of an entry of the list", begin: func(s *scene) {
		always(s)
		u := run.User{}
		docs, err := s.App.Store.Get(s.ctx, document.UserPath(s.uid))
		proof.Must(err)
		proof.Must(document.Decode(docs[0], &u))
		s.sig = u.Allow[0].Proof
		s.asked = s.ask(s.uid, "carol@example.com", "another")
	}, write: func(s *scene) { yes(s, s.sig) }},
	{name: "a yes, and an intent of a process that died", write: func(s *scene) {
		s.run(func(r *run.Run) {
			addYes(s, r, nil)
			add(r, run.Event{Type: run.ActionStarted, ActionID: s.asked.Approvals[0].ActionID,
				Started: &run.Started{Owner: "dead", Attempt: 1}})
		})
		s.close()
	}},
	{name: "a forged yes, and an intent of a process that died", write: func(s *scene) {
		s.run(func(r *run.Run) {
			addYes(s, r, invented("mine"))
			add(r, run.Event{Type: run.ActionStarted, ActionID: s.asked.Approvals[0].ActionID,
				Started: &run.Started{Owner: "dead", Attempt: 1}})
		})
		s.close()
	}},
	{name: "an intent of a process that died, without a yes", write: func(s *scene) {
		s.run(func(r *run.Run) {
			add(r, run.Event{Type: run.ActionStarted, ActionID: s.asked.Approvals[0].ActionID,
				Started: &run.Started{Owner: "dead", Attempt: 1}})
		})
	}},
	{name: "a call that needs no approval", write: func(s *scene) {
		s.run(func(r *run.Run) {
			p := proposed(r)
			p.RequiresApproval, p.PolicyDecision, p.Rule = false, "allow", policy.RuleNotRequired
			asNew(r)
		})
	}},
	{name: "a call without an effect", write: func(s *scene) {
		s.run(func(r *run.Run) {
			p := proposed(r)
			p.RequiresApproval, p.SideEffect, p.PolicyDecision, p.Rule = false, false, "allow", policy.RuleReadOnly
			asNew(r)
		})
	}},
	{name: "a call that the user makes", write: func(s *scene) {
		s.run(func(r *run.Run) {
			p := proposed(r)
			p.RequiresApproval, p.UserInitiated = false, true
			asNew(r)
		})
	}},
	{name: "a call that the user makes, with the signature of a yes", begin: func(s *scene) {
		waits(s)
		s.sig = s.genuine(s.uid)
	}, write: func(s *scene) {
		s.run(func(r *run.Run) {
			p := proposed(r)
			p.RequiresApproval, p.UserInitiated, p.OwnProof = false, true, s.sig
			asNew(r)
		})
	}},
	{name: "a no that becomes a yes", begin: rejected, write: func(s *scene) {
		s.run(func(r *run.Run) {
			i := slices.IndexFunc(r.Log.Tail, func(e run.Event) bool { return e.Decided != nil })
			r.Log.Tail = r.Log.Tail[:i+1] // the rejection has ended the run
			r.Log.Count = int64(i + 1)
			decided(r).Decision = run.ApproveOnce
		})
		s.close()
	}},
	{name: "other arguments after the yes", begin: approved, write: func(s *scene) {
		args := mail(s)
		s.run(func(r *run.Run) { proposed(r).Args = args })
	}},
	{name: "other arguments after the yes, with their hash", begin: approved, write: func(s *scene) {
		args := mail(s)
		s.run(func(r *run.Run) { rehash(s, r, args) })
	}},
	{name: "an edit added to the yes", begin: approved, write: func(s *scene) {
		args := mail(s)
		s.run(func(r *run.Run) {
			rehash(s, r, args)
			d := decided(r)
			d.Decision, d.EditedArgs = run.ApproveEdited, args
		})
	}},
	{name: "the undo window removed", begin: held, write: func(s *scene) {
		s.run(func(r *run.Run) { decided(r).HeldUntil = time.Time{} })
	}},
	{name: "the undo window shortened", begin: held, write: func(s *scene) {
		s.run(func(r *run.Run) { decided(r).HeldUntil = time.Now().Add(-time.Second) })
	}},
	{name: "another agent after the yes", begin: approved, write: func(s *scene) {
		s.run(func(r *run.Run) { r.Agent = run.Page })
	}},
	{name: "another terminal after the yes", begin: approved, write: func(s *scene) {
		s.run(func(r *run.Run) { r.Terminal = "terminal-0000000000001" })
	}},
	{name: "another person as the one who said yes", begin: approved, write: func(s *scene) {
		s.run(func(r *run.Run) { decided(r).By = "someone" })
	}},
	{name: "another decision after the yes", begin: approved, write: func(s *scene) {
		s.run(func(r *run.Run) { decided(r).Decision = run.ApproveAlwaysCommand })
	}},
	{name: "the yes made to last longer", begin: approved, write: func(s *scene) {
		s.run(func(r *run.Run) {
			decided(r).Proof.Until = time.Now().Add(1000 * time.Hour)
			r.Deadline = time.Now().Add(1000 * time.Hour)
		})
	}},
	{name: "the yes made stronger", begin: approved, write: func(s *scene) {
		s.run(func(r *run.Run) { decided(r).Proof.Auth.Methods = "hwk" })
	}},
	{name: "the signature removed", begin: approved, write: func(s *scene) {
		s.run(func(r *run.Run) { decided(r).Proof = nil })
	}},
	{name: "an entry of the list without a signature", write: func(s *scene) {
		s.allow(nil)
		standing(s)
	}},
	{name: "an entry of the list with the attacker's signature", write: func(s *scene) {
		s.allow(invented("mine"))
		standing(s)
	}},
	{name: "an entry of the list before the call", write: func(s *scene) { s.allow(nil) }, then: again},
	{name: "an entry of another user", begin: func(s *scene) {
		mine := s.uid
		s.uid += "-other"
		always(s)
		u := run.User{}
		docs, err := s.App.Store.Get(s.ctx, document.UserPath(s.uid))
		proof.Must(err)
		proof.Must(document.Decode(docs[0], &u))
		s.sig = u.Allow[0].Proof
		s.uid = mine
		waits(s)
	}, write: func(s *scene) {
		s.allow(s.sig)
		standing(s)
	}},
	{name: "an entry made to last longer", begin: always, write: func(s *scene) {
		s.user(func(u *run.User) { u.Allow[0].ExpiresAt = u.Allow[0].ExpiresAt.Add(time.Hour) })
	}, then: again},
	{name: "an entry for another address", begin: func(s *scene) {
		s.asked = s.ask(s.uid, "carol@example.com", "hello")
		s.decide(s.uid, s.asked, "approve_and_always_allow_recipient", 0)
		s.settle(s.asked)
	}, write: func(s *scene) {
		s.user(func(u *run.User) {
			u.Allow[0].Recipient, u.Allow[0].ID = bob, policy.EntryID(s.uid, gmail.Name, bob)
		})
	}, then: again},
	{name: "a started call with the handle of another e-mail", begin: approved, write: func(s *scene) {
		s.started(`{"draft":"r-1","sha256":"` + strings.Repeat("0", 64) + `"}`)
	}},
	{name: "a started call with a handle that cannot be read", begin: approved, write: func(s *scene) {
		s.started("other")
	}},
	{name: "an entry removed", begin: always, write: func(s *scene) {
		s.user(func(u *run.User) { u.Allow = nil })
	}, then: again},
	{name: "the user's document removed", begin: always, write: func(s *scene) {
		s.remove(document.UserPath(s.uid))
	}, then: again},
	{name: "an entry for another account", begin: always, write: func(s *scene) {
		s.user(func(u *run.User) { u.Allow[0].Place.Name = strings.ToUpper(u.Allow[0].Place.Name) })
	}, then: again},
}
