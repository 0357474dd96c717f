package policy

import (
	"crypto/sha256"
	"encoding/hex"
	"time"

	"github.com/countersign-run/countersign/shared/agent/decision"
	"github.com/countersign-run/countersign/shared/agent/passkey"
	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/fault"
)

// EntryLife is the lifetime of an always-allow entry. A permission that its user has forgotten should end (reliability
// §4).
const EntryLife = 90 * 24 * time.Hour

// Entry is one always-allow entry of a user. It allows one tool to reach one exact address from one account, or one
// exact call on one account or host.
type Entry struct {
	ID   string `json:"id"` // EntryID or callID; binds the entry to its user
	Tool string `json:"tool"`
	// Recipient is normalised (address.Normalize). It is never a domain or a pattern. It is empty if Call is set.
	Recipient string `json:"recipient"`
	Call      string `json:"call,omitempty"`  // SHA-256 of tool.Always.Key, in hexadecimal
	Shown     string `json:"shown,omitempty"` // tool.Always.Shown
	// Place is the account from which Recipient can be reached. It is empty if the tool has no account. It is also
	// empty in entries of earlier releases, which allow nothing from an account.
	Place     tool.Place `json:"place,omitzero"`
	CreatedAt time.Time  `json:"createdAt"`
	ExpiresAt time.Time  `json:"expiresAt"` // at most EntryLife after CreatedAt; the entry does not apply from then on
	Day       string     `json:"day,omitempty"`
	Used      int        `json:"used,omitempty"` // number of effects that it allowed on Day (UTC)

	// During the undo window of an approval, the user can revoke it with its entries. Until From, the entry does not
	// apply, and the one that it replaced still does. The user can also withdraw the entry later (run.User.Withdraw).
	From     time.Time `json:"from,omitzero"`
	Approval string    `json:"approval,omitempty"` // ID of the approval that created the entry
	Replaced *Entry    `json:"replaced,omitempty"` // the entry that applied before that approval

	// Proof is the signature of what the entry covers, if decisions are signed.
	Proof *decision.Signature `json:"proof,omitempty"`
	// Passkey is the confirmation with a passkey, if the approval that created the entry needed one.
	Passkey *passkey.Assertion `json:"passkey,omitempty"`
}

// Statement returns what the user decided about: all of the entry except its use counts and the entry that it replaced.
func (e Entry) Statement(uid string) decision.Statement {
	s := decision.Statement{Kind: decision.Entry, UID: uid, Tool: e.Tool, ApprovalID: e.Approval, Place: e.Place,
		Until: e.ExpiresAt}
	e.Day, e.Used, e.Replaced, e.Proof, e.Passkey = "", 0, nil, nil, nil
	e.CreatedAt, e.ExpiresAt, e.From = e.CreatedAt.UTC(), e.ExpiresAt.UTC(), e.From.UTC()
	s.Covers = e
	return s
}

// Card returns what a passkey confirms: the statement without the entry's times, which are not known before the
// decision.
func (e Entry) Card(uid string) decision.Statement {
	e.CreatedAt, e.ExpiresAt, e.From = time.Time{}, time.Time{}, time.Time{}
	return e.Statement(uid)
}

// Counting returns the entry that applies at now: e, or the entry that it replaced while the undo window is open. It
// returns nil if neither applies.
func (e Entry) Counting(now time.Time) *Entry {
	if now.Before(e.From) {
		return e.Replaced
	}
	e.Replaced = nil
	return &e
}

// UsedPerDay is how many effects one entry allows in a day (UTC) before its user is asked.
const UsedPerDay = 20

// UsedOn returns how many effects the entry allowed on the day of now (UTC).
func (e Entry) UsedOn(now time.Time) int {
	if e.Day != now.UTC().Format(time.DateOnly) {
		return 0
	}
	return e.Used
}

// Use counts one effect that the entry allowed.
func (e *Entry) Use(now time.Time) {
	e.Used, e.Day = e.UsedOn(now)+1, now.UTC().Format(time.DateOnly)
}

// EntryID returns the ID of the entry for a recipient: 32 hexadecimal digits, which are valid in a document path.
func EntryID(uid, tool, recipient string) string {
	// None of the three strings can contain a NUL byte, so different triples have different encodings.
	sum := sha256.Sum256([]byte("allow\x00" + uid + "\x00" + tool + "\x00" + recipient))
	return hex.EncodeToString(sum[:16])
}

