// Package invariants compares the stored documents with the effects at the providers. The numbers are those of the list
// of invariants in scripts/prove/README.md. Each check covers one run, and reads the stored documents and the
// providers' own records, never an answer of the API.
package invariants

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/store"
	"github.com/countersign-run/countersign/shared/store/audit"
	"github.com/countersign-run/countersign/shared/store/document"
)

// The numbers of the invariants.
const (
	EffectBound  = 1  // at most one effect for an action
	Truth        = 2  // completed: exactly one effect; rejected, denied, expired: none
	Authority    = 3  // each effect was approved by its owner, in time, or is covered by the owner's allowlist
	ByteIdentity = 4  // the provider received exactly the approved arguments
	OneDecision  = 5  // an approval is decided once, and all documents agree about it
	Final        = 6  // recorded outcomes do not change
	OneOwner     = 7  // only the process that holds the run's lease starts an action
	LegalEdges   = 8  // the recorded events are a path of the state machine
	AwaitingOpen = 9  // a run awaits if and only if something in it is open
	NoOrphan     = 10 // run, approval, thread and audit have one owner and exist together
	Liveness     = 11 // at rest nothing is queued, planning, executing, leased or due
	NoLostYes    = 12 // an approval leads to completed, failed or a review
	DenyRules    = 13 // a denied call has no approval and no effect
	OneAnswer    = 14 // each turn has one stored answer of the model, within the bound
	RejectStops  = 15 // a rejected call, or a call of a cancelled run, is not started
	AllowGrowth  = 16 // an allowlist entry comes from its owner's decision about that recipient
	AllowNow     = 17 // an entry permits an effect only while it exists and has not expired
	Expiry       = 18 // a decision comes before the approval expires
	AuditChain   = 22 // the chain verifies; an intent before each effect, an outcome after it
	OneMessage   = 23 // the thread holds the prompt once and the answer once
	Unknown      = 25 // only a person resolves an unknown outcome
	Bounds       = 27 // documents, open approvals and turns stay within their limits
	Disabled     = 30 // nothing is started for a disabled user
	OwnReasons   = 31 // a call is closed for its own reasons, not for those of the other calls
	StrictOrder  = 32 // in strict order, a call starts or asks only after the calls before it in its turn are done
	Sequence     = 33 // in sequence, a call starts only after the calls before it in its turn have an outcome
	OneOpen      = 34 // a thread of an exclusive agent, and a terminal, has one open run, and names it
	Sealed       = 35 // no stored secret of a host is readable
	Grants       = 36 // a call by a plan's grant is within the confirmed grant and its number of uses
	Telling      = 37 // each published event is delivered, in order, with the same bytes each time
)

// Effect is one completed operation of a provider.
type Effect struct {
	UID      string
	ActionID string // as the provider stores it
	// returns the difference between the received data and these arguments; nil: unknown
	Agrees func(args json.RawMessage) error
}

// Violation is one invariant that does not hold.
type Violation struct {
	Number int
	RunID  string
	Text   string
}

func (v Violation) String() string {
	return fmt.Sprintf("invariant %d, run %s: %s", v.Number, v.RunID, v.Text)
}

// Rules holds the settings of the configuration that the checks need.
type Rules struct {
	MaxTurns int      // MAX_MODEL_CALLS
	MaxOpen  int      // MAX_OPEN_APPROVALS; 0 means no cap
	Strict   []string // the agents whose calls run in strict order
	Resting  bool     // everything was delivered and swept: nothing may still be under way
}

// All checks every run of the store. The error is the store's.
func All(ctx context.Context, st store.Store, effects []Effect, r Rules) ([]Violation, error) {
	var all []Violation
	l := newLedger(effects)
	for d, err := range document.All(ctx, st, document.AllRuns(300)) {
		if err != nil {
			return all, err
		}
		found, err := check(ctx, st, document.ID(d), l, r)
		if err != nil {
			return all, err
		}
		all = append(all, found...)
	}
	return append(all, l.strays()...), nil
}

// Run checks one run against the effects of its actions; effects of other runs are ignored.
func Run(ctx context.Context, st store.Store, runID string, effects []Effect, r Rules) ([]Violation, error) {
	return check(ctx, st, runID, newLedger(effects), r)
}

// Handles returns the handles of a run's intents with their actions, or none if the run does not exist.
func Handles(ctx context.Context, st store.Store, runID string) (map[string]string, error) {
	docs, err := st.Get(ctx, document.RunPath(runID))
	if err != nil || !docs[0].Exists() {
		return nil, err
	}
	c := &checked{approvals: map[string]run.Approval{}}
	if err := c.read(ctx, st, runID); err != nil {
		return nil, err
	}
	out := map[string]string{}
	for _, e := range c.events {
		if e.Started != nil && e.Started.Handle != "" {
			out[e.Started.Handle] = e.ActionID
		}
	}
	return out, nil
}

// ledger holds facts that concern several runs.
type ledger struct {
	effects map[string][]Effect // by action
	claimed map[string]bool     // the actions that some run has
	granted map[string]bool     // IDs of the allowlist entries that a decision created
	entries map[string]string   // IDs of the existing entries, and their users
}

func newLedger(effects []Effect) *ledger {
	l := &ledger{map[string][]Effect{}, map[string]bool{}, map[string]bool{}, map[string]string{}}
	for _, e := range effects {
		l.effects[e.ActionID] = append(l.effects[e.ActionID], e)
	}
	return l
}

// strays returns effects that belong to no action of any run, and allowlist entries that no decision created.
func (l *ledger) strays() (out []Violation) {
	for id := range l.effects {
		if !l.claimed[id] {
			out = append(out, Violation{Authority, "", fmt.Sprintf("an effect of action %q, which no run has", id)})
		}
	}
	for id, uid := range l.entries {
		if !l.granted[id] {
			out = append(out, Violation{AllowGrowth, "",
				fmt.Sprintf("an allowlist entry of %s that no decision has made", uid)})
		}
	}
	return out
}

// checked is one run with everything that belongs to it.
type checked struct {
	rules     Rules
	doc       store.Doc
	run       run.Run
	events    []run.Event
	state     *run.State
	approvals map[string]run.Approval
	entries   []audit.Entry
	thread    run.Thread
	user      run.User
	ledger    *ledger
	found     []Violation
}

func (c *checked) violates(number int, format string, args ...any) {
	c.found = append(c.found, Violation{number, c.run.ID, fmt.Sprintf(format, args...)})
}

// add adds the violations that a rule has found in the run.
func (c *checked) add(found []Violation) {
	for _, v := range found {
		c.violates(v.Number, "%s", v.Text)
	}
}

func check(ctx context.Context, st store.Store, runID string, l *ledger, r Rules) ([]Violation, error) {
	c := &checked{rules: r, ledger: l, approvals: map[string]run.Approval{}}
	if err := c.read(ctx, st, runID); err != nil {
		return nil, err
	}
	state, err := run.Fold(c.events)
	if err != nil {
		c.violates(LegalEdges, "%v", err)
		return c.found, nil
	}
	c.state = state
	c.status()
	c.turns()
	for _, a := range state.Actions {
		c.action(a)
	}
	c.decisions()
	c.rejects()
	c.grants()
	c.chain()
	c.messages()
	c.allowlist()
	if err := c.terminal(ctx, st); err != nil {
		return nil, err
	}
	if r.Resting {
		c.rest()
	}
	return c.found, nil
}
