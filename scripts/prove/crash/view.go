package crash

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/countersign-run/countersign/shared/store/document"
	"github.com/countersign-run/countersign/shared/testkit"
)

// at returns the client of the trial's user at a worker.
func (t *trial) at(to *process) testkit.Client {
	return func(ctx context.Context, method, path string, body any, header ...string) (testkit.Answer, error) {
		token, err := t.env.cloud.Token(t.uid)
		if err != nil {
			return testkit.Answer{}, err
		}
		a, err := testkit.Connect(to.client, to.url, token)(ctx, method, path, body, header...)
		if err != nil {
			return a, fmt.Errorf("%w: %w", errDown, err)
		}
		return a, nil
	}
}

func (t *trial) view(n int) testkit.Answer {
	a, err := t.at(t.env.worker).Run(context.Background(), t.runs[n])
	if err != nil || a.HTTP != 200 {
		return testkit.Answer{}
	}
	return a
}

// over reports whether the n-th run has ended or waits for a review.
func (t *trial) over(n int) bool {
	a := t.view(n)
	return a.Status == "completed" || a.Status == "failed" || len(a.Approvals) > 0 && a.Approvals[0].Kind == "review"
}

// asked reports whether the first run has requested its approval, and records the approval.
func (t *trial) asked() bool {
	a := t.view(0)
	if len(a.Approvals) > 0 && t.approval.ApprovalID == "" {
		t.approval = a.Approvals[0]
	}
	unasked := a.Status == "failed" || t.kind.tool == upload.tool && a.Status == "completed" // a fault hit its host
	t.slow = t.approval.ApprovalID == "" && unasked
	return t.approval.ApprovalID != "" || t.slow
}

// expired reports whether the first run's approval has expired.
func (t *trial) expired() bool {
	if !t.asked() {
		return false
	}
	time.Sleep(shortTTL / 10)
	a := t.view(0)
	return a.Status == "failed" || t.approval.ApprovalID == "" || time.Now().After(t.approval.ExpiresAt)
}

// rested reports whether every started run has ended, in the store too, or waits for its user. A session that waits for
// aMoment before its deadline has not rested.
func (t *trial) rested() bool {
	for n := range t.started() {
		a := t.view(n)
		ended := a.Status == "completed" || a.Status == "failed"
		waits := len(a.Approvals) > 0 && t.scenario.within == 0
		if !ended && !waits || ended && !t.written(a) || !t.published(a.RunID) {
			return false
		}
	}
	return t.mailed()
}

// written reports whether the stored run has the reported state. An expiry is reported before it is stored. The stored
// run stays due until its events are published and its containers are removed.
func (t *trial) written(a testkit.Answer) bool {
	if a.RunID == "" {
		return true
	}
	docs, err := t.env.store.Get(t.ctx, document.RunPath(a.RunID))
	if err != nil || !docs[0].Exists() || document.ApprovalFieldsOf(docs[0]).Status != a.Status {
		return err == nil && !docs[0].Exists()
	}
	return document.RunFieldsOf(docs[0]).Due.IsZero()
}

// ends describes how each run ended.
func (t *trial) ends() string {
	var out []string
	for n := range t.started() {
		a := t.view(n)
		text := fmt.Sprintf("run %d is %s %s", n+1, a.Status, a.ErrorReason)
		for _, act := range a.Actions {
			text += fmt.Sprintf(", its action %s %s", act.Status, act.ErrorReason)
		}
		out = append(out, text)
	}
	return strings.Join(out, "; ")
}

// started returns how many runs the scenario starts.
func (t *trial) started() int {
	n := 0
	for _, s := range t.scenario.steps {
		if strings.HasPrefix(s.name, "start ") {
			n++
		}
	}
	if t.nothing {
		n--
	}
	return n
}
