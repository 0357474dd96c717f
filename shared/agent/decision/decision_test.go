package decision_test

import (
	"bytes"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/countersign-run/countersign/shared/agent/decision"
	"github.com/countersign-run/countersign/shared/agent/tool"
)

var now = time.Date(2026, 11, 29, 12, 0, 0, 123456789, time.UTC)

func key(t testing.TB, seed string) decision.Key {
	t.Helper()
	k, err := decision.NewKey([]byte(strings.Repeat(seed, 32)))
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func yes() decision.Statement {
	return decision.Statement{Kind: decision.Call, UID: "ann", RunID: "r", Agent: "assistant", Terminal: "t",
		Origin: "https://a.example", ApprovalID: "r-1", ActionID: "a", By: "ann", Decision: "approve_once",
		Tool: "send", ArgsHash: "h", Edited: true, Place: tool.Place{Label: "From", Name: "n", ID: "i"},
		HeldUntil: now.Add(time.Minute), Until: now.Add(time.Hour), Covers: map[string]int{"calls": 1},
		RestsOn: []tool.Precondition{{Name: "State", Value: "open"}}}
}

func facts() decision.Signature {
	return decision.Signature{At: now, Auth: decision.Auth{Issuer: "https://issuer.example", At: now.Add(-time.Hour),
		Methods: "pwd otp"}}
}

// stored returns the signature as the store returns it.
func stored(t testing.TB, sig *decision.Signature) *decision.Signature {
	t.Helper()
	b, err := json.Marshal(sig)
	if err != nil {
		t.Fatal(err)
	}
	var back decision.Signature
	if err := json.Unmarshal(b, &back); err != nil {
		t.Fatal(err)
	}
	return &back
}

// TestSignatureCoversEachField changes each field of a statement and of its signature. None may be changed without
// notice.
func TestSignatureCoversEachField(t *testing.T) {
	ring := key(t, "k").Ring("here")
	sigs, err := ring.Sign(t.Context(), facts(), yes())
	if err != nil {
		t.Fatal(err)
	}
	sig := stored(t, sigs[0])
	if err := ring.Verify(yes(), sig, now); err != nil {
		t.Fatal(err)
	}
	for i := range reflect.TypeFor[decision.Statement]().NumField() {
		s := yes()
		name := reflect.TypeOf(s).Field(i).Name
		if name == "Until" { // the signature has it
			continue
		}
		changed := reflect.ValueOf(&s).Elem().Field(i)
		changed.SetZero()
		if err := ring.Verify(s, sig, now); !errors.Is(err, decision.ErrForged) {
			t.Errorf("without %s: %v", name, err)
		}
	}
	for name, change := range map[string]func(s *decision.Signature){
		"key":    func(s *decision.Signature) { s.Key = "k" },
		"at":     func(s *decision.Signature) { s.At = s.At.Add(time.Nanosecond) },
		"until":  func(s *decision.Signature) { s.Until = s.Until.Add(time.Hour) },
		"ever":   func(s *decision.Signature) { s.Until = time.Time{} },
		"issuer": func(s *decision.Signature) { s.Auth.Issuer += "x" },
		"signed": func(s *decision.Signature) { s.Auth.At = now },
		"amr":    func(s *decision.Signature) { s.Auth.Methods = "hwk" },
		"sig":    func(s *decision.Signature) { s.Sig[0] ^= 1 },
		"no sig": func(s *decision.Signature) { s.Sig = nil },
		"batch":  func(s *decision.Signature) { s.Batch = [][]byte{make([]byte, 32)} },
	} {
		other := stored(t, sig)
		change(other)
		if err := ring.Verify(yes(), other, now); !errors.Is(err, decision.ErrForged) {
			t.Errorf("%s: %v; want error “%v”", name, err, decision.ErrForged)
		}
	}
}

func TestSignatureKeys(t *testing.T) {
	old, present := key(t, "o"), key(t, "p")
	both := map[string]ed25519.PublicKey{decision.KeyID(old.Public()): old.Public(),
		decision.KeyID(present.Public()): present.Public()}
	sigs, err := old.Ring("here").Sign(t.Context(), facts(), yes())
	if err != nil {
		t.Fatal(err)
	}
	renamed := stored(t, sigs[0])
	renamed.Key = decision.KeyID(present.Public())
	for name, c := range map[string]struct {
		ring *decision.Ring
		sig  *decision.Signature
		at   time.Time
		want error
	}{
		"none is asked for":    {nil, nil, now, nil},
		"an earlier key":       {decision.NewRing("here", both, nil), sigs[0], now, nil},
		"another key":          {present.Ring("here"), sigs[0], now, decision.ErrForged},
		"another key's name":   {decision.NewRing("here", both, nil), renamed, now, decision.ErrForged},
		"another deployment":   {old.Ring("there"), sigs[0], now, decision.ErrForged},
		"nothing":              {old.Ring("here"), nil, now, decision.ErrUnsigned},
		"empty":                {old.Ring("here"), &decision.Signature{}, now, decision.ErrForged},
		"nothing is required":  {old.Ring("here").Lenient(), nil, now, nil},
		"empty, not required":  {old.Ring("here").Lenient(), &decision.Signature{}, now, decision.ErrForged},
		"forged, not required": {present.Ring("here").Lenient(), sigs[0], now, decision.ErrForged},
		"the last moment":      {old.Ring("here"), sigs[0], now.Add(time.Hour - 1), nil},
		"after the last hour":  {old.Ring("here"), sigs[0], now.Add(time.Hour), decision.ErrOver},
	} {
		if err := c.ring.Verify(yes(), c.sig, c.at); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
	if sigs, err := present.Ring("here").With(old).Sign(t.Context(), facts(), yes()); err == nil {
		t.Errorf("a key signs that no process knows: %v", sigs)
	}
	checks := decision.NewRing("here", both, nil)
	if sigs, err := checks.Sign(t.Context(), facts(), yes()); err != nil || sigs[0] != nil {
		t.Errorf("without a signer: %v, %v", sigs, err)
	}
}

// TestParseKeys reads keys in both forms.
func TestParseKeys(t *testing.T) {
	old, present := key(t, "o"), key(t, "p")
	var lines, blocks []string
	for _, k := range []decision.Key{old, present} {
		line, err := decision.FormatKey(k.Public())
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, line)
		blocks = append(blocks, "-----BEGIN PUBLIC KEY-----\n"+line+"\n-----END PUBLIC KEY-----\n")
	}
	for name, text := range map[string]string{"base64": strings.Join(lines, ","), "with spaces": " " + lines[0] + ", " +
		lines[1] + "\n", "PEM": strings.Join(blocks, ""), "PEM with blank lines": strings.Join(blocks, "\n\n")} {
		keys, err := decision.ParseKeys(text)
		if err != nil || len(keys) != 2 || !keys[decision.KeyID(old.Public())].Equal(old.Public()) ||
			!keys[decision.KeyID(present.Public())].Equal(present.Public()) {
			t.Errorf("%s: %v %v", name, keys, err)
		}
	}
	rsa := "MFwwDQYJKoZIhvcNAQEBBQADSwAwSAJBAKj34GkxFhD90vcNLYLInFEX6Ppy1tPf9Cnzj4p4WGeKLs1Pt8QuKUpRKfFLfRYC9AIKjbJT" +
		"Wit+CqvjWYzvQwECAwEAAQ=="
	for name, text := range map[string]string{"nothing": "", "a comma": lines[0] + ",", "raw": "AAAA",
		"half a PEM": blocks[0][:60], "another algorithm": rsa, "a PEM and a word": blocks[0] + "word",
		"a private key": strings.ReplaceAll(blocks[0], "PUBLIC", "PRIVATE")} {
		if keys, err := decision.ParseKeys(text); err == nil {
			t.Errorf("%s is read as %v", name, keys)
		}
	}
}

// TestSignatureForSeveral checks that a signature counts for each of its statements, and for no other.
func TestSignatureForSeveral(t *testing.T) {
	ring := key(t, "k").Ring("here")
	entry := decision.Statement{Kind: decision.Entry, UID: "ann", Tool: "send", Covers: "ann@example.com",
		Until: now.Add(90 * 24 * time.Hour)}
	sigs, err := ring.Sign(t.Context(), facts(), yes(), entry)
	if err != nil || !bytes.Equal(sigs[0].Sig, sigs[1].Sig) {
		t.Fatalf("%v %v", sigs, err)
	}
	later := now.Add(2 * time.Hour)
	if err := ring.Verify(entry, stored(t, sigs[1]), later); err != nil {
		t.Error(err)
	}
	if err := ring.Verify(yes(), stored(t, sigs[0]), later); !errors.Is(err, decision.ErrOver) {
		t.Errorf("the call's time is over: %v", err)
	}
	other := entry
	other.Covers = "eve@example.com"
	if err := ring.Verify(other, sigs[1], now); !errors.Is(err, decision.ErrForged) {
		t.Error(err)
	}
	if err := ring.Verify(yes(), sigs[1], now); !errors.Is(err, decision.ErrForged) {
		t.Errorf("the entry's time does not count for the call: %v", err)
	}
	joined := stored(t, sigs[1])
	joined.Batch = [][]byte{bytes.Join(joined.Batch, nil)}
	if err := ring.Verify(entry, joined, now); !errors.Is(err, decision.ErrForged) {
		t.Error(err)
	}
	if _, err := ring.Sign(t.Context(), facts()); err == nil {
		t.Error("nothing is signed")
	}
}

func TestLocalKeyKept(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	ids := make([]string, 4)
	var wg sync.WaitGroup
	for n := range ids {
		wg.Go(func() {
			k, err := decision.Local(dir, decision.File)
			if err != nil {
				t.Error(err)
				return
			}
			ids[n], _ = k.ID(t.Context())
		})
	}
	wg.Wait()
	for _, id := range ids {
		if id == "" || id != ids[0] {
			t.Errorf("several processes have several keys: %v", ids)
		}
	}
	path := filepath.Join(dir, decision.File)
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v; want info.Mode().Perm() 0o600", info, err)
	}
	if err := os.WriteFile(path, []byte("CANARY"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := decision.Local(dir, decision.File); err == nil || strings.Contains(err.Error(), "CANARY") {
		t.Errorf("a damaged key: %v", err)
	}
}

// BenchmarkVerify measures what the check adds to the start of an approved call.
func BenchmarkVerify(b *testing.B) {
	ring := key(b, "k").Ring("here")
	sigs, err := ring.Sign(b.Context(), facts(), yes())
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if err := ring.Verify(yes(), sigs[0], now); err != nil {
			b.Fatal(err)
		}
	}
}
