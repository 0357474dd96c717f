package audit

import (
	"cmp"
	"fmt"
	"slices"
)

// Fault is what happened to entries.
type Fault string

// The faults.
const (
	Changed  Fault = "changed"  // its content or its hash is not what was sealed
	Removed  Fault = "removed"  // it is missing, and later ones are there
	Moved    Fault = "moved"    // its content is as it was sealed, but it stands elsewhere or under another number
	Inserted Fault = "inserted" // the chain does not know it
	CutOff   Fault = "cut off"  // it is missing at the end, and so are all later ones
)

// Problem is one fault of a chain, and the entries that it concerns.
type Problem struct {
	Fault Fault
	First int64 // the number (seq) of the entry, or of the first of several that are missing in a row
	Last  int64 // First, or the last in the row
}

// String names the entries.
func (p Problem) String() string {
	if p.First == p.Last {
		return fmt.Sprintf("entry %d was %s", p.First, p.Fault)
	}
	return fmt.Sprintf("entries %d to %d were %s", p.First, p.Last, p.Fault)
}

// Verify holds one run's entries, in the order in which the store gives them, to the run's head, and names what is
// wrong by number; nil means that all is as it was sealed. It goes backwards from the head, because each hash vouches
// for the entry before it. Where the head itself was changed, its entry is named.
func Verify(entries []Entry, head Head) []Problem {
	v := &verifier{entries: entries, sums: make([]string, len(entries)), claimed: make([]bool, len(entries)), at: map[int64][]int{}}
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
	slices.SortFunc(v.problems, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.First, b.First), cmp.Compare(a.Last, b.Last), cmp.Compare(a.Fault, b.Fault))
	})
	return slices.Compact(v.problems)
}

// HeadOf is the head that the entries themselves end in: for a run whose document is gone, and whose end therefore
// nothing vouches for.
func HeadOf(entries []Entry) (h Head) {
	for _, e := range entries {
		if e.Seq > h.Seq {
			h = Head{e.Seq, e.Hash}
		}
	}
	return h
}

type verifier struct {
	entries  []Entry
	sums     []string
	claimed  []bool          // the entry has its place in the chain, changed or not
	at       map[int64][]int // the entries of each number
	genuine  []int           // entries as they were sealed, by falling number
	problems []Problem
}

func (v *verifier) report(f Fault, first, last int64) {
	v.problems = append(v.problems, Problem{f, first, last})
}

// walk goes from the head to the first entry. want is the hash that entry k must have, as far as anybody vouches for it.
func (v *verifier) walk(head Head) {
	want, missing := head.Hash, CutOff
	for k := head.Seq; k >= 1; k-- {
		if i, found := v.genuineAt(k, want); found {
			v.claimed[i] = true
			v.genuine = append(v.genuine, i)
			want, missing = v.entries[i].PrevHash, Removed
			continue
		}
		if i, found := v.renumbered(k, want); found {
			v.claimed[i] = true
			v.report(Moved, k, k)
			want, missing = v.entries[i].PrevHash, Removed
			continue
		}
		if i, found := v.changedAt(k); found {
			v.claimed[i] = true
			v.report(Changed, k, k)
			want, missing = v.believed(i, k), Removed
			continue
		}
		next := v.below(k)
		v.report(missing, next+1, k)
		k, want, missing = next+1, "", Removed
	}
}

// genuineAt finds the entry k as it was sealed. Of two that are alike, the one that stands in its place is preferred.
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
	return !v.claimed[i] && e.Hash == v.sums[i] && e.Hash != "" && (want == "" || e.Hash == want) && (k > 1) == (e.PrevHash != "")
}

// inPlace reports whether the entry stands before all that have been found so far.
func (v *verifier) inPlace(i int) bool {
	n := len(v.genuine)
	return n == 0 || i < v.genuine[n-1]
}

// renumbered finds an entry that is what was sealed as number k, if its own number is put right.
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

// believed is the hash that a changed entry vouches for, where another entry bears it out. What was changed may be the
// very link, and must not bring its neighbour under suspicion.
func (v *verifier) believed(i int, k int64) string {
	prev := v.entries[i].PrevHash
	for j, e := range v.entries {
		if !v.claimed[j] && e.Hash == prev && (e.Seq == k-1 || sumAs(e, k-1) == prev) {
			return prev
		}
	}
	return ""
}

// below is the highest number under k that an entry has, or 0.
func (v *verifier) below(k int64) (highest int64) {
	for seq := range v.at {
		if seq < k && seq > highest {
			highest = seq
		}
	}
	return highest
}

// order finds genuine entries that do not stand where their number puts them.
func (v *verifier) order() {
	slices.Reverse(v.genuine)
	places := slices.Sorted(slices.Values(v.genuine))
	for n, i := range v.genuine {
		if i != places[n] {
			v.report(Moved, v.entries[i].Seq, v.entries[i].Seq)
		}
	}
}
