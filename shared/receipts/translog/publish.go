package translog

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/mod/sumdb/tlog"

	"github.com/countersign-run/countersign/shared/store"
	"github.com/countersign-run/countersign/shared/store/document"
	"github.com/countersign-run/countersign/shared/telemetry/metrics"
)

// headPath is the path of the document that keeps the publisher's progress.
const headPath = document.Sweeps + "/log"

// limits bound the work of a publisher.
type limits struct {
	batch   int // leaves of one checkpoint, which one document holds until they are published
	publish int // leaves of one call
	page    int // entries in one query
}

var defaults = limits{4096, 5 * 4096, 1000}

const (
	knownMost = 500_000          // leaves with which entries are compared; a leaf that is added twice does no harm
	minTime   = 20 * time.Second // minimum time left to begin another batch
)

// An entry has the time before its commit, so it can appear behind entries that were already read. Each call reads the
// entries of the last soon again, and each rereadEvery those of the last late. No commit takes longer.
const (
	soon        = 2 * time.Minute
	late        = 15 * time.Minute
	rereadEvery = 10 * time.Minute
	skew        = time.Minute // between the clocks of two processes
)

// The errors of Publish that an operator must look at.
var (
	ErrLogOlder = errors.New("translog: the log is older than the store: a checkpoint or the log was rolled back")
	ErrForked   = errors.New("translog: the signed checkpoint does not match the log")
)

// lag is the instrument of the publisher.
var lag = &metrics.Instrument{Kind: metrics.Gauge, Name: "countersign.log.lag", Unit: "s",
	Description: "Time from the oldest audit entry of the last checkpoint to that checkpoint."}

// A Publisher appends the hashes of committed audit entries to the log. Several processes may publish at once: the
// document of the progress decides whose batch comes next.
//
// A batch is published in four steps, and a crash between any two of them does no harm. (1) A commit stores the batch
// in the document, so its order is decided. (2) The bundles and tiles are written. (3) The checkpoint is signed and
// written. (4) A commit removes the batch from the document. The next call finishes a batch that it finds in the
// document, with the same bytes, so no two checkpoints of one size exist.
type Publisher struct {
	Store   store.Store
	Objects Objects
	Signer  Signer
	Origin  string
	Keys    string // further verifier keys, of earlier versions of the signer's key
	Now     func() time.Time
	Log     *slog.Logger
	Metrics *metrics.Metrics

	mu     sync.Mutex
	from   *position // nil until the document was read
	limits limits    // zero means defaults
}

// head is the stored progress.
type head struct {
	Tree    tlog.Tree `json:"tree"`
	Batch   []byte    `json:"batch,omitempty"` // encoded leaves that are decided and perhaps not yet published
	At      time.Time `json:"at"`              // time of the batch
	Oldest  time.Time `json:"oldest,omitzero"` // time of the oldest entry in the batch
	From    position  `json:"from"`            // where the reading of the batch began
	Reading position  `json:"reading"`
	Marks   []mark    `json:"marks,omitempty"` // the sizes of the log at earlier times, oldest first
}

// position says which entries were read.
type position struct {
	// Next is the time of the next entry. After is the ID of the last one if the reading was interrupted.
	Next  time.Time `json:"next"`
	After string    `json:"after,omitempty"`
	// Settled is a time before which no further entry can appear.
	Settled time.Time `json:"settled"`
}

// mark is the size of the log at a time.
type mark struct {
	At   time.Time `json:"at"`
	Size int64     `json:"size"`
}

// Publish appends the entries that were committed since, and returns the number of added entries. A call that finds
// nothing costs one query. After an error, the next call continues.
func (p *Publisher) Publish(ctx context.Context) (added int, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.limits = cmp.Or(p.limits, defaults)
	for added < p.limits.publish {
		if left, ok := ctx.Deadline(); ok && time.Until(left) < minTime {
			return added, nil
		}
		n, more, err := p.batch(ctx)
		added += n
		if errors.Is(err, store.ErrConflict) {
			p.from = nil
			return added, nil // another process publishes
		}
		if err != nil || !more {
			p.from = forget(p.from, err)
			return added, err
		}
	}
	return added, nil
}

// forget returns the position, or nil after an error, so that the document is read again.
func forget(from *position, err error) *position {
	if err != nil {
		return nil
	}
	return from
}

