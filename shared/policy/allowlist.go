package policy

import (
	"crypto/sha256"
	"encoding/hex"
	"time"

	"github.com/countersign-run/countersign/shared/fault"
	"github.com/countersign-run/countersign/shared/tool"
)

// EntryLife is how long an "always allow" lasts (reliability §4: a permission that its user has forgotten should end).
const EntryLife = 90 * 24 * time.Hour

// Entry is one "always allow": one tool of one user for one exact address.
type Entry struct {
	ID        string    `json:"id"` // EntryID, which binds the entry to its user
	Tool      string    `json:"tool"`
	Recipient string    `json:"recipient"` // normalised (address.Normalize); never a domain or a pattern
	CreatedAt time.Time `json:"createdAt"`
	ExpiresAt time.Time `json:"expiresAt"` // at most EntryLife later; the entry does not count from then on
	Day       string    `json:"day,omitempty"`
	Used      int       `json:"used,omitempty"` // number of effects that it allowed on Day (UTC)
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

// counts reports whether the entry applies to the user and tool at the time. It computes the id again, so that an entry
// from another user's documents, or one that was changed in the store, does not count.
func (e Entry) counts(uid, tool string, now time.Time) bool {
	return e.Tool == tool && e.ID == EntryID(uid, tool, e.Recipient) &&
		now.Before(e.ExpiresAt) && now.Before(e.CreatedAt.Add(EntryLife))
}

// Entries returns what "approve and always allow" stores: an entry for each address that the call reaches. It returns
// all or none; the error is PolicyError not_applicable (409) if an entry would never count: no addresses, a target of
// another kind, an address in punycode, or one that configuration denies or asks about each time.
func (r Rules) Entries(uid, name string, targets []tool.Target, now time.Time) ([]Entry, error) {
	people, others := split(targets)
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
			Entry{ID: EntryID(uid, name, a), Tool: name, Recipient: a, CreatedAt: now, ExpiresAt: now.Add(EntryLife)})
	}
	return entries, nil
}

func notApplicable(message string) error {
	return fault.New(fault.Policy, fault.CodeNotApplicable, "%s", message)
}
