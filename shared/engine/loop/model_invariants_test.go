package loop_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"path"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/countersign-run/countersign/shared/agent/policy"
	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/base/strictjson"
	"github.com/countersign-run/countersign/shared/store"
	"github.com/countersign-run/countersign/shared/store/audit"
	"github.com/countersign-run/countersign/shared/store/document"
	"github.com/countersign-run/countersign/shared/testkit/faulty"
	"github.com/countersign-run/countersign/shared/testkit/invariants"
)

// witness is a store that checks every commit against the invariants of the design (reliability §3), by the documents
// and by the provider's calls. It keeps every document as it was last written, so no state that was in the store for a
// moment escapes it. A violation is kept under the invariant's number.
type witness struct {
	*faulty.Store
	world *trialed
	under store.Store
	tools tool.Set
	max   loopBounds

	mu         sync.Mutex
	docs       map[string]store.Doc
	versions   map[string]time.Time
	runs       map[string]*watched
	order      []string            // the runs' ids, oldest first
	ended      map[string]*watched // runs whose documents were deleted
	effects    map[string][]providerCall
	users      map[string]run.User
	approvals  map[string]run.Approval
	chains     map[string]audit.Head // of all entries that were ever written, by run
	commits    int
	late       bool // the committing process was stopped since it read the clock
	violations []string
}

// loopBounds are the limits of the profile that the invariants name.
type loopBounds struct{ turns, open int }

// watched is a run as its commits show it.
type watched struct {
	uid, threadID, agent string
	state                *run.State
	events               []json.RawMessage
	handles              map[string][]string // recorded with intents, by action
}

// providerCall is one act of the provider.
type providerCall struct {
	call tool.Call
	sent string // the text that was sent
}

func newWitness(st store.Store) *witness {
	w := &witness{under: st}
	w.Store = faulty.Wrap(st, faulty.Commits(faulty.After(w.committed)))
	w.forget()
	return w
}

// forget starts a new sequence.
func (w *witness) forget() {
	w.versions = map[string]time.Time{}
	w.docs, w.runs, w.ended = map[string]store.Doc{}, map[string]*watched{}, map[string]*watched{}
	w.effects, w.users, w.approvals = map[string][]providerCall{}, map[string]run.User{}, map[string]run.Approval{}
	w.chains, w.order, w.commits, w.late, w.violations = map[string]audit.Head{}, nil, 0, false, nil
}

// wipe deletes every document, for the next sequence.
func (w *witness) wipe(ctx context.Context) error {
	var writes []store.Write
	for p := range w.docs {
		writes = append(writes, store.Delete(p, time.Time{}))
	}
	for part := range slices.Chunk(writes, store.MaxWrites) {
		if _, err := w.under.Commit(ctx, part...); err != nil {
			return err
		}
	}
	w.forget()
	return nil
}

func (w *witness) broken(invariant int, format string, args ...any) {
	w.violations = append(w.violations, fmt.Sprintf("invariant %d: ", invariant)+fmt.Sprintf(format, args...))
}

// add adds the violations that a rule has found in a run.
func (w *witness) add(runID string, found []invariants.Violation) {
	for _, v := range found {
		w.broken(v.Number, "run %s: %s", runID, v.Text)
	}
}

// stored checks the stored runs by the rules that need nothing but the store.
func (w *witness) stored(ctx context.Context) ([]string, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for id := range w.runs {
		var effects []invariants.Effect
		for action, all := range w.effects {
			for _, e := range all {
				effects = append(effects, invariants.Effect{UID: e.call.UID, ActionID: action,
					Agrees: func(args json.RawMessage) error {
						if e.sent != sentAs(args) {
							return fmt.Errorf("%q was sent", e.sent)
						}
						return nil
					}})
			}
		}
		found, err := invariants.Run(ctx, w.under, id, effects, invariants.Rules{MaxTurns: w.max.turns, Resting: true})
		if err != nil {
			return nil, err
		}
		w.add(id, found)
	}
	return w.violations, nil
}

// committed checks a commit that took place.
func (w *witness) committed(c *faulty.Call) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.seen(c) {
		return
	}
	w.commits++
	w.saw(c.Writes, c.Versions)
	for i, o := range c.Writes {
		w.versions[o.Doc.Path] = c.Versions[i]
	}
}

