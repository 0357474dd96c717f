package passkey_test

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-webauthn/webauthn/protocol"

	"github.com/countersign-run/countersign/shared/agent/decision"
	"github.com/countersign-run/countersign/shared/agent/passkey"
	"github.com/countersign-run/countersign/shared/agent/passkey/enrol"
	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/address"
	"github.com/countersign-run/countersign/shared/testkit/authenticator"
)

var (
	now  = time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)
	site = passkey.Site{ID: "example.com", Origin: "https://agent.example.com"}
	card = decision.Statement{Kind: decision.Call, UID: "ann", RunID: "r", ApprovalID: "a", Decision: "approve_once",
		Tool: "send_email", ArgsHash: "h"}
)

// world is a deployment with one user.
type world struct {
	strong *passkey.Strong
	ring   *decision.Ring // of decisions
	set    passkey.Set
	key    *authenticator.Key
}

func ring(t testing.TB, seed string) *decision.Ring {
	t.Helper()
	k, err := decision.NewKey(bytes.Repeat([]byte(seed), 32))
	if err != nil {
		t.Fatal(err)
	}
	return k.Ring("here")
}

func start(t testing.TB, key *authenticator.Key) *world {
	t.Helper()
	w := &world{ring: ring(t, "d"), key: key, strong: &passkey.Strong{Site: site,
		Keys: ring(t, "e").For(passkey.EnrolmentDomain)}}
	w.enrol(t, "ann", key)
	return w
}

// enrol creates the user's passkey through go-webauthn, and signs it.
func (w *world) enrol(t testing.TB, uid string, key *authenticator.Key) {
	t.Helper()
	challenge := []byte("challenge of the enrolment")
	c, err := enrol.Check(key.Create(passkey.Encode(challenge)), challenge, site, now)
	if err != nil {
		t.Fatal(err)
	}
	proofs, err := w.strong.Keys.Sign(t.Context(), decision.Signature{At: now}, c.Statement(uid))
	if err != nil {
		t.Fatal(err)
	}
	c.Proof = proofs[0]
	w.set.Passkeys = append(w.set.Passkeys, c)
}

func keys() map[string]*authenticator.Key {
	return map[string]*authenticator.Key{"P-256": authenticator.New(site.Origin, site.ID),
		"Ed25519": authenticator.NewEd25519(site.Origin, site.ID)}
}

// decide confirms the statements with the user's key, as resolve does. It returns the assertion to store and the facts
// that the decision's signature states.
func (w *world) decide(t testing.TB, statements ...decision.Statement) (*passkey.Assertion, decision.Auth, error) {
	t.Helper()
	challenge, hashes, err := passkey.Challenge(w.ring, statements...)
	if err != nil {
		t.Fatal(err)
	}
	a, err := passkey.Parse(w.key.Get(passkey.Encode(challenge)))
	if err != nil {
		t.Fatal(err)
	}
	if len(hashes) > 1 {
		a.Batch = hashes
	}
	before, err := w.strong.Accept(&w.set, "ann", a, challenge, now)
	return a, decision.Auth{Passkey: a.ID, Counter: before}, err
}

func TestConfirmedDecision(t *testing.T) {
	entry := decision.Statement{Kind: decision.Entry, UID: "ann", Tool: "send_email", Covers: "bob@example.com"}
	for name, key := range keys() {
		w := start(t, key)
		for i := range 3 {
			a, auth, err := w.decide(t, card, entry)
			if err != nil {
				t.Fatalf("%s, decision %d: %v", name, i, err)
			}
			late := card
			late.HeldUntil, late.Until = now.Add(time.Minute), now.Add(time.Hour)
			for _, s := range []decision.Statement{card, entry, late} {
				if err := w.strong.CheckStored(&w.set, s, a, auth, w.ring); err != nil {
					t.Errorf("%s: %s: %v", name, s.Kind, err)
				}
			}
		}
	}
}

