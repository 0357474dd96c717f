package policy

import (
	"crypto/sha256"
	"encoding/hex"
	"time"

	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/fault"
)

// EntryLife is how long an "always allow" lasts (reliability §4: a permission that its user has forgotten should end).
const EntryLife = 90 * 24 * time.Hour

// Entry is one "always allow": one tool of one user for one exact address from one account, or one exact call in one
// place.
type Entry struct {
	ID        string `json:"id"` // EntryID, which binds the entry to its user
	Tool      string `json:"tool"`
	Recipient string `json:"recipient"`       // normalised (address.Normalize); never a domain or a pattern; empty: Call
	Call      string `json:"call,omitempty"`  // the SHA-256 of tool.Always.Key, in hexadecimal digits
	Shown     string `json:"shown,omitempty"` // tool.Always.Shown
	// Place is the account from which Recipient is always reached. It is empty where the tool has none, and in entries
	// that an earlier release stored: those allow nothing from an account.
	Place     tool.Place `json:"place,omitzero"`
	CreatedAt time.Time  `json:"createdAt"`
	ExpiresAt time.Time  `json:"expiresAt"` // at most EntryLife later; the entry does not count from then on
	Day       string     `json:"day,omitempty"`
	Used      int        `json:"used,omitempty"` // number of effects that it allowed on Day (UTC)

	// An approval that is held can be taken back, and with it its entries. Until From the entry does not count, and the
	// one that it replaced does. The user may withdraw what one approval allowed later too (run.User.Withdraw).
	From     time.Time `json:"from,omitzero"`
	Approval string    `json:"approval,omitempty"` // the id of the approval that allowed it
	Replaced *Entry    `json:"replaced,omitempty"` // what counted before that approval
}

// Counting returns the entry that counts at the time: e itself, or the one that it replaced while its approval is held.
// It is nil where neither does.
func (e Entry) Counting(now time.Time) *Entry {
	if now.Before(e.From) {
		return e.Replaced
	}
	e.From, e.Replaced = time.Time{}, nil
	return &e
}

// UsedPerDay is how many effects one entry allows in a day (UTC) before its user is asked again.
const UsedPerDay = 20

// UsedOn returns how many effects the entry has allowed on the day of now.
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

// EntryID returns the id of an entry, which is the same each time: 32 hexadecimal digits that are valid in a document
// path.
func EntryID(uid, tool, recipient string) string {
	// None of the three can contain a NUL byte, so different triples have different encodings.
	sum := sha256.Sum256([]byte("allow\x00" + uid + "\x00" + tool + "\x00" + recipient))
	return hex.EncodeToString(sum[:16])
}

// IDFor returns the id that the entry would have among the user's: its own, unless it is not theirs or was changed.
func (e Entry) IDFor(uid string) string {
	if e.Call != "" {
		return hashedCallID(uid, e.Tool, e.Call)
	}
	return EntryID(uid, e.Tool, e.Recipient)
}

// counts reports whether the entry applies to the user, tool and account at the time. It computes the id again, so that
// an entry from another user's documents, or one that was changed in the store, does not count.
func (e Entry) counts(in Input) bool {
	return e.Call == "" && e.Tool == in.Tool.Name && e.ID == EntryID(in.UID, e.Tool, e.Recipient) &&
		e.place(in.Now) == in.Place.ID && e.lasts(in.Now)
}

// place returns the id of the account that counts at the time: until From, that of the replaced entry.
func (e Entry) place(now time.Time) string {
	if now.Before(e.From) && e.Replaced != nil {
		return e.Replaced.Place.ID
	}
	return e.Place.ID
}

// countsAlways is counts for an entry of one exact call.
func (e Entry) countsAlways(uid, tool string, now time.Time) bool {
	return e.Call != "" && e.Tool == tool && e.ID == hashedCallID(uid, tool, e.Call) && e.lasts(now)
}

func (e Entry) lasts(now time.Time) bool {
	if now.Before(e.From) {
		return e.Replaced != nil && e.Replaced.lasts(now)
	}
	return now.Before(e.ExpiresAt) && now.Before(e.CreatedAt.Add(EntryLife))
}

// callID returns the id of the entry of the call with the key.
func callID(uid, tool, key string) string { return hashedCallID(uid, tool, hashOf(key)) }

func hashedCallID(uid, tool, hash string) string {
	// No recipient has a NUL byte, so no entry of an address has this id.
	sum := sha256.Sum256([]byte("allow call\x00" + uid + "\x00" + tool + "\x00" + hash))
	return hex.EncodeToString(sum[:16])
}

func hashOf(key string) string {
	sum := sha256.Sum256([]byte(key))
	return hex.EncodeToString(sum[:])
}

// calm reports whether calls of the class may ever be allowed always: what they do can be told, and be undone.
func calm(c tool.Class) bool { return c == tool.ClassRead || c == tool.ClassChange }

// CallEntry returns what "approve and always allow this command" stores: an entry for exactly this call in this place.
// The error is PolicyError not_applicable (409) where it would never count: the ruling, which may be nil, permits none,
// or the operator has everything asked about.
func (r Rules) CallEntry(uid, name string, ruling *tool.Ruling, now time.Time) (Entry, error) {
	if ruling == nil || ruling.Always == nil || ruling.Mode != tool.RuleAsk || r.AskSideEffects || r.NoAllowlist ||
		!calm(ruling.Class) {
		return Entry{}, notApplicable(eachTime)
	}
	key := ruling.Always.Key
	return Entry{ID: callID(uid, name, key), Tool: name, Call: hashOf(key), Shown: ruling.Always.Shown, CreatedAt: now,
		ExpiresAt: now.Add(EntryLife)}, nil
}

// Entries returns what "approve and always allow" stores: an entry for each address that the call reaches, from the
// account in which it acts. It returns all or none; the error is PolicyError not_applicable (409) if an entry would
// never count: no addresses, a target of another kind, an address in punycode, or one that configuration denies or asks
// about each time.
func (r Rules) Entries(uid, name string, in tool.Place, targets []tool.Target, now time.Time) ([]Entry,
	error) {
	people, others := split(targets)
	if r.NoAllowlist {
		return nil, notApplicable(eachTime)
	}
	if others > 0 {
		return nil, notApplicable("This action reaches more than people, and that needs your approval each time. " +
			"Approve it once instead.")
	}
	if len(people) == 0 {
		return nil, notApplicable(
			"This action reaches no address that could always be allowed. Approve it once instead.")
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