// IDFor returns the ID that the entry must have for the user. It equals the entry's ID, unless the entry was changed or
// belongs to another user.
func (e Entry) IDFor(uid string) string {
	if e.Call != "" {
		return hashedCallID(uid, e.Tool, e.Call)
	}
	return EntryID(uid, e.Tool, e.Recipient)
}

// counts reports whether the entry applies to the call's user, tool and account now. It computes the ID again, so an
// entry from another user's documents, or one that was changed in the store, does not apply.
func (e Entry) counts(in Input) bool {
	return e.Call == "" && e.Tool == in.Tool.Name && e.ID == EntryID(in.UID, e.Tool, e.Recipient) &&
		e.place(in.Now) == in.Place.ID && e.lasts(in.Now)
}

// place returns the ID of the account that the entry applies to. Until From, it is that of the replaced entry.
func (e Entry) place(now time.Time) string {
	if now.Before(e.From) && e.Replaced != nil {
		return e.Replaced.Place.ID
	}
	return e.Place.ID
}

// countsAlways reports whether an entry for one exact call applies.
func (e Entry) countsAlways(uid, tool string, now time.Time) bool {
	return e.Call != "" && e.Tool == tool && e.ID == hashedCallID(uid, tool, e.Call) && e.lasts(now)
}

func (e Entry) lasts(now time.Time) bool {
	if now.Before(e.From) {
		return e.Replaced != nil && e.Replaced.lasts(now)
	}
	return now.Before(e.ExpiresAt) && now.Before(e.CreatedAt.Add(EntryLife))
}

// callID returns the ID of the entry for the call with the key.
func callID(uid, tool, key string) string { return hashedCallID(uid, tool, hashOf(key)) }

func hashedCallID(uid, tool, hash string) string {
	// No recipient contains a NUL byte, so no entry for an address has this ID.
	sum := sha256.Sum256([]byte("allow call\x00" + uid + "\x00" + tool + "\x00" + hash))
	return hex.EncodeToString(sum[:16])
}

func hashOf(key string) string {
	sum := sha256.Sum256([]byte(key))
	return hex.EncodeToString(sum[:])
}

// calm reports whether a user can always allow calls of the class: their effects are known and can be undone.
func calm(c tool.Class) bool { return c == tool.ClassRead || c == tool.ClassChange }

// CallEntry returns the entry that "approve and always allow this command" stores. It is for exactly this call on this
// account or host. If the entry could never apply, the error is PolicyError not_applicable (409). That is the case if
// ruling is nil or permits no entry, or if the operator requires approval of everything.
func (r Rules) CallEntry(uid, name string, ruling *tool.CallPolicy, now time.Time) (Entry, error) {
	if ruling == nil || ruling.Always == nil || ruling.Mode != tool.RuleAsk || r.AskSideEffects || r.NoAllowlist ||
		!calm(ruling.Class) {
		return Entry{}, notApplicable(eachTime)
	}
	key := ruling.Always.Key
	return Entry{ID: callID(uid, name, key), Tool: name, Call: hashOf(key), Shown: ruling.Always.Shown, CreatedAt: now,
		ExpiresAt: now.Add(EntryLife)}, nil
}

// Entries returns the entries that "approve and always allow" stores: one for each address that the call reaches, from
// the account in. It returns all or none. If an entry could never apply, the error is PolicyError not_applicable (409).
// That is the case without addresses, and for a target of another kind, a punycode address, or an address that the
// operator denies or requires approval for each time.
func (r Rules) Entries(uid, name string, in tool.Place, targets []tool.Target, now time.Time) ([]Entry,
	error) {
	people, others := split(targets)
	if r.NoAllowlist {
		return nil, notApplicable(eachTime)
	}
	if others > 0 {
		return nil, notApplicable("This action reaches more than people, so it needs your approval each time. " +
			"Approve it once instead.")
	}
	if len(people) == 0 {
		return nil, notApplicable(
			"This action has no address that you could always allow. Approve it once instead.")
	}
	entries := make([]Entry, 0, len(people))
	for _, a := range people {
		if malformed(a) || punycode(a) || r.AskSideEffects || listed(r.AlwaysAsk)(a) || r.forbids(a) {
			return nil, notApplicable(
				"At least one recipient's address needs your approval each time. Approve it once instead.")
		}
		entries = append(entries,
			Entry{ID: EntryID(uid, name, a), Tool: name, Recipient: a, Place: in, CreatedAt: now,
				ExpiresAt: now.Add(EntryLife)})
	}
	return entries, nil
}

const eachTime = "This needs your approval each time. Approve it once instead."

func notApplicable(message string) error {
	return fault.New(fault.Policy, fault.CodeNotApplicable, "%s", message)
}
