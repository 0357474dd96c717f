package forge

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"

	"github.com/countersign-run/countersign/scripts/prove/proof"
	"github.com/countersign-run/countersign/shared/agent/passkey"
	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/store/document"
	"github.com/countersign-run/countersign/shared/testkit"
	"github.com/countersign-run/countersign/shared/testkit/authenticator"
)

// outside is an address to which an e-mail needs a passkey.
const outside = "carol@example.org"

// strong returns the settings in which e-mails to addresses outside example.com need a passkey.
func strong(dir string) ([]string, error) {
	dir = filepath.Join(dir, "rules")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	return testkit.Strong(dir, "calls: [{tool: gmail_send, recipientsOutside: [example.com]}]")
}

// enrol adds a passkey to those of a user.
func (s *scene) enrol(uid string) *authenticator.Key {
	key := testkit.NewKey()
	proof.Must(s.Enrol(s.ctx, uid, key))
	return key
}

// confirm approves the card with the passkey.
func (s *scene) confirm(uid string, r testkit.Answer, key *authenticator.Key) {
	a, err := s.Confirm(s.ctx, uid, r.Approvals[0], "approve_once", key)
	proof.Must(err)
	if a.HTTP != http.StatusOK {
		proof.Must(fmt.Errorf("the passkey was answered with %d: %s", a.HTTP, a.Body))
	}
}

// confirmed approves an e-mail that needs a passkey, which has not been sent yet.
func confirmed(s *scene) {
	key := s.enrol(s.uid)
	s.asked = s.ask(s.uid, outside, "hello")
	s.confirm(s.uid, s.asked, key)
}

// confirmedBefore is like confirmed, after another e-mail to the recipient was sent. The attacker has the assertion for
// that one.
func confirmedBefore(s *scene) {
	key := s.enrol(s.uid)
	s.asked = s.ask(s.uid, outside, "earlier")
	s.confirm(s.uid, s.asked, key)
	s.settle(s.asked)
	docs, err := s.App.Store.Get(s.ctx, document.RunPath(s.asked.RunID))
	proof.Must(err)
	var r run.Run
	proof.Must(document.Decode(docs[0], &r))
	s.assertion = decided(&r).Passkey
	s.asked = s.ask(s.uid, outside, "hello")
	s.confirm(s.uid, s.asked, key)
}

// confirmedBesideOther is like confirmed, with another user who has a passkey.
func confirmedBesideOther(s *scene) {
	s.enrol(s.uid + "-other")
	confirmed(s)
}

// set changes the documents of the user's passkeys.
func (s *scene) set(how func(*passkey.Set)) { change(s, document.PasskeysPath(s.uid), how) }

// others returns the passkeys of the other user.
func (s *scene) others() (all []passkey.Credential) {
	change(s, document.PasskeysPath(s.uid+"-other"), func(set *passkey.Set) { all = slices.Clone(set.Passkeys) })
	return all
}

// withPasskeys are the attacks on the passkeys of a user.
var withPasskeys = []attack{
	{name: "the passkey's confirmation removed", begin: confirmed, write: func(s *scene) {
		s.run(func(r *run.Run) { decided(r).Passkey = nil })
	}},
	{name: "the confirmation of another card", begin: confirmedBefore, write: func(s *scene) {
		s.run(func(r *run.Run) { decided(r).Passkey = s.assertion })
	}},
	{name: "the user not verified by the authenticator", begin: confirmed, write: func(s *scene) {
		s.run(func(r *run.Run) { decided(r).Passkey.AuthData[32] &^= 4 })
	}},
	{name: "another counter in the confirmation", begin: confirmed, write: func(s *scene) {
		s.run(func(r *run.Run) { decided(r).Passkey.AuthData[36]++ })
	}},
	{name: "another counter before the decision", begin: confirmed, write: func(s *scene) {
		s.run(func(r *run.Run) { decided(r).Proof.Auth.Counter++ })
	}},
	{name: "other arguments after the passkey", begin: confirmed, write: func(s *scene) {
		args := mail(s)
		s.run(func(r *run.Run) { rehash(s, r, args) })
	}},
	{name: "the passkey removed", begin: confirmed, write: func(s *scene) {
		s.set(func(set *passkey.Set) { set.Passkeys = nil })
	}},
	{name: "the document of the passkeys removed", begin: confirmed, write: func(s *scene) {
		s.remove(document.PasskeysPath(s.uid))
	}},
	{name: "the enrolment's signature removed", begin: confirmed, write: func(s *scene) {
		s.set(func(set *passkey.Set) { set.Passkeys[0].Proof = nil })
	}},
	{name: "the public key of another user's passkey", begin: confirmedBesideOther, write: func(s *scene) {
		other := s.others()[0]
		s.set(func(set *passkey.Set) { set.Passkeys[0].PublicKey = other.PublicKey })
	}},
	{name: "the passkey of another user in place of it", begin: confirmedBesideOther, write: func(s *scene) {
		other := s.others()[0]
		s.set(func(set *passkey.Set) {
			other.ID = set.Passkeys[0].ID
			set.Passkeys[0] = other
		})
	}},
	{name: "a yes without a passkey where one is needed", begin: func(s *scene) {
		s.enrol(s.uid)
		s.asked = s.ask(s.uid, outside, "hello")
		s.sig = s.genuine(s.uid)
	}, write: func(s *scene) { yes(s, s.sig) }},
}
