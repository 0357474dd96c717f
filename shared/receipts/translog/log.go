package translog

import (
	"bytes"
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"sort"
	"time"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
)

// A Kept is a checkpoint that somebody has kept, with its name for messages.
type Kept struct {
	Name string
	Checkpoint
}

// A Log is the content of a log that [Read] has checked. It takes about 60 bytes of memory for each leaf.
type Log struct {
	Checkpoint

	leaves []Leaf
	sorted []int32 // places of the leaves, by hash
	seen   []bool  // an entry has this leaf
	times  []int64 // Unix time of that entry
	newest time.Time
}

// Saved returns the log's checkpoint with its signatures, once a key has verified it.
func Saved(ctx context.Context, o Objects, keys note.Verifiers) (text []byte, c Checkpoint, err error) {
	if text, err = o.Read(ctx, checkpointName); err == nil {
		c, err = ParseCheckpoint(text, keys)
	}
	return text, c, err
}

// Read reads all leaves, and compares their root with the checkpoint, with the checkpoints that the log itself keeps,
// and with others that were kept elsewhere. It returns each mismatch as a sentence. The error is that of reading. A log
// without a checkpoint is empty.
func Read(ctx context.Context, o Objects, keys note.Verifiers, kept ...Kept) (l *Log, faults []string, err error) {
	l = &Log{}
	_, l.Checkpoint, err = Saved(ctx, o, keys)
	switch {
	case errors.Is(err, errCheckpoint):
		return l, []string{"the log's checkpoint is not signed by its key"}, nil
	case err != nil && !errors.Is(err, ErrGone):
		return l, nil, err
	}
	own, faults, err := hourlyKept(ctx, o, keys)
	if err != nil {
		return l, nil, err
	}
	kept = append(append([]Kept{{"the log's checkpoint", l.Checkpoint}}, kept...), own...)
	slices.SortStableFunc(kept, func(a, b Kept) int { return cmp.Compare(a.N, b.N) })
	var r roots
	for _, k := range kept {
		switch {
		case k.N > l.N:
			faults = append(faults,
				fmt.Sprintf("the log was rolled back: %s has %d entries, the log has %d", k.Name, k.N, l.N))
			continue
		case k.Origin != l.Origin:
			faults = append(faults, fmt.Sprintf("%s is of another log, %s", k.Name, k.Origin))
			continue
		}
		for r.n < k.N && err == nil {
			var part []Leaf
			part, err = readBundle(ctx, o, tileOf(r.n, int(min(l.N-r.n/tileWidth*tileWidth, tileWidth))))
			part = part[min(int(r.n%tileWidth), len(part)):]
			part = part[:min(int64(len(part)), k.N-r.n)]
			for _, leaf := range part {
				r.add(tlog.RecordHash(leaf.encode()))
			}
			l.leaves = append(l.leaves, part...)
		}
		switch {
		case errors.Is(err, ErrGone):
			return l.index(), append(faults, "the log is incomplete: "+err.Error()), nil
		case err != nil:
			return l, nil, err
		case r.root() != k.Hash:
			faults = append(faults,
				fmt.Sprintf("the log was changed: its first %d entries do not match %s", k.N, k.Name))
		}
	}
	return l.index(), faults, nil
}

// hourlyKept returns the checkpoints that the log keeps.
func hourlyKept(ctx context.Context, o Objects, keys note.Verifiers) (all []Kept, faults []string, err error) {
	names, err := o.List(ctx, hourly)
	for _, name := range names {
		text, err := o.Read(ctx, name)
		if err != nil {
			return nil, nil, err
		}
		c, err := ParseCheckpoint(text, keys)
		if err != nil {
			faults = append(faults, fmt.Sprintf("%s is not signed by the log's key", name))
			continue
		}
		all = append(all, Kept{name, c})
	}
	return all, faults, err
}

// roots computes the roots of a tree that grows leaf by leaf.
type roots struct {
	n     int64
	stack []tlog.Hash // roots of the complete subtrees, the largest first
}

func (r *roots) add(h tlog.Hash) {
	for n := r.n; n&1 == 1; n >>= 1 {
		h = tlog.NodeHash(r.stack[len(r.stack)-1], h)
		r.stack = r.stack[:len(r.stack)-1]
	}
	r.stack = append(r.stack, h)
	r.n++
}