// seen reports whether the commit was seen already. Two processes may make the same commit, byte for byte. steady then
// takes the one that took place for the other one, whose answer was lost.
func (w *witness) seen(c *faulty.Call) bool {
	for i, o := range c.Writes {
		if c.Versions[i].IsZero() || !w.versions[o.Doc.Path].Equal(c.Versions[i]) {
			return false
		}
	}
	return true
}

// commit is one commit that took place.
type commit struct {
	*witness
	at      time.Time
	created map[string]bool
	written map[string]store.Write
	asked   bool                      // its user gets more open approvals; an approval that replaces another adds none
	intents map[string]bool           // actions with an audit entry of their intent in this commit
	growth  map[string][]policy.Entry // entries that were added to a user's document, by user
}

func (w *witness) saw(writes []store.Write, versions []time.Time) {
	c := &commit{witness: w, created: map[string]bool{}, written: map[string]store.Write{}, intents: map[string]bool{},
		growth: map[string][]policy.Entry{}}
	size := 0
	for i, o := range writes {
		if o.Op == store.OpCheck {
			continue
		}
		c.at, c.created[o.Doc.Path], c.written[o.Doc.Path] = versions[i], o.Op == store.OpCreate, o
		size += len(o.Doc.Data)
		if o.Op == store.OpDelete {
			w.deleted(o.Doc.Path)
			continue
		}
		if len(o.Doc.Data) > store.MaxDoc {
			w.broken(invariants.Bounds, "%s has %d bytes", o.Doc.Path, len(o.Doc.Data))
		}
		w.docs[o.Doc.Path] = o.Doc
	}
	if size > store.MaxCommit {
		w.broken(invariants.Bounds, "a commit of %d bytes", size)
	}
	for _, look := range []struct {
		collection string
		see        func(store.Write)
	}{{"audit/", c.entry}, {"users/", c.user}, {"approvals/", c.approval}, {"runs/", c.run}} {
		for _, o := range writes {
			if o.Op != store.OpDelete && o.Op != store.OpCheck && strings.HasPrefix(o.Doc.Path, look.collection) &&
				strings.Count(o.Doc.Path, "/") == 1 {
				look.see(o)
			}
		}
	}
	for uid, entries := range c.growth {
		w.broken(invariants.AllowGrowth, "%s always allows %v, which no decision of the commit asked for", uid, entries)
	}
}

// deleted checks a document that its user deleted. It is never one of the audit, and never a run in progress.
func (w *witness) deleted(p string) {
	delete(w.docs, p)
	id := path.Base(p)
	switch {
	case strings.HasPrefix(p, "audit/"):
		w.broken(invariants.AuditChain, "%s was deleted", p)
	case strings.HasPrefix(p, "approvals/"):
		delete(w.approvals, id)
	case w.runs[id] != nil && strings.Count(p, "/") == 1:
		if w.runs[id].state.End == nil {
			w.broken(invariants.NoOrphan, "run %s was deleted before it ended", id)
		}
		w.ended[id] = w.runs[id]
		delete(w.runs, id)
	}
}

func read[T any](w *witness, o store.Write) (v T) {
	if err := json.Unmarshal(o.Doc.Data, &v); err != nil {
		w.broken(invariants.NoOrphan, "%s cannot be read: %v", o.Doc.Path, err)
	}
	return v
}

// entry checks an audit entry against its chain.
func (c *commit) entry(o store.Write) {
	e := read[audit.Entry](c.witness, o)
	sealed, head := audit.Seal(c.chains[e.RunID], e)
	if o.Op != store.OpCreate || !reflect.DeepEqual(sealed, e) || o.Doc.Path != document.AuditPath(e.RunID, e.Seq) {
		c.broken(invariants.AuditChain, "%s is not the next link of its chain", o.Doc.Path)
	}
	c.chains[e.RunID] = head
	c.intents[e.ActionID] = c.intents[e.ActionID] || e.Kind == audit.Intent
}

func (c *commit) user(o store.Write) {
	u := read[run.User](c.witness, o)
	for _, e := range u.Allow {
		before := slices.IndexFunc(c.users[u.UID].Allow, func(b policy.Entry) bool {
			b.Day, b.Used = e.Day, e.Used
			return reflect.DeepEqual(b, e)
		})
		switch {
		case before < 0:
			c.growth[u.UID] = append(c.growth[u.UID], e)
		case !reflect.DeepEqual(c.users[u.UID].Allow[before], e) && len(c.intents) == 0:
			c.broken(invariants.AllowGrowth, "an effect is counted for the entry %s, and none is started", e.ID)
		}
	}
	known := c.users[u.UID]
	c.asked = u.OpenApprovals() > known.OpenApprovals()
	c.users[u.UID] = u
}