// TestRefusedAssertions checks each way in which an assertion fails when a decision arrives.
func TestRefusedAssertions(t *testing.T) {
	for name, change := range map[string]func(*world){
		"another origin":      func(w *world) { w.key.Origin = "https://evil.example" },
		"a page below":        func(w *world) { w.key.Origin = site.Origin + ".evil.example" },
		"another site":        func(w *world) { w.key.Site = "evil.example" },
		"no verification":     func(w *world) { w.key.Unverified = true },
		"a counter at rest":   func(w *world) { w.key.Frozen = true },
		"a counter behind":    func(w *world) { w.key.Counter = 0 },
		"no counter any more": func(w *world) { w.key.Counter, w.key.Frozen = 0, true },
		"no enrolment":        func(w *world) { w.set.Passkeys[0].Proof = nil },
		"of another user": func(w *world) {
			w.set.Passkeys = nil
			w.enrol(t, "bob", w.key)
		},
		"another key": func(w *world) {
			other := start(t, authenticator.New(site.Origin, site.ID))
			w.set.Passkeys[0].PublicKey = other.set.Passkeys[0].PublicKey
		},
		"a lower counter at the enrolment": func(w *world) { w.set.Passkeys[0].Enrolled = 1 },
	} {
		for kind, key := range keys() {
			w := start(t, key)
			if _, _, err := w.decide(t, card); err != nil {
				t.Fatal(err)
			}
			change(w)
			if _, _, err := w.decide(t, card); !errors.Is(err, passkey.ErrWrong) {
				t.Errorf("%s, %s: %v, want ErrWrong", name, kind, err)
			}
		}
	}
	w := start(t, authenticator.New(site.Origin, site.ID))
	w.set.Passkeys = nil
	if _, _, err := w.decide(t, card); !errors.Is(err, passkey.ErrMissing) {
		t.Errorf("a removed passkey: %v, want ErrMissing", err)
	}
}

