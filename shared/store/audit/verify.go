package audit

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// FindingKind is the kind of a fault in a chain.
type FindingKind string

// The kinds of faults.
const (
	Changed  FindingKind = "changed"  // its content or its hash differs from the sealed one
	Removed  FindingKind = "removed"  // it is missing, although later ones exist
	Moved    FindingKind = "moved"    // its content is as sealed, but its position or its number is wrong
	Inserted FindingKind = "inserted" // it does not belong to the chain
	CutOff   FindingKind = "cut off"  // it is missing at the end, with all later ones
)

// Finding is one fault of a chain, with the entries that it concerns.
type Finding struct {
	Fault FindingKind
	First int64 // number (Seq) of the entry, or of the first of several consecutive missing ones
	Last  int64 // equal to First, or number of the last missing one
}

// String returns a phrase that names the entries and their fault.
func (p Finding) String() string {
	if p.First == p.Last {
		return fmt.Sprintf("entry %d was %s", p.First, p.Fault)
	}
	return fmt.Sprintf("entries %d to %d were %s", p.First, p.Last, p.Fault)
}

// Verify compares one chain's entries, in the order in which the store returns them, with the chain's head. It returns
// the faults sorted by entry number; nil means that all entries are as they were sealed. It works backwards from the
// head, because each entry's hash covers the hash of the entry before it. If the head itself was changed, Verify names
// the head's entry.
func Verify(entries []Entry, head Head) []Finding { return VerifyAt(time.Time{}, entries, head) }

// VerifyAt is Verify at a time when entries may have expired. It does not report expired entries that are missing, if
// the entry after them, or the head, confirms their expiry.
func VerifyAt(now time.Time, entries []Entry, head Head) []Finding {
	v := &verifier{now: now, entries: entries, sums: make([]string, len(entries)), claimed: make([]bool, len(entries)),
		at: map[int64][]int{}}
	for i, e := range entries {
		v.sums[i] = e.sum()
		v.at[e.Seq] = append(v.at[e.Seq], i)
	}
	v.walk(head)
	v.order()
	for i, e := range entries {
		if !v.claimed[i] {
			v.report(Inserted, e.Seq, e.Seq)
		}
	}
	slices.SortFunc(v.problems, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.First, b.First), cmp.Compare(a.Last, b.Last), cmp.Compare(a.Fault, b.Fault))
	})
	return slices.Compact(v.problems)
}

// HeadOf returns the head that the entries themselves end in. It is for a run whose document was deleted, so that the
// end of its chain cannot be verified.
func HeadOf(entries []Entry) (h Head) {
	for _, e := range entries {
		if e.Seq > h.Seq {
			h = Head{Seq: e.Seq, Hash: e.Hash}
		}
	}
	return h
}

type verifier struct {
	now      time.Time
	entries  []Entry
	sums     []string
	claimed  []bool          // the entry has its place in the chain, changed or not
	at       map[int64][]int // the indexes of the entries with each number
	genuine  []int           // indexes of the entries that are as sealed, by decreasing number
	problems []Finding
}

func (v *verifier) report(f FindingKind, first, last int64) {
	v.problems = append(v.problems, Finding{f, first, last})
}

// walk goes from the head to the first entry. want is the hash that entry k must have, or "" if unknown. expires is
// when entry k may be deleted, or zero if never or unknown.
func (v *verifier) walk(head Head) {
	want, expires, missing := head.Hash, head.Expires, CutOff
	for k := head.Seq; k >= 1; k-- {
		if i, found := v.genuineAt(k, want); found {
			v.claimed[i] = true
			v.genuine = append(v.genuine, i)
			want, expires, missing = v.entries[i].PrevHash, v.entries[i].PrevExpires, Removed
			continue
		}
		if i, found := v.renumbered(k, want); found {
			v.claimed[i] = true
			v.report(Moved, k, k)
			want, expires, missing = v.entries[i].PrevHash, v.entries[i].PrevExpires, Removed
			continue
		}
		if i, found := v.changedAt(k); found {
			v.claimed[i] = true
			v.report(Changed, k, k)
			want, expires, missing = v.believed(i, k), time.Time{}, Removed
			continue
		}
		next := v.below(k)
		if expires.IsZero() || expires.After(v.now) {
			v.report(missing, next+1, k)
		}
		k, want, missing = next+1, "", Removed // earlier entries expired no later
	}
}

// genuineAt returns the index of entry k as it was sealed. Of two equal entries, it prefers the one in the right
// position.
func (v *verifier) genuineAt(k int64, want string) (place int, found bool) {
	for _, i := range v.at[k] {
		if v.sealed(i, k, want) && (!found || v.inPlace(i)) {
			place, found = i, true
		}
	}
	return place, found
}

func (v *verifier) sealed(i int, k int64, want string) bool {
	e := v.entries[i]
	return !v.claimed[i] && e.Hash == v.sums[i] && e.Hash != "" && (want == "" || e.Hash == want) &&
		(k > 1) == (e.PrevHash != "")
}

// inPlace reports whether the entry precedes all genuine entries found so far.
func (v *verifier) inPlace(i int) bool {
	n := len(v.genuine)
	return n == 0 || i < v.genuine[n-1]
}

// renumbered returns the index of an entry that was sealed as number k and now has another number.
func (v *verifier) renumbered(k int64, want string) (int, bool) {
	for i, e := range v.entries {
		if !v.claimed[i] && want != "" && e.Hash == want && sumAs(e, k) == want {
			return i, true
		}
	}
	return 0, false
}

func sumAs(e Entry, seq int64) string {
	e.Seq = seq
	return e.sum()
}

func (v *verifier) changedAt(k int64) (int, bool) {
	for _, i := range v.at[k] {
		if !v.claimed[i] {
			return i, true
		}
	}
	return 0, false
}

// believed returns the previous hash in a changed entry if another entry has that hash, and otherwise "". The change
// may be in that very field, so it must not make the previous entry look wrong.
func (v *verifier) believed(i int, k int64) string {
	prev := v.entries[i].PrevHash
	for j, e := range v.entries {
		if !v.claimed[j] && e.Hash == prev && (e.Seq == k-1 || sumAs(e, k-1) == prev) {
			return prev
		}
	}
	return ""
}

// below returns the highest number below k that an entry has, or 0.
func (v *verifier) below(k int64) (highest int64) {
	for seq := range v.at {
		if seq < k && seq > highest {
			highest = seq
		}
	}
	return highest
}

// order reports genuine entries that are not in the order of their numbers.
func (v *verifier) order() {
	slices.Reverse(v.genuine)
	places := slices.Sorted(slices.Values(v.genuine))
	for n, i := range v.genuine {
		if i != places[n] {
			v.report(Moved, v.entries[i].Seq, v.entries[i].Seq)
		}
	}
}