// approval compares an approval with its earlier form. It is decided once, and never changes except for the number of
// refused decisions.
func (c *commit) approval(o store.Write) {
	a := read[run.Approval](c.witness, o)
	before, known := c.approvals[a.ID]
	c.approvals[a.ID] = a
	before.Refusals = a.Refusals
	switch {
	case !known && (a.Status != run.ApprovalOpen || !c.created[o.Doc.Path]):
		c.broken(invariants.OneDecision, "approval %s begins %s", a.ID, a.Status)
	case known && before.Status != run.ApprovalOpen &&
		!bytes.Equal(must(strictjson.Marshal(before)), must(strictjson.Marshal(a))):
		c.broken(invariants.Final, "approval %s was %s and is %s (%s)", a.ID, before.Status, a.Status, a.Decision)
	case known && a.Decision != run.ApproveEdited && before.ArgsHash != a.ArgsHash:
		c.broken(invariants.ByteIdentity, "approval %s is of another call than was shown", a.ID)
	}
	if _, there := c.written[document.RunPath(a.RunID)]; !there {
		c.broken(invariants.NoOrphan, "approval %s was written without its run", a.ID)
	}
}

func must(b []byte, err error) []byte {
	if err != nil {
		panic(err)
	}
	return b
}

// run applies a run's new events, one after the other.
func (c *commit) run(o store.Write) {
	doc := read[struct {
		run.Run
		Log document.Log[json.RawMessage] `json:"log"`
	}](c.witness, o)
	r := c.runs[doc.ID]
	if r == nil {
		r = &watched{uid: doc.UID, threadID: doc.ThreadID, agent: doc.AgentName(), state: &run.State{},
			handles: map[string][]string{}}
		c.runs[doc.ID], c.order = r, append(c.order, doc.ID)
	}
	var chunks []json.RawMessage
	for _, p := range doc.Log.ChunkPaths(o.Doc.Path, "events") {
		chunks = append(chunks, c.docs[p].Data)
	}
	events, err := doc.Log.All(chunks...)
	if err != nil || len(events) < len(r.events) {
		c.broken(invariants.LegalEdges, "run %s: %d events after %d (%v)", doc.ID, len(events), len(r.events), err)
		return
	}
	for i, e := range r.events {
		if !bytes.Equal(e, events[i]) {
			c.broken(invariants.Final, "run %s: event %d is another than it was", doc.ID, i+1)
		}
	}
	for i, raw := range events[len(r.events):] {
		var e run.Event
		if err := json.Unmarshal(raw, &e); err != nil || e.Seq != int64(len(r.events)+i+1) {
			c.broken(invariants.LegalEdges, "run %s: event %d cannot be read or is numbered %d (%v)", doc.ID,
				len(r.events)+i+1, e.Seq, err)
			continue
		}
		c.before(r, doc.Run, e)
		if err := r.state.Apply(e); err != nil {
			c.broken(invariants.LegalEdges, "run %s: %v", doc.ID, err)
		}
		c.after(r, doc.Run, e)
	}
	r.events = events
	c.standing(r, doc.Run)
}

// before checks an event against the state before it.
func (c *commit) before(r *watched, doc run.Run, e run.Event) {
	a := r.state.Action(e.ActionID)
	if a != nil && e.Finished != nil && e.Finished.Execution == run.UnknownState {
		c.leaves(r, a, e)
	}
	if r.agent == clerk {
		c.add(doc.ID, invariants.InOrder(r.state, e))
	}
	if r.agent == maker {
		c.add(doc.ID, invariants.InSequence(r.state, e))
	}
	if e.Type == run.RunQueued {
		c.alone(r, doc)
	}
	switch {
	case e.Started != nil && a != nil:
		c.begins(r, doc, a, e)
	case e.Decided != nil && a != nil:
		c.decides(r, a, e)
	case e.Finished != nil && a != nil && a.WaitsForClient():
		c.answered(r, doc, a, e)
	case e.Finished != nil && a != nil && a.Execution == run.UnknownState:
		c.broken(invariants.Unknown, "action %s was unknown and is %s without a person", a.ID, e.Finished.Execution)
	case e.Finished != nil && a != nil && e.Finished.Error != nil:
		c.givenUp(r, doc, a, e)
	case e.End != nil:
		c.ends(r, doc, e)
	}
}

