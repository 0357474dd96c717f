package receipt

import (
	"bytes"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/countersign-run/countersign/shared/base/strictjson"
	"github.com/countersign-run/countersign/shared/store/audit"
)

// Verdict is the result of verifying a file.
type Verdict string

// The verdicts of [Verify].
const (
	True    Verdict = "true"    // one of the keys has signed exactly this
	Changed Verdict = "changed" // it is a receipt, but differs from the signed one
	False   Verdict = "false"   // it is not a receipt, or none of the keys has signed it
)

// MaxFile is the maximum size of a file that is verified, in bytes.
const MaxFile = 32 << 20

// Verify checks whether the file is a receipt that one of the keys has signed. It returns the verdict and a sentence
// that explains it. It needs no network. The file may end with one line feed. Any other difference, such as another
// spelling of the same JSON, counts as changed.
func Verify(data []byte, keys Keys) (Verdict, string) {
	data = bytes.TrimSuffix(data, []byte("\n"))
	var f File
	if len(data) > MaxFile || strictjson.Decode(data, &f) != nil {
		return False, "This is not a receipt: its JSON is not that of one."
	}
	parts := strings.Split(f.JWS, ".")
	if len(parts) != 3 {
		return False, "This is not a receipt: it has no signature (a compact JWS)."
	}
	var head header
	if decodePart(parts[0], &head) != nil || head.Algorithm != "EdDSA" || head.Type != mediaType {
		return False, "This is not a receipt: its signature is of another kind."
	}
	key, known := keys.find(head.KeyID)
	if !known {
		return False, "The receipt names a key that is not among the given keys."
	}
	signature, err := base64.RawURLEncoding.Strict().DecodeString(parts[2])
	if err != nil || !ed25519.Verify(key, []byte(parts[0]+"."+parts[1]), signature) {
		return Changed, "The signature does not match: the signature or the signed content was changed."
	}
	var said statement
	if err := decodePart(parts[1], &said); err != nil || said.SHA256 != sum(f.Receipt) {
		return Changed, "The receipt is not the one that was signed."
	}
	if again, err := strictjson.Canonical(data); err != nil || !bytes.Equal(again, data) {
		return Changed, "The content is the same, but the file's bytes differ from the issued file."
	}
	return consistent(f.Receipt, said)
}

// consistent checks a signed receipt against itself: its audit chain must be complete, and the hashes in the chain must
// match the executed calls.
func consistent(content json.RawMessage, said statement) (Verdict, string) {
	var r Receipt
	if json.Unmarshal(content, &r) != nil || r.RunID != said.RunID {
		return False, "The signature is valid, but the signed content is not a receipt of this run."
	}
	for _, f := range audit.VerifyAt(r.IssuedAt, r.Entries, r.Head) {
		return False, "The signature is valid, but the audit is incomplete: " + f.String() + "."
	}
	nonce, err := hex.DecodeString(r.Nonce)
	if err != nil {
		return False, "The signature is valid, but the nonce of the audit cannot be read."
	}
	for _, a := range r.Actions {
		if a.ActionView == nil || a.Record == nil || len(a.Entries) == 0 { // the user has not been asked yet
			continue
		}
		proves := func(e audit.Entry) bool {
			return e.ActionID == a.ActionID && e.InputHash == audit.InputHash(nonce, a.Record.ArgsHash)
		}
		if !slices.ContainsFunc(r.Entries, proves) {
			return False, fmt.Sprintf("The signature is valid, but no audit entry matches the input of %s.", a.Tool)
		}
	}
	return True, fmt.Sprintf("Unchanged since it was issued on %s for the run %s, with %d audit entries.",
		r.IssuedAt.UTC().Format("2006-01-02 15:04 UTC"), r.RunID, len(r.Entries))
}

// decodePart decodes a part of the JWS. Each part has only one valid spelling.
func decodePart(part string, into any) error {
	b, err := base64.RawURLEncoding.Strict().DecodeString(part)
	if err != nil {
		return err
	}
	return strictjson.Decode(b, into)
}