func (r *roots) root() (h tlog.Hash) {
	if len(r.stack) == 0 {
		return h
	}
	h = r.stack[len(r.stack)-1]
	for _, left := range slices.Backward(r.stack[:len(r.stack)-1]) {
		h = tlog.NodeHash(left, h)
	}
	return h
}

// index prepares the log for Has.
func (l *Log) index() *Log {
	l.sorted = make([]int32, len(l.leaves))
	for i := range l.sorted {
		l.sorted[i] = int32(i)
	}
	slices.SortFunc(l.sorted, func(a, b int32) int { return bytes.Compare(l.leaves[a].Hash[:], l.leaves[b].Hash[:]) })
	l.seen, l.times = make([]bool, len(l.leaves)), make([]int64, len(l.leaves))
	return l
}

// Has reports whether the log has an entry with this hash in hexadecimal, which was written at the time.
func (l *Log) Has(hash string, at time.Time) (found bool) {
	want, err := hex.DecodeString(hash)
	if err != nil {
		return false
	}
	compare := func(i int) int { return bytes.Compare(l.leaves[l.sorted[i]].Hash[:], want) }
	i := sort.Search(len(l.sorted), func(i int) bool { return compare(i) >= 0 })
	for ; i < len(l.sorted) && compare(i) == 0; i++ {
		found, l.seen[l.sorted[i]], l.times[l.sorted[i]] = true, true, at.Unix()
	}
	if found && at.After(l.newest) {
		l.newest = at
	}
	return found
}

// Settled returns the time before which every entry must be in the log. Call it after Has was called for all entries.
func (l *Log) Settled() time.Time {
	if l.newest.IsZero() {
		return l.newest
	}
	return l.newest.Add(-late - skew)
}

// A Gap is a part of the log without entries.
type Gap struct {
	First, Last int64 // places in the log, from 0
	// After and Before are the times of the entries around the gap; zero if there is none.
	After, Before time.Time
}

// Gaps returns the parts of the log whose entries Has was not called for, except entries that have expired at now.
func (l *Log) Gaps(now time.Time) (all []Gap) {
	var last time.Time
	open := false
	for i, leaf := range l.leaves {
		switch gone := !l.seen[i] && (leaf.Expires.IsZero() || leaf.Expires.After(now)); {
		case l.seen[i]:
			if last = time.Unix(l.times[i], 0).UTC(); open {
				all[len(all)-1].Before = last
			}
			open = false
		case gone && open && all[len(all)-1].Last == int64(i)-1:
			all[len(all)-1].Last = int64(i)
		case gone:
			all, open = append(all, Gap{First: int64(i), Last: int64(i), After: last}), true
		}
	}
	return all
}

// String returns a sentence that names the missing entries.
func (g Gap) String() string {
	text := fmt.Sprintf("entry %d of the log is not in the store", g.First)
	if g.Last > g.First {
		text = fmt.Sprintf("entries %d to %d of the log are not in the store", g.First, g.Last)
	}
	text += ": removed, changed, or lost when the store was rolled back"
	const form = "2006-01-02 15:04 UTC"
	switch {
	case !g.Before.IsZero() && !g.After.IsZero():
		return text + fmt.Sprintf(" (written about %s to %s)", g.After.Format(form), g.Before.Format(form))
	case !g.After.IsZero():
		return text + fmt.Sprintf(" (the newest, written after %s)", g.After.Format(form))
	}
	return text
}

// Consistent checks that the log of the checkpoint now contains that of the checkpoint old. Its error is a sentence. It
// reads only a few tiles.
func Consistent(ctx context.Context, o Objects, old, now Checkpoint) error {
	switch {
	case old.Origin != now.Origin:
		return fmt.Errorf("it is of another log, %s", old.Origin)
	case old.N > now.N:
		return fmt.Errorf("the log was rolled back: it had %d entries, and has %d", old.N, now.N)
	case old.N == 0:
		return nil
	}
	r := tlog.TileHashReader(now.Tree, &tileReader{ctx: ctx, objects: o, read: map[string][]byte{}})
	proof, err := tlog.ProveTree(now.N, old.N, r)
	if err == nil {
		err = tlog.CheckTree(proof, now.N, now.Hash, old.N, old.Hash)
	}
	if err != nil {
		return fmt.Errorf("the log was changed: its first %d entries are not those of the saved checkpoint", old.N)
	}
	return nil
}