// alone checks that a run begins in a thread that no run occupies.
func (c *commit) alone(r *watched, doc run.Run) {
	for id, other := range c.runs {
		if other != r && other.agent == maker && other.threadID == r.threadID && other.state.End == nil {
			c.broken(invariants.OneOpen, "run %s begins, and run %s of its thread is %s", doc.ID, id,
				other.state.Status)
		}
	}
}

// givenUp checks that each call is closed only for its own reasons. Neither an allowed call nor an open one ends
// because of the other calls.
func (c *commit) givenUp(r *watched, doc run.Run, a *run.Action, e run.Event) {
	code, over := e.Finished.Error.Code, r.state.Cancelled || !e.At.Before(doc.Deadline)
	switch {
	case a.Waiting() && !over && (code != fault.CodeExpired || e.At.Before(a.ExpiresAt)):
		c.broken(invariants.OwnReasons, "action %s waited until %s and was given up at %s: %s", a.ID, a.ExpiresAt, e.At,
			code)
	case a.Runnable() && a.Decision != "" && !over &&
		(code == fault.CodeExpired || code == "rejected" || code == "cancelled"):
		c.broken(invariants.OwnReasons, "action %s was approved and given up: %s", a.ID, code)
	}
}

// answered checks the end of a call that waits for its client. An answer is accepted in time. The call is given up when
// its time is up, its user sends another message, or the run is over.
func (c *commit) answered(r *watched, doc run.Run, a *run.Action, e run.Event) {
	late, over := !e.At.Before(a.ExpiresAt), r.state.Cancelled || !e.At.Before(doc.Deadline)
	why := e.Finished.Error
	switch {
	case why == nil || why.Code == "failed":
		if late || over {
			c.broken(invariants.Expiry, "the answer to action %s was taken at %s, after its end at %s", a.ID, e.At,
				a.ExpiresAt)
		}
	case !late && !over && !strings.HasPrefix(why.Message, "The user continued"):
		c.broken(invariants.OwnReasons, "action %s waited for its client until %s and was given up at %s: %s", a.ID,
			a.ExpiresAt, e.At, why.Code)
	}
}

// ends checks the end of a run against its calls. No call is left, unless the user cancels the run or its time is up,
// and no command continues.
func (c *commit) ends(r *watched, doc run.Run, e run.Event) {
	for _, a := range r.state.Current() {
		if !a.Terminal() && !r.state.Cancelled && e.At.Before(doc.Deadline) {
			c.broken(invariants.OwnReasons, "run %s has ended, and its action %s is %s", doc.ID, a.ID, a.Status)
		}
	}
	c.leftRunning(r)
}

// begins checks an intent, the one moment at which an effect is permitted.
func (c *commit) begins(r *watched, doc run.Run, a *run.Action, e run.Event) {
	t := c.tools[a.Tool]
	r.handles[a.ID] = append(r.handles[a.ID], e.Started.Handle)
	if doc.Lease.Owner != e.Started.Owner {
		c.broken(invariants.OneOwner, "action %s is started by another process than the one that holds the run", a.ID)
	}
	if !a.SideEffect {
		return
	}
	if !c.intents[a.ID] {
		c.broken(invariants.AuditChain, "action %s is started without an audit entry of it", a.ID)
	}
	// a process that was stopped between reading the clock and the commit could as well be stopped after it
	if c.users[r.uid].Disabled && !c.late {
		c.broken(invariants.Disabled, "action %s is started for a disabled user", a.ID)
	}
	if a.Status == run.ActionRejected || r.state.Cancelled {
		c.broken(invariants.RejectStops, "action %s is started after a rejection or a cancel", a.ID)
	}
	if run.ArgsHash(r.uid, t.Spec, a.Place, a.Args) != a.ArgsHash {
		c.broken(invariants.Authority, "action %s is started with other arguments than were validated", a.ID)
	}
	if t.Rules() {
		c.ruled(r, a)
	}
	// it waited as soon as it was proposed, or when its allowlist entry was gone
	if a.RequiresApproval || a.Decision != "" {
		if yes := statusAfter(a.Decision); yes != run.ApprovalApproved || a.DecidedBy != r.uid ||
			c.approvals[a.ApprovalID].ArgsHash != a.ArgsHash || c.approvals[a.ApprovalID].Place != a.Place {
			c.broken(invariants.Authority, "action %s is started on %q by %q", a.ID, a.Decision, a.DecidedBy)
		}
		return
	}
	if t.Rules() {
		return
	}
	to, err := t.Targets(a.Args)
	if err != nil || len(to) == 0 {
		c.broken(invariants.Authority, "action %s has no target and was not approved (%v)", a.ID, err)
	}
	for _, person := range to {
		id := policy.EntryID(r.uid, a.Tool, person.Value)
		valid := func(e policy.Entry) bool { return e.ID == id && c.at.Before(e.ExpiresAt) }
		if !slices.ContainsFunc(c.users[r.uid].Allow, valid) {
			c.broken(invariants.AllowNow, "action %s is started for %s, whom no entry names any more", a.ID,
				person.Value)
		}
	}
}

