package chaos

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/countersign-run/countersign/shared/agent/policy"
	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/engine/queue"
	"github.com/countersign-run/countersign/shared/store"
	"github.com/countersign-run/countersign/shared/store/audit"
	"github.com/countersign-run/countersign/shared/store/document"
	"github.com/countersign-run/countersign/shared/tools/gmail"
)

// slowFor is how long the store stays slow.
const slowFor = 12 * time.Second

// do makes the fault, and returns a sentence about it. then, if any, ends the process.
func (p *Panel) do(ctx context.Context, in request) (did string, then func(), err error) {
	switch in.Fault {
	case "supervise":
		if p.supervise == nil {
			return "", nil, errors.New("the server cannot run under a supervisor here, or does already")
		}
		return "The server starts again under a supervisor.", func() { _ = p.supervise() }, nil
	case "kill", "kill-after-intent", "kill-before-outcome":
		return p.killed(in)
	case "lose":
		if !p.losing {
			return "", nil, errors.New("only the queue in this process can lose a message")
		}
		p.loses.Store(&in.RunID)
		return "The next message that resumes the run is dropped.", nil, nil
	case "later":
		later := *p.loop()
		later.Now = func() time.Time { return time.Now().Add(time.Minute) }
		swept, err := later.Sweep(ctx)
		return fmt.Sprintf("The sweep ran with a clock that is a minute ahead: %+v.", swept), nil, err
	case "twice":
		return p.twice(ctx, in)
	case "slow":
		each := time.Duration(in.Millis) * time.Millisecond
		p.slow.Store(&slowness{each, time.Now().Add(slowFor)})
		return fmt.Sprintf("Each commit takes %s longer, for %s.", each, slowFor), nil, nil
	case "fast":
		p.slow.Store(nil)
		return "The store is as fast as before.", nil, nil
	}
	return p.written(ctx, in)
}

// written makes a fault that writes to the store, past the server.
func (p *Panel) written(ctx context.Context, in request) (did string, then func(), err error) {
	switch in.Fault {
	case "forge-yes":
		err = p.forgeYes(ctx, in)
		return "A yes was written into the run and its card, past the server.", nil, err
	case "forge-entry":
		err = p.forgeEntry(ctx, in)
		return "An always-allow entry for " + in.Recipient + " was written into the user's document.", nil, err
	case "edit-audit":
		did, err = p.editAudit(ctx, in.RunID)
		return did, nil, err
	case "mend-audit":
		return "The entry is as it was.", nil, p.mendAudit(ctx, in.RunID)
	case "copy":
		return "The run's documents were copied.", nil, p.copy(ctx, in)
	case "roll-back":
		return "The older copy was put in place of the run's documents.", nil, p.put(ctx, in.RunID, p.copies, p.newer)
	case "roll-forward":
		return "The newer documents are back.", nil, p.put(ctx, in.RunID, p.newer, nil)
	}
	return "", nil, fmt.Errorf("there is no fault %q", in.Fault)
}

func (p *Panel) killed(in request) (did string, then func(), err error) {
	switch {
	case p.kill == nil:
		return "", nil, errors.New("no supervisor would start the server again")
	case in.Fault == "kill":
		return "kill -9 of the server's process.", p.kill, nil
	}
	p.kills.Store(&killing{in.RunID, in.Fault == "kill-after-intent"})
	if in.Fault == "kill-after-intent" {
		return "The process will be killed after it has stored the intent, before the effect.", nil, nil
	}
	return "The process will be killed after the effect, before it can store the outcome.", nil, nil
}

// around reports whether the writes contain the intent of the run, or its outcome.
func (k killing) around(writes []store.Write) bool {
	kind := audit.Outcome
	if k.after {
		kind = audit.Intent
	}
	for _, w := range writes {
		var e audit.Entry
		if strings.HasPrefix(w.Doc.Path, document.Audit+"/"+k.run) && document.Decode(w.Doc, &e) == nil &&
			e.Kind == kind {
			return true
		}
	}
	return false
}

// twice delivers the message that resumes the run two more times.
func (p *Panel) twice(ctx context.Context, in request) (did string, then func(), err error) {
	for range 2 {
		if err := p.queue.Resume(ctx, queue.Message{RunID: in.RunID}); err != nil {
			return "", nil, err
		}
	}
	return "The message that resumes the run was delivered two more times.", nil, nil
}

// change changes a document in the store.
func change[T any](ctx context.Context, st store.Store, path string, how func(*T)) error {
	docs, err := st.Get(ctx, path)
	if err != nil {
		return err
	}
	var v T
	if err := document.Decode(docs[0], &v); err != nil {
		return err
	}
	how(&v)
	data, err := json.Marshal(v)
	if err != nil {
		return err
	}
	_, err = st.Commit(ctx, store.Update(path, docs[0].Version, docs[0].Fields, data))
	return err
}