// batch publishes one batch, and reports whether there may be more.
func (p *Publisher) batch(ctx context.Context) (added int, more bool, err error) {
	now := p.Now().UTC().Truncate(time.Microsecond)
	if p.from != nil {
		docs, err := p.Store.Query(ctx, p.from.query(now, p.limits.page))
		if err != nil {
			return 0, false, err
		}
		if len(docs) == 0 {
			*p.from = p.from.done(now, p.from.long(now))
			return 0, false, nil
		}
	}
	var h head
	doc, err := document.Get(ctx, p.Store, headPath, &h)
	if err != nil {
		return 0, false, err
	}
	doc.Path = headPath
	if len(h.Batch) == 0 {
		if p.from != nil && p.from.Next.After(h.Reading.Next) {
			h.Reading = *p.from
		}
		if more, err = p.decide(ctx, &doc, &h, now); err != nil || len(h.Batch) == 0 {
			return 0, more, err
		}
	} else {
		more = true
	}
	size := h.Tree.N
	if resumed, err := p.finish(ctx, doc, &h); err != nil || resumed {
		return 0, true, err
	}
	p.from = &h.Reading
	return int(h.Tree.N - size), more, nil
}

// query returns the query for the entries that the next reading begins with.
func (p position) query(now time.Time, page int) store.Query {
	if p.After != "" {
		q := document.AuditSince(p.Next, page)
		q.After = &store.Cursor{Value: p.Next, ID: p.After}
		return q
	}
	return document.AuditSince(p.begin(now), page)
}

// long reports whether the next reading begins with the entries of the last late.
func (p position) long(now time.Time) bool {
	return p.After == "" && now.Sub(p.Settled) >= late+rereadEvery
}

// begin returns the time with which a reading begins that was not interrupted.
func (p position) begin(now time.Time) time.Time {
	if p.long(now) {
		return p.Settled
	}
	return p.Next
}

// done returns the position after everything was read at now. long says whether the reading began long ago.
func (p position) done(now time.Time, long bool) position {
	next := position{Next: now.Add(-soon), Settled: p.Settled}
	if long {
		next.Settled = now.Add(-late)
	}
	return next
}

// decide reads entries, and stores those that are not in the log as the next batch. more reports whether it has left
// any unread.
func (p *Publisher) decide(ctx context.Context, doc *store.Doc, h *head, now time.Time) (more bool, err error) {
	h.From = h.Reading
	q, had := h.Reading.query(now, p.limits.page), hashSet(nil)
	for docs, err := range document.Pages(ctx, p.Store, q) {
		if err != nil {
			return false, err
		}
		if had == nil && len(docs) > 0 {
			if had, err = p.known(ctx, h, now); err != nil {
				return false, err
			}
		}
		for _, d := range docs {
			at := document.AuditFieldsOf(d).At
			if len(h.Batch) == p.limits.batch*leafSize {
				return true, p.store(ctx, doc, h, now)
			}
			h.Reading = h.Reading.past(at, document.ID(d), now)
			if l, ok := leafIn(d); ok && !had[l.Hash] {
				h.Batch, had[l.Hash] = append(h.Batch, l.encode()...), true
				h.Oldest = earlier(h.Oldest, at)
			}
		}
	}
	h.Reading = h.Reading.done(now, h.From.long(now))
	if len(h.Batch) == 0 {
		p.from = &h.Reading
		return false, nil
	}
	return false, p.store(ctx, doc, h, now)
}

// past returns the position after the entry.
func (p position) past(at time.Time, id string, now time.Time) position {
	next := position{Next: at, After: id, Settled: p.Settled}
	if limit := now.Add(-late); at.After(next.Settled) && !at.After(limit) {
		next.Settled = at
	}
	return next
}

func earlier(a, b time.Time) time.Time {
	if a.IsZero() || b.Before(a) {
		return b
	}
	return a
}

// hashSet is a set of hashes of entries.
type hashSet map[[sha256.Size]byte]bool

// known returns the hashes of the entries that a reading can meet a second time: those that were added since it began,
// and after a restore of the store, those that the copy may have.
func (p *Publisher) known(ctx context.Context, h *head, now time.Time) (hashSet, error) {
	had := hashSet{}
	if len(h.Marks) == 0 || h.Reading.After != "" && !h.Marks[0].At.IsZero() {
		return had, nil
	}
	size, begin := h.Marks[0].Size, h.Reading.begin(now).Add(-skew)
	for _, m := range h.Marks {
		if !m.At.After(begin) {
			size = m.Size
		}
	}
	size = max(size, h.Tree.N-knownMost)
	leaves, err := readLeaves(ctx, p.Objects, size/tileWidth*tileWidth, h.Tree.N)
	for _, l := range leaves {
		had[l.Hash] = true
	}
	return had, err
}

// leafIn returns the leaf of the entry in the document. It returns false if the entry cannot be read; [Read] then
// finds that it is not in the log.
func leafIn(d store.Doc) (Leaf, bool) {
	var e struct {
		Hash string `json:"hash"`
	}
	if document.Decode(d, &e) != nil {
		return Leaf{}, false
	}
	return leafOf(e.Hash, document.AuditFieldsOf(d).ExpireAt)
}

// store stores the batch in the document.
func (p *Publisher) store(ctx context.Context, doc *store.Doc, h *head, now time.Time) error {
	h.At, h.Marks = now, marked(h.Marks, mark{now, h.Tree.N}, h.Reading.Settled)
	return p.commit(ctx, doc, h)
}