func statusAfter(d run.Decision) run.ApprovalStatus {
	switch d {
	case run.Reject:
		return run.ApprovalRejected
	case "":
		return run.ApprovalOpen
	}
	return run.ApprovalApproved
}

// decides checks a user's decision.
func (c *commit) decides(r *watched, a *run.Action, e run.Event) {
	d, ap := e.Decided, c.approvals[e.Decided.ApprovalID]
	if d.By != r.uid || ap.UID != r.uid {
		c.broken(invariants.Authority, "approval %s of %s was decided by %s", ap.ID, ap.UID, d.By)
	}
	if ap.Status != statusAfter(d.Decision) || ap.Decision != d.Decision || ap.ArgsHash != d.ArgsHash {
		c.broken(invariants.OneDecision, "approval %s is %s (%s) where %s was decided", ap.ID, ap.Status, ap.Decision,
			d.Decision)
	}
	// a decision read a microsecond before the end is committed at the end
	if !e.At.Before(ap.ExpiresAt) || !c.late && c.at.After(ap.ExpiresAt) {
		c.broken(invariants.Expiry, "approval %s was decided at %s by the store's clock and had ended at %s", ap.ID,
			c.at,
			ap.ExpiresAt)
	}
	if d.Decision == run.ApproveAlways {
		c.allows(r, a, e)
	}
}

// allows compares the entries that an "always allow" has added with the exact recipients of the call.
func (c *commit) allows(r *watched, a *run.Action, e run.Event) {
	to, err := c.tools[a.Tool].Targets(a.Args)
	if err != nil {
		c.broken(invariants.AllowGrowth, "action %s: %v", a.ID, err)
	}
	var wrong []policy.Entry
	for _, n := range c.growth[r.uid] {
		reached := slices.Contains(to, tool.Target{Kind: tool.TargetAddress, Value: n.Recipient})
		if n.Tool != a.Tool || !reached || n.ID != policy.EntryID(r.uid, a.Tool, n.Recipient) {
			wrong = append(wrong, n)
		}
	}
	delete(c.growth, r.uid)
	if len(wrong) > 0 {
		c.growth[r.uid] = wrong
	}
}

// after checks an event against the state after it.
func (c *commit) after(r *watched, doc run.Run, e run.Event) {
	a := r.state.Action(e.ActionID)
	switch {
	case e.Turn != nil && len(r.state.Turns) > c.max.turns:
		c.broken(invariants.OneAnswer, "run %s has %d turns", doc.ID, len(r.state.Turns))
	case e.Proposed != nil && (a == nil || a.ID != run.ActionID(doc.ID, a.Turn, a.Index, a.Attempt)):
		c.broken(invariants.OneAnswer, "action %s derives from no turn of run %s", e.ActionID, doc.ID)
	case e.Wait != nil && e.Wait.Kind != run.KindCall:
		ap := c.approvals[e.Wait.ApprovalID]
		if ap.RunID != doc.ID || ap.UID != doc.UID || ap.ActionID != e.ActionID || !bytes.Equal(ap.Args, a.Args) ||
			ap.ArgsHash != a.ArgsHash {
			c.broken(invariants.NoOrphan, "approval %q does not belong to action %s", ap.ID, e.ActionID)
		}
		if a.PolicyDecision == string(policy.Deny) {
			c.broken(invariants.DenyRules, "action %s was denied and has an approval", a.ID)
		}
		if u := c.users[doc.UID]; e.Wait.Kind == run.KindApproval && a.Attempt == 0 && c.asked &&
			u.CountOf(doc.Agent).Open > c.max.open {
			c.broken(invariants.Bounds, "%s has %d approvals of %s open", doc.UID, u.CountOf(doc.Agent).Open,
				doc.AgentName())
		}
	}
}