// forgeYes writes a decision without a signature, as an attacker with write access to the store can.
func (p *Panel) forgeYes(ctx context.Context, in request) error {
	var yes run.Decided
	var action string
	err := change(ctx, p.store, document.ApprovalPath(in.ApprovalID), func(a *run.Approval) {
		a.Status, a.Decision, a.DecidedAt = run.ApprovalApproved, run.ApproveOnce, time.Now()
		yes = run.Decided{ApprovalID: a.ID, Decision: run.ApproveOnce, By: a.UID, ArgsHash: a.ArgsHash}
		action = a.ActionID
	})
	if err != nil {
		return err
	}
	err = change(ctx, p.store, document.RunPath(in.RunID), func(r *run.Run) {
		r.Log.Count++
		r.Log.Tail = append(r.Log.Tail, run.Event{Type: run.ActionDecided, ActionID: action, Decided: &yes,
			Seq: r.Log.Count, At: time.Now()})
	})
	if err != nil {
		return err
	}
	return p.queue.Resume(ctx, queue.Message{RunID: in.RunID})
}

// forgeEntry writes an entry of the always-allow list without a signature.
func (p *Panel) forgeEntry(ctx context.Context, in request) error {
	docs, err := p.store.Get(ctx, document.ApprovalPath(in.ApprovalID))
	if err != nil {
		return err
	}
	var card run.Approval
	if err := document.Decode(docs[0], &card); err != nil {
		return err
	}
	return change(ctx, p.store, document.UserPath(card.UID), func(u *run.User) {
		u.Allow = append(u.Allow, policy.Entry{ID: policy.EntryID(card.UID, gmail.Name, in.Recipient), Tool: gmail.Name,
			Recipient: in.Recipient, Place: card.Place, CreatedAt: time.Now(),
			ExpiresAt: time.Now().Add(policy.EntryLife)})
	})
}

// entries returns the run's documents in the audit, and the entries in them.
func (p *Panel) entries(ctx context.Context, runID string) (docs []store.Doc, all []audit.Entry, err error) {
	for seq := int64(1); ; seq++ {
		got, err := p.store.Get(ctx, document.AuditPath(runID, seq))
		if err != nil || !got[0].Exists() {
			return docs, all, err
		}
		var e audit.Entry
		if err := document.Decode(got[0], &e); err != nil {
			return docs, all, err
		}
		docs, all = append(docs, got[0]), append(all, e)
	}
}

// editAudit changes the entry of the run's effect.
func (p *Panel) editAudit(ctx context.Context, runID string) (did string, err error) {
	docs, all, err := p.entries(ctx, runID)
	if err != nil || len(all) == 0 {
		return "", errors.Join(err, errors.New("the run has no audit entries"))
	}
	last := len(all) - 1
	p.mu.Lock()
	p.honest[runID] = docs[last]
	p.mu.Unlock()
	all[last].ErrorCode, all[last].Message = "ToolError", "never_happened"
	data, err := json.Marshal(all[last])
	if err != nil {
		return "", err
	}
	_, err = p.store.Commit(ctx, store.Update(docs[last].Path, docs[last].Version, docs[last].Fields, data))
	return fmt.Sprintf("Entry %d of the audit now says that the call failed.", all[last].Seq), err
}

// mendAudit undoes editAudit.
func (p *Panel) mendAudit(ctx context.Context, runID string) error {
	p.mu.Lock()
	d, ok := p.honest[runID]
	p.mu.Unlock()
	if !ok {
		return errors.New("no entry of this run was changed")
	}
	return p.restore(ctx, []store.Doc{d})
}

// restore puts documents back as they were.
func (p *Panel) restore(ctx context.Context, docs []store.Doc) error {
	for _, d := range docs {
		now, err := p.store.Get(ctx, d.Path)
		if err != nil {
			return err
		}
		if _, err := p.store.Commit(ctx, store.Update(d.Path, now[0].Version, d.Fields, d.Data)); err != nil {
			return err
		}
	}
	return nil
}

// copy keeps a copy of a run's documents.
func (p *Panel) copy(ctx context.Context, in request) error {
	docs, err := p.store.Get(ctx, document.RunPath(in.RunID), document.ApprovalPath(in.ApprovalID))
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.copies[in.RunID] = docs
	return nil
}

// put puts one of the copies in place of the run's documents, and keeps those in kept.
func (p *Panel) put(ctx context.Context, runID string, copies, kept map[string][]store.Doc) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	docs := copies[runID]
	if docs == nil {
		return errors.New("there is no copy of this run")
	}
	if kept != nil {
		var paths []string
		for _, d := range docs {
			paths = append(paths, d.Path)
		}
		newer, err := p.store.Get(ctx, paths...)
		if err != nil {
			return err
		}
		kept[runID] = newer
	}
	return p.restore(ctx, docs)
}

// verify compares the run's audit entries with each other and with the run, as ops verify does.
func (p *Panel) verify(ctx context.Context, runID string) (said []string, err error) {
	docs, err := p.store.Get(ctx, document.RunPath(runID))
	if err != nil {
		return nil, err
	}
	var r run.Run
	if err := document.Decode(docs[0], &r); err != nil {
		return nil, err
	}
	_, entries, err := p.entries(ctx, runID)
	if err != nil {
		return nil, err
	}
	said = []string{}
	for _, f := range audit.VerifyAt(time.Now(), entries, r.Audit) {
		said = append(said, f.String())
	}
	return said, nil
}