// TestStoredAssertions changes a stored assertion of a genuine decision, or the call that is about to run.
func TestStoredAssertions(t *testing.T) {
	type stored struct {
		w    *world
		s    decision.Statement
		a    *passkey.Assertion
		auth decision.Auth
	}
	for name, c := range map[string]struct {
		change func(*stored)
		want   error
	}{
		"no assertion":      {func(s *stored) { s.a = nil }, passkey.ErrMissing},
		"a removed passkey": {func(s *stored) { s.w.set.Passkeys = nil }, passkey.ErrMissing},
		"other arguments":   {func(s *stored) { s.s.ArgsHash = "other" }, passkey.ErrWrong},
		"another decision":  {func(s *stored) { s.s.Decision = "approve_with_edits" }, passkey.ErrWrong},
		"another user":      {func(s *stored) { s.s.UID = "bob" }, passkey.ErrWrong},
		"another card":      {func(s *stored) { s.s.ApprovalID = "b" }, passkey.ErrWrong},
		"unverified":        {func(s *stored) { s.a.AuthData[32] &^= 4 }, passkey.ErrWrong},
		"a later counter":   {func(s *stored) { s.a.AuthData[36]++ }, passkey.ErrWrong},
		"another page": {func(s *stored) {
			s.a.ClientData = replace(s.a.ClientData, "agent.", "eve.")
		}, passkey.ErrWrong},
		"another signature":  {func(s *stored) { s.a.Sig[len(s.a.Sig)-1]++ }, passkey.ErrWrong},
		"short data":         {func(s *stored) { s.a.AuthData = s.a.AuthData[:36] }, passkey.ErrWrong},
		"a clone's counter":  {func(s *stored) { s.auth.Counter = s.a.Count() }, passkey.ErrWrong},
		"unnamed by the yes": {func(s *stored) { s.auth = decision.Auth{} }, passkey.ErrWrong},
		"a list of hashes":   {func(s *stored) { s.a.Batch = [][]byte{make([]byte, 32)} }, passkey.ErrWrong},
		"a long list": {func(s *stored) {
			s.a.Batch = slices.Repeat([][]byte{make([]byte, 32)}, 1001)
		}, passkey.ErrWrong},
		"another deployment": {func(s *stored) { s.w.ring = elsewhere(t) }, passkey.ErrWrong},
		"written by hand": {func(s *stored) {
			s.w.set.Passkeys[0].Proof = nil
		}, passkey.ErrWrong},
		"signed by the key of decisions": {func(s *stored) {
			proofs, err := s.w.ring.Sign(t.Context(), decision.Signature{At: now},
				s.w.set.Passkeys[0].Statement("ann"))
			if err != nil {
				t.Fatal(err)
			}
			s.w.set.Passkeys[0].Proof = proofs[0]
		}, passkey.ErrWrong},
		"of another site": {func(s *stored) { s.w.strong.Site.ID = "other.example" }, passkey.ErrWrong},
		"no keys":         {func(s *stored) { s.w.strong.Keys = nil }, passkey.ErrWrong},
	} {
		w := start(t, authenticator.New(site.Origin, site.ID))
		a, auth, err := w.decide(t, card)
		if err != nil {
			t.Fatal(err)
		}
		s := &stored{w, card, a, auth}
		c.change(s)
		if err := w.strong.CheckStored(&w.set, s.s, s.a, s.auth, s.w.ring); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
}

// elsewhere returns the ring of another deployment with the same key.
func elsewhere(t testing.TB) *decision.Ring {
	t.Helper()
	k, err := decision.NewKey(bytes.Repeat([]byte("d"), 32))
	if err != nil {
		t.Fatal(err)
	}
	return k.Ring("elsewhere")
}

func replace(b []byte, old, by string) []byte { return bytes.Replace(b, []byte(old), []byte(by), 1) }

// TestSameVerdictAsLibrary gives assertions to go-webauthn too.
func TestSameVerdictAsLibrary(t *testing.T) {
	for name, change := range map[string]func(*authenticator.Key){
		"right":           func(*authenticator.Key) {},
		"another origin":  func(k *authenticator.Key) { k.Origin = "https://evil.example" },
		"another site":    func(k *authenticator.Key) { k.Site = "evil.example" },
		"no verification": func(k *authenticator.Key) { k.Unverified = true },
	} {
		for kind, key := range keys() {
			challenge, cose := []byte("a challenge"), []byte(nil)
			created := key.Create(passkey.Encode(challenge))
			parsed, err := protocol.ParseCredentialCreationResponseBytes(created)
			if err != nil {
				t.Fatal(err)
			}
			cose = parsed.Response.AttestationObject.AuthData.AttData.CredentialPublicKey
			c, err := enrol.Check(created, challenge, site, now)
			if err != nil {
				t.Fatal(err)
			}
			change(key)
			answer := key.Get(passkey.Encode(challenge))
			a, err := passkey.Parse(answer)
			if err != nil {
				t.Fatal(err)
			}
			parsedByLibrary, err := protocol.ParseCredentialRequestResponseBytes(answer)
			if err != nil {
				t.Fatal(err)
			}
			want := parsedByLibrary.Verify(passkey.Encode(challenge), site.ID, "", []string{site.Origin}, nil, nil,
				protocol.TopOriginExplicitVerificationMode, false, true, true, cose, protocol.SignaturePolicy{})
			if got := c.Check(a, challenge, 0, site); (got == nil) != (want == nil) {
				t.Errorf("%s, %s: %v; go-webauthn: %v", name, kind, got, want)
			}
		}
	}
}

func TestRefusedEnrolments(t *testing.T) {
	challenge := []byte("challenge of the enrolment")
	for name, change := range map[string]func(*authenticator.Key){
		"another origin":  func(k *authenticator.Key) { k.Origin = "https://evil.example" },
		"another site":    func(k *authenticator.Key) { k.Site = "evil.example" },
		"no verification": func(k *authenticator.Key) { k.Unverified = true },
	} {
		for kind, key := range keys() {
			change(key)
			if _, err := enrol.Check(key.Create(passkey.Encode(challenge)), challenge, site, now); err == nil {
				t.Errorf("%s, %s: accepted", name, kind)
			}
		}
	}
	key := authenticator.New(site.Origin, site.ID)
	for name, answer := range map[string][]byte{"another challenge": key.Create(passkey.Encode([]byte("other"))),
		"an assertion": key.Get(passkey.Encode(challenge)), "nothing": nil, "no object": []byte("[]")} {
		if _, err := enrol.Check(answer, challenge, site, now); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

func TestOptionsOfEnrolment(t *testing.T) {
	b, err := json.Marshal(enrol.Options(site, enrol.User{UID: "ann", Name: "ann@example.com"}, []byte("challenge"),
		[]passkey.Credential{{ID: "AAAA"}}))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"id":"example.com"`, `"userVerification":"required"`, `"residentKey":"preferred"`,
		`"excludeCredentials":[{"type":"public-key","id":"AAAA"}]`, `"attestation":"none"`, `"alg":-7`} {
		if !strings.Contains(string(b), want) {
			t.Errorf("%s lacks %s", b, want)
		}
	}
}

func TestParsedAnswers(t *testing.T) {
	const good = `{"id":"AAAA","type":"public-key","response":{"authenticatorData":"AAAA","clientDataJSON":"AAAA",` +
		`"signature":"AAAA"}}`
	if _, err := passkey.Parse([]byte(good)); err != nil {
		t.Error(err)
	}
	for name, text := range map[string]string{
		"nothing": "", "null": "null", "a list": "[]", "no ID": strings.Replace(good, `"id":"AAAA",`, "", 1),
		"padding":      strings.Replace(good, `"id":"AAAA"`, `"id":"AA=="`, 1),
		"spare bits":   strings.Replace(good, `"id":"AAAA"`, `"id":"AB"`, 1),
		"another type": strings.Replace(good, "public-key", "password", 1),
		"no signature": strings.Replace(good, `"signature":"AAAA"`, `"signature":""`, 1),
		"long data":    strings.Replace(good, `"signature":"AAAA"`, `"signature":"`+strings.Repeat("A", 6000)+`"`, 1),
		"long answer":  strings.Replace(good, `{"id"`, `{"x":"`+strings.Repeat("A", 20000)+`","id"`, 1),
	} {
		if _, err := passkey.Parse([]byte(text)); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

func TestRules(t *testing.T) {
	own, err := address.ParsePatterns("example.com")
	if err != nil {
		t.Fatal(err)
	}
	call := func(args string, to ...string) passkey.Call {
		return passkey.Call{Tool: "pay", Class: tool.ClassChange, Targets: tool.Addresses(to),
			Args: json.RawMessage(args)}
	}
	sum := func(above float64) passkey.Rule {
		return passkey.Rule{Tool: "pay", Amount: &passkey.Amount{At: "/sum/0/value", Above: above}}
	}
	for _, c := range []struct {
		name string
		rule passkey.Rule
		call passkey.Call
		want bool
	}{
		{"every call", passkey.Rule{}, call(`{}`), true},
		{"the tool", passkey.Rule{Tool: "pay"}, call(`{}`), true},
		{"another tool", passkey.Rule{Tool: "send"}, call(`{}`), false},
		{"another class", passkey.Rule{Tool: "pay", Class: tool.ClassOpaque}, call(`{}`), false},
		{"own domain", passkey.Rule{Outside: own}, call(`{}`, "bob@example.com"), false},
		{"no recipient", passkey.Rule{Outside: own}, call(`{}`), false},
		{"a recipient outside", passkey.Rule{Outside: own}, call(`{}`, "bob@example.com", "eve@evil.com"), true},
		{"at the limit", sum(100), call(`{"sum":[{"value":100}]}`), false},
		{"above the limit", sum(100), call(`{"sum":[{"value":100.01}]}`), true},
		{"a negative number", sum(100), call(`{"sum":[{"value":-500}]}`), true},
		{"a text", sum(100), call(`{"sum":[{"value":"99.5"}]}`), false},
		{"a large text", sum(100), call(`{"sum":[{"value":"1e999999999"}]}`), true},
		{"another text", sum(100), call(`{"sum":[{"value":"100 EUR"}]}`), true},
		{"no number", sum(100), call(`{"sum":[{"value":"NaN"}]}`), true},
		{"a missing number", sum(100), call(`{"sum":[]}`), true},
		{"a missing field", sum(100), call(`{}`), true},
		{"null", sum(100), call(`{"sum":[{"value":null}]}`), true},
	} {
		if got := (passkey.Rules{Calls: []passkey.Rule{c.rule}}).Need(c.call); got != c.want {
			t.Errorf("%s: %t, want %t", c.name, got, c.want)
		}
	}
}

func TestOneTimeCode(t *testing.T) {
	w := start(t, authenticator.New(site.Origin, site.ID))
	code, text, err := passkey.NewCode(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	until := now.Add(passkey.CodeLife)
	proofs, err := w.strong.Keys.Sign(t.Context(), decision.Signature{At: now}, code.Statement("ann", until))
	if err != nil {
		t.Fatal(err)
	}
	if w.strong.Accepts(&code, "ann", text, now) {
		t.Error("a code without a signature is accepted")
	}
	code.Proof = proofs[0]
	for _, typed := range []string{text, strings.ToLower(text), strings.ReplaceAll(text, "-", " ")} {
		if !w.strong.Accepts(&code, "ann", typed, now) {
			t.Errorf("%q of %q is refused", typed, text)
		}
	}
	tried := code
	tried.Tries = passkey.MaxTries
	for name, accepted := range map[string]bool{"another user": w.strong.Accepts(&code, "bob", text, now),
		"after its end":  w.strong.Accepts(&code, "ann", text, until),
		"too many tries": w.strong.Accepts(&tried, "ann", text, now),
		"another text":   w.strong.Accepts(&code, "ann", "AAAA-AAAA-AAAA-AAAA", now),
		"no text":        w.strong.Accepts(&code, "ann", "", now),
		"no code":        w.strong.Accepts(nil, "ann", text, now)} {
		if accepted {
			t.Errorf("%s: accepted", name)
		}
	}
}

// FuzzCheckedAssertion changes one byte of a genuine assertion. No change counts.
func FuzzCheckedAssertion(f *testing.F) {
	w := start(f, authenticator.New(site.Origin, site.ID))
	a, auth, err := w.decide(f, card)
	if err != nil {
		f.Fatal(err)
	}
	for _, n := range []int{0, 32, 36, 40, 100, 200} {
		f.Add(n, byte(1))
	}
	f.Fuzz(func(t *testing.T, n int, by byte) {
		c := *a
		c.AuthData, c.ClientData, c.Sig = bytes.Clone(a.AuthData), bytes.Clone(a.ClientData), bytes.Clone(a.Sig)
		n = int(uint(n) % uint(len(a.AuthData)+len(a.ClientData)+len(a.Sig)))
		for _, part := range [][]byte{c.AuthData, c.ClientData, c.Sig} {
			if n < len(part) {
				part[n] ^= by
				break
			}
			n -= len(part)
		}
		if err := w.strong.CheckStored(&w.set, card, &c, auth, w.ring); (err == nil) != (by == 0) {
			t.Errorf("byte %d changed by %d: %v", n, by, err)
		}
	})
}

// BenchmarkCheckStored measures what the check of a passkey adds to the start of a call that needs one.
func BenchmarkCheckStored(b *testing.B) {
	w := start(b, authenticator.New(site.Origin, site.ID))
	a, auth, err := w.decide(b, card)
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if err := w.strong.CheckStored(&w.set, card, a, auth, w.ring); err != nil {
			b.Fatal(err)
		}
	}
}