// standing checks a run as a commit leaves it.
func (c *commit) standing(r *watched, doc run.Run) {
	c.add(doc.ID, invariants.OfState(r.state))
	if doc.Audit != c.chains[doc.ID] {
		c.broken(invariants.AuditChain, "run %s ends its chain at %d, and %d entries are there", doc.ID, doc.Audit.Seq,
			c.chains[doc.ID].Seq)
	}
	if doc.UID != r.uid || doc.ThreadID != r.threadID {
		c.broken(invariants.NoOrphan, "run %s has another owner or thread than before", doc.ID)
	}
}

// did records an act of the provider, and compares it with the events recorded so far.
func (w *witness) did(call tool.Call, name, sent string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.effects[call.ActionID] = append(w.effects[call.ActionID], providerCall{call, sent})
	r := w.runs[call.RunID]
	if r == nil {
		r = w.ended[call.RunID]
	}
	if r == nil || r.state.Action(call.ActionID) == nil {
		w.broken(invariants.Authority, "an effect of action %s, which is not recorded", call.ActionID)
		return
	}
	a := r.state.Action(call.ActionID)
	if !slices.Contains(r.handles[a.ID], call.Handle) || call.UID != r.uid {
		w.broken(invariants.Authority, "an effect of action %s for %s with a handle that is not recorded", a.ID,
			call.UID)
	}
	if call.Place != a.Place {
		w.broken(invariants.Authority, "an effect of action %s in %s that was approved for %s", a.ID, call.Place.Name,
			a.Place.Name)
	}
	if shown := sentAs(call.Args); run.ArgsHash(r.uid, w.tools[name].Spec, call.Place, call.Args) != a.ArgsHash ||
		sent != shown {
		w.broken(invariants.ByteIdentity, "%q was sent where %q was approved", sent, shown)
	}
}

// asked checks a call of the model against its run. The run's last answer must have been handled.
func (w *witness) asked(runID string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	r := w.runs[runID]
	if r == nil {
		return // it is being started, or was deleted
	}
	for _, a := range r.state.Current() {
		if !a.Terminal() {
			w.broken(invariants.OneAnswer, "the model is asked again about run %s, whose action %s is %s", runID, a.ID,
				a.Status)
		}
	}
}

// published checks a message that follows a decision against the decision.
func (w *witness) published(approvalID string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.approvals[approvalID].Status == run.ApprovalOpen {
		w.broken(invariants.NoLostYes, "the resume after %s was published before the decision was committed",
			approvalID)
	}
}

// check checks every action and approval between two steps, and returns the violations found so far.
func (w *witness) check() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	type count struct{ uid, agent string }
	open := map[count]int{}
	for id, r := range w.runs {
		for _, a := range r.state.Actions {
			w.add(id, invariants.OfAction(a, len(w.effects[a.ID])))
		}
		for _, a := range r.state.Open() {
			if ap := w.approvals[a.ApprovalID]; r.state.End == nil && !a.WaitsForClient() &&
				(ap.Status != run.ApprovalOpen || ap.RunID != id) {
				w.broken(invariants.AwaitingOpen, "action %s waits for approval %q, which is %s", a.ID, a.ApprovalID,
					ap.Status)
			}
		}
	}
	for _, ap := range w.approvals {
		if ap.Status != run.ApprovalOpen {
			continue
		}
		open[count{ap.UID, ap.Agent}]++
		r := w.runs[ap.RunID]
		if r == nil || r.state.End != nil || r.state.Action(ap.ActionID) == nil ||
			r.state.Action(ap.ActionID).ApprovalID != ap.ID {
			w.broken(invariants.NoOrphan, "approval %s is open and nothing waits for it", ap.ID)
		}
	}
	for uid, u := range w.users {
		for _, name := range modelAgents {
			if n := u.CountOf(name).Open; n != open[count{uid, name}] {
				w.broken(invariants.Bounds, "%s is said to have %d approvals of %s open and has %d", uid, n, name,
					open[count{uid, name}])
			}
		}
	}
	return w.violations
}

