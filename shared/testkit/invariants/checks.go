package invariants

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/countersign-run/countersign/shared/agent/policy"
	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/store/audit"
	"github.com/countersign-run/countersign/shared/store/document"
)

// status compares the fields that queries use, and the status, with the events.
func (c *checked) status() {
	if f := document.RunFieldsOf(c.doc); f.Status != string(c.state.Status) || f.UID != c.run.UID {
		c.violates(LegalEdges, "the document says %s of %s, the events say %s of %s", f.Status, f.UID, c.state.Status,
			c.run.UID)
	}
	open := 0
	for _, a := range c.approvals {
		if a.Status == run.ApprovalOpen {
			open++
		}
	}
	c.add(OfState(c.state))
	waits := 0
	for _, a := range c.state.Open() {
		if !a.WaitsForClient() {
			waits++
		}
	}
	if c.state.End == nil && open != waits || c.state.End != nil && open > 0 {
		c.violates(AwaitingOpen, "%d approvals are open, and %d actions wait (%s)", open, waits, c.state.Status)
	}
	if n := c.user.CountOf(c.run.Agent).Open; c.rules.MaxOpen > 0 && n > c.rules.MaxOpen {
		c.violates(Bounds, "its user has %d open approvals of the %s", n, c.run.AgentName())
	}
}

func (c *checked) turns() {
	if n := len(c.state.Turns); c.rules.MaxTurns > 0 && n > c.rules.MaxTurns {
		c.violates(OneAnswer, "the model answered %d times", n)
	}
	planned := map[int]int{}
	for _, a := range c.state.Actions {
		if a.Attempt == 0 {
			planned[a.Turn]++
		}
	}
	for i, t := range c.state.Turns {
		if c.state.End == nil && planned[i+1] != t.Calls {
			c.violates(OneAnswer, "turn %d asked for %d calls and has %d actions", i+1, t.Calls, planned[i+1])
		}
	}
}

// action compares one action with its effects.
func (c *checked) action(a *run.Action) {
	c.ledger.claimed[a.ID] = true
	effects := c.ledger.effects[a.ID]
	c.add(OfAction(a, len(effects)))
	for _, e := range effects {
		c.authority(a, e)
	}
}

// authority looks for the approval or allowlist entry that permits an effect.
func (c *checked) authority(a *run.Action, e Effect) {
	if e.UID != c.run.UID {
		c.violates(Authority, "action %s ran as %s", a.ID, e.UID)
	}
	if e.Agrees != nil {
		if err := e.Agrees(a.Args); err != nil {
			c.violates(ByteIdentity, "action %s: %v", a.ID, err)
		}
	}
	if a.PolicyDecision == "allow" && len(a.Allowed) > 0 && a.ApprovalID == "" {
		return
	}
	if granted(a) {
		return
	}
	for _, ev := range c.events {
		if d := ev.Decided; d != nil && ev.ActionID == a.ID && approves(d.Decision) && d.By == c.run.UID &&
			d.ArgsHash == a.ArgsHash {
			return
		}
	}
	if !a.RequiresApproval && a.PolicyDecision == "allow" {
		return // the operator's own rules permit it
	}
	c.violates(Authority, "action %s (%s) took place without a yes", a.ID, a.Tool)
}

func approves(d run.Decision) bool {
	return d == run.ApproveOnce || d == run.ApproveAlways || d == run.ApproveAlwaysCommand || d == run.ApproveEdited
}

// decisions compares the approvals' documents with the events, and each approval's decision with its time.
func (c *checked) decisions() {
	decided, held := map[string]int{}, map[string]bool{}
	asked := map[string]time.Time{}
	for _, e := range c.events {
		if e.Wait != nil && e.Wait.Kind != run.KindCall {
			asked[e.Wait.ApprovalID] = e.Wait.ExpiresAt
			if _, ok := c.approvals[e.Wait.ApprovalID]; !ok {
				c.violates(NoOrphan, "approval %s is waited for and is not there", e.Wait.ApprovalID)
			}
		}
		if e.Decided == nil {
			continue
		}
		id := e.Decided.ApprovalID
		a := c.approvals[id]
		undone := a.Decision == run.Undo
		if held[id] && e.Decided.Decision == run.Undo && undone { // the yes is taken back, once
			held[id] = false
			continue
		}
		decided[id]++
		held[id] = !e.Decided.HeldUntil.IsZero()
		if decided[id] > 1 || a.Decision != e.Decided.Decision && !(undone && held[id]) {
			c.violates(OneDecision, "approval %s is decided %d times, now as %q, and its document says %q", id,
				decided[id], e.Decided.Decision, a.Decision)
		}
		if end, ok := asked[id]; approves(e.Decided.Decision) && (!ok || !e.At.Before(end)) {
			c.violates(Expiry, "approval %s was given at %s, after its end at %s", id, e.At, end)
		}
		if e.Decided.By != c.run.UID {
			c.violates(Authority, "approval %s was decided by %q", id, e.Decided.By)
		}
	}
	c.documents(asked, decided)
}