// marked adds a mark, and removes those that no reading needs.
func marked(all []mark, m mark, settled time.Time) []mark {
	for len(all) > 1 && !all[1].At.After(settled.Add(-skew)) {
		all = all[1:]
	}
	if n := len(all); n > 0 && m.At.Sub(all[n-1].At) < soon/4 {
		return all
	}
	return append(all, m)
}

func (p *Publisher) commit(ctx context.Context, doc *store.Doc, h *head) error {
	write, err := document.Put(*doc, nil, h)
	if err != nil {
		return err
	}
	versions, err := p.Store.Commit(ctx, write)
	if err == nil {
		doc.Version, doc.Data = versions[0], write.Doc.Data
	}
	return err
}

// finish publishes the batch in the document. resumed reports that the log is ahead of the document, which then has no
// batch.
func (p *Publisher) finish(ctx context.Context, doc store.Doc, h *head) (resumed bool, err error) {
	was, now, err := p.checkpoint(ctx)
	if err != nil {
		return false, err
	}
	size := h.Tree.N + int64(len(h.Batch)/leafSize)
	switch {
	case now.N > size || now.N > h.Tree.N && now.N < size:
		return true, p.resume(ctx, doc, h, now)
	case now.N < h.Tree.N:
		return false, fmt.Errorf("%w (%d of %d entries)", ErrLogOlder, now.N, h.Tree.N)
	case now.N == h.Tree.N && now.Tree != h.Tree:
		return false, ErrForked
	}
	var leaves []Leaf
	for b := h.Batch; len(b) >= leafSize; b = b[leafSize:] {
		l, err := decodeLeaf(b[:leafSize])
		if err != nil {
			return false, err
		}
		leaves = append(leaves, l)
	}
	tree, err := grow(ctx, p.Objects, h.Tree, leaves)
	if err != nil {
		return false, err
	}
	if now.N == size && now.Tree != tree {
		return false, ErrForked
	}
	if now.N < size {
		if err := p.sign(ctx, was, tree, h.At); err != nil {
			return false, err
		}
	}
	if h.From.After == "" && !h.From.Settled.IsZero() { // not when the log begins with the entries of earlier releases
		p.Metrics.Measure(lag, p.Now().Sub(h.Oldest).Seconds())
	}
	h.Tree, h.Batch, h.Oldest = tree, nil, time.Time{}
	return false, p.commit(ctx, &doc, h)
}

// sign signs the tree, and writes the checkpoint. The first checkpoint of each hour is also kept.
func (p *Publisher) sign(ctx context.Context, was []byte, tree tlog.Tree, at time.Time) error {
	text, err := sign(ctx, Checkpoint{p.Origin, tree}, p.Signer)
	if err != nil {
		return err
	}
	name := hourly + "/" + at.UTC().Format("2006-01-02T15")
	if _, err := p.Objects.Read(ctx, name); errors.Is(err, ErrGone) {
		err = p.Objects.Create(ctx, name, text)
		if err != nil {
			return err
		}
	} else if err != nil {
		return err
	}
	return p.Objects.Replace(ctx, checkpointName, was, text)
}

// checkpoint returns the log's checkpoint, which this key must have signed. The log can be empty.
func (p *Publisher) checkpoint(ctx context.Context) (text []byte, c Checkpoint, err error) {
	text, err = p.Objects.Read(ctx, checkpointName)
	if errors.Is(err, ErrGone) {
		return nil, c, nil
	}
	if err != nil {
		return nil, c, err
	}
	key, err := VerifierKey(ctx, p.Origin, p.Signer)
	if err != nil {
		return nil, c, err
	}
	if p.Keys != "" {
		key += "," + p.Keys
	}
	keys, err := ParseKeys(key)
	if err != nil {
		return nil, c, err
	}
	c, err = ParseCheckpoint(text, keys)
	return text, c, err
}

// resume continues a log that is newer than the store: the store is a restored copy, or its document was changed. The
// entries of the copy that the log has are not added again.
func (p *Publisher) resume(ctx context.Context, doc store.Doc, h *head, now Checkpoint) error {
	p.Log.WarnContext(ctx, "the log has entries that the store does not know; the store may be an older copy",
		"counter", "log_ahead", "log", now.N, "store", h.Tree.N)
	h.Marks = []mark{{time.Time{}, h.Tree.N}}
	h.Tree, h.Batch, h.Oldest = now.Tree, nil, time.Time{}
	h.Reading = position{Next: h.From.Settled, Settled: h.From.Settled}
	return p.commit(ctx, &doc, h)
}

// Size returns the size of the log that the store knows.
func Size(ctx context.Context, st store.Store) (int64, error) {
	var h head
	_, err := document.Get(ctx, st, headPath, &h)
	return h.Tree.N, err
}