// settled checks the final state. Every run has ended, or waits for a user or client who can answer.
func (w *witness) settled() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	for id, r := range w.runs {
		w.add(id, invariants.AtRest(r.state, run.Terms{Strict: r.agent == clerk, Sequential: r.agent == maker}))
		if d, there := w.docs[document.ThreadPath(r.threadID)]; there {
			w.names(id, r, d)
		}
	}
	return w.violations
}

// names checks that the thread of an exclusive agent's run names it until it has ended.
func (w *witness) names(id string, r *watched, d store.Doc) {
	var t run.Thread
	if err := document.Decode(d, &t); err != nil {
		w.broken(invariants.OneOpen, "thread %s: %v", r.threadID, err)
	}
	if open := r.agent == maker && r.state.End == nil; open != (t.OpenRun == id) {
		w.broken(invariants.OneOpen, "run %s is %s, and its thread names %q", id, r.state.Status, t.OpenRun)
	}
}

// action returns an action, and the id of its run, unless its run was deleted.
func (w *witness) action(id string) (runID string, a *run.Action) {
	for runID, r := range w.runs {
		if a := r.state.Action(id); a != nil {
			return runID, a
		}
	}
	return "", nil
}

// tally counts the steps of a sequence, so that a test that does nothing is noticed.
func (w *witness) tally(into map[string]int) {
	for _, runs := range []map[string]*watched{w.runs, w.ended} {
		for _, r := range runs {
			into["runs"]++
			tallyNeighbours(r.state, into)
			for _, a := range r.state.Actions {
				w.tallyAction(a, into)
			}
		}
	}
}

// tallyNeighbours counts the pairs of approvals of one turn by how each was decided.
func tallyNeighbours(s *run.State, into map[string]int) {
	answers := func(a *run.Action) (yes, no, late bool) {
		return a.Status == run.ActionCompleted && a.Decision != "", a.Status == run.ActionRejected,
			a.Error != nil && a.Error.Code == fault.CodeExpired
	}
	for i, a := range s.Actions {
		for _, b := range s.Actions[i+1:] {
			yes, no, late := answers(a)
			yes2, no2, late2 := answers(b)
			switch {
			case a.Turn != b.Turn:
			case yes && no2 || no && yes2:
				into["one of two rejected, the other done"]++
			case yes && late2 || late && yes2:
				into["one of two expired, the other done"]++
			case no && late2 || late && no2:
				into["one of two rejected, the other expired"]++
			}
			if w, u := a.Execution == run.UnknownState, b.Execution == run.UnknownState; a.Turn == b.Turn &&
				(w && (yes2 || no2) || u && (yes || no)) {
				into["one of two unknown, the other answered"]++
			}
		}
	}
}

func (w *witness) tallyAction(a *run.Action, into map[string]int) {
	for what, is := range map[string]bool{
		"started":                  a.SideEffect && a.Started.Attempt > 0,
		"started on the allowlist": a.SideEffect && a.Started.Attempt > 0 && a.Decision == "",
		"started again":            a.SideEffect && a.Started.Attempt > 1,
		"completed":                a.SideEffect && a.Status == run.ActionCompleted,
		"unknown":                  a.Execution == run.UnknownState,
		"rejected":                 a.Status == run.ActionRejected,
		"expired":                  a.Error != nil && a.Error.Code == fault.CodeExpired,
		"reviewed":                 a.Decision == run.ConfirmDone || a.Decision == run.StartNew,
		"not run":                  a.Error != nil && a.Error.Code == "not_run",
		"denied":                   a.PolicyDecision == string(policy.Deny),
		"answered":                 a.Kind == run.KindCall && a.Status == run.ActionCompleted,
		"not answered":             a.Error != nil && a.Error.Code == "not_answered",
		"answered in a form":       a.Tool == "final_answer" && a.Status == run.ActionCompleted,
		"signed":                   a.Tool == "sign" && a.Status == run.ActionCompleted,
	} {
		if is {
			into[what]++
		}
	}
}