// documents looks for approvals that no event waits for, and for open ones that were decided.
func (c *checked) documents(asked map[string]time.Time, decided map[string]int) {
	for id, a := range c.approvals {
		if _, ok := asked[id]; !ok {
			c.violates(NoOrphan, "approval %s is waited for by no event", id)
		}
		if a.Status == run.ApprovalOpen && decided[id] > 0 {
			c.violates(OneDecision, "approval %s is open, and was decided", id)
		}
	}
}

// refusals are the decisions that prevent an action.
var refusals = []run.Decision{run.Reject, run.TakeBack, run.Undo}

// rejects looks for actions that were started after a rejection.
func (c *checked) rejects() {
	said, held := map[string]bool{}, map[string]time.Time{}
	for _, e := range c.events {
		switch {
		case e.Decided != nil && slices.Contains(refusals, e.Decided.Decision):
			said[e.ActionID] = true
		case e.Decided != nil:
			held[e.ActionID] = e.Decided.HeldUntil
		case e.Started != nil && e.At.Before(held[e.ActionID]):
			c.violates(RejectStops, "action %s was started at %s, while its user could undo it", e.ActionID, e.At)
		case e.Started != nil && said[e.ActionID]:
			c.violates(RejectStops, "action %s was started after a rejection", e.ActionID)
		}
	}
}

// chain verifies the audit, and that it has an intent for each effect and an outcome for each that is known.
func (c *checked) chain() {
	for _, p := range audit.Verify(c.entries, c.run.Audit) {
		c.violates(AuditChain, "%s", p)
	}
	for _, e := range c.entries {
		if a := c.state.Action(e.ActionID); a != nil && e.InputHash != "" && e.InputHash == a.ArgsHash {
			c.violates(AuditChain, "entry %d has the plain hash of the arguments, so they can be guessed", e.Seq)
		}
	}
	has := func(kind, action string) bool {
		return slices.ContainsFunc(c.entries,
			func(e audit.Entry) bool { return e.Kind == kind && e.ActionID == action })
	}
	for _, a := range c.state.Actions {
		if len(c.ledger.effects[a.ID]) > 0 && !has(audit.Intent, a.ID) {
			c.violates(AuditChain, "action %s took place without an intent on record", a.ID)
		}
		if a.SideEffect && a.Status == run.ActionCompleted && !has(audit.Outcome, a.ID) {
			c.violates(AuditChain, "action %s is completed without an outcome on record", a.ID)
		}
	}
}

// messages counts the run's messages in the thread; of a long thread only the newest part is read.
func (c *checked) messages() {
	if c.thread.ID == "" || len(c.thread.Log.Chunks) > 0 {
		return
	}
	if c.thread.UID != c.run.UID {
		c.violates(NoOrphan, "the thread is %s's", c.thread.UID)
	}
	questions, answers := 0, 0
	for _, m := range c.thread.Log.Tail {
		switch {
		case m.RunID != c.run.ID:
		case m.Role == run.RoleUser:
			questions++
		case m.ApprovalID == "":
			answers++
		}
	}
	if questions != 1 || c.state.End == nil && answers != 0 || c.state.End != nil && answers != 1 {
		c.violates(OneMessage, "the thread has its question %d times and its answer %d times", questions, answers)
	}
}

// allowlist records the entries that the run's decisions created, and the entries that its user has.
func (c *checked) allowlist() {
	for _, e := range c.user.Allow {
		c.ledger.entries[e.IDFor(c.run.UID)] = c.run.UID
	}
	for _, a := range c.state.Actions {
		if a.Decision == run.ApproveAlwaysCommand { // only the tool knows which calls that allows
			for _, e := range c.user.Allow {
				if e.Call != "" && e.Tool == a.Tool {
					c.ledger.granted[e.ID] = true
				}
			}
		}
		if a.Decision != run.ApproveAlways {
			continue
		}
		var to struct{ To, Cc, Bcc, Attendees []string }
		if err := json.Unmarshal(a.Args, &to); err != nil {
			c.violates(AllowGrowth, "action %s: %v", a.ID, err)
		}
		for _, r := range slices.Concat(to.To, to.Cc, to.Bcc, to.Attendees) {
			c.ledger.granted[policy.EntryID(c.run.UID, a.Tool, r)] = true
		}
	}
}

// rest looks for unfinished actions.
func (c *checked) rest() {
	c.add(AtRest(c.state, run.Terms{Strict: slices.Contains(c.rules.Strict, c.run.AgentName())}))
	due := document.RunFieldsOf(c.doc).Due
	switch {
	case c.state.End != nil && !due.IsZero():
		c.violates(Liveness, "it has ended, and is due at %s", due)
	case c.run.Lease.Owner != "":
		c.violates(Liveness, "it is %s, and leased", c.state.Status)
	}
}
