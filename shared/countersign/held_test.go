package countersign_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/countersign-run/countersign/shared/countersign"
	"github.com/countersign-run/countersign/shared/store/memory"
)

// TestHeld approves an effect with a delay. A call that continues the run waits until the time is over. Until then the
// user can undo the approval, also while that call waits, and afterwards no more.
func TestHeld(t *testing.T) {
	const hold = 30 * time.Second
	for name, c := range map[string]struct {
		decide countersign.Decision
		undo   time.Duration // after the decision; 0: never
		sent   []string
		hears  string // a part of what the model hears
	}{
		"yes":         {decide: countersign.Yes(), sent: []string{"a@x.com: hello"}, hears: `"id"`},
		"yes, undone": {decide: countersign.Yes(), undo: hold / 2, hears: "took the approval of this back"},
		"edited, undone": {decide: countersign.Edited(mail{"b@x.com", "bye"}), undo: hold - time.Second,
			hears: "took the approval of this back"},
		"edited, too late": {decide: countersign.Edited(mail{"b@x.com", "bye"}), undo: hold + time.Second,
			sent: []string{"b@x.com: bye"}, hears: `"editedBy":"user"`},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p, m := &post{}, newScript(mailTo("a@x.com"), say("So."))
				a := newAgent(t, countersign.Options{Provider: m, Tools: p.tools(), Store: memory.New(time.Now)})
				s := a.NewSession()
				res, err := s.Send(t.Context(), "go")
				if err != nil || len(res.Approvals) != 1 {
					t.Fatalf("%v %+v; want len(res.Approvals) 1", err, res)
				}
				ap := res.Approvals[0]
				wants(t, a, ap, countersign.Undo(), "not_applicable")
				wants(t, a, ap, c.decide.Held(hold), "")
				if c.undo > 0 {
					code := ""
					if c.sent != nil {
						code = "already_resolved"
					}
					time.AfterFunc(c.undo, func() { wants(t, a, ap, countersign.Undo(), code) })
				}
				begun := time.Now()
				_, err = told(joined(s.Continue(t.Context())))
				if took := time.Since(begun).Round(time.Second); err != nil || took != hold {
					t.Errorf("continued for %s: %v", took, err)
				}
				time.Sleep(hold)
				if !slices.Equal(p.sent, c.sent) || !strings.Contains(heard(m), c.hears) {
					t.Errorf("sent %q; the model hears %s", p.sent, heard(m))
				}
			})
		})
	}
}

// wants records the decision, and checks the code of the error. An empty code means no error.
func wants(t *testing.T, a *countersign.Agent, ap countersign.Approval, d countersign.Decision, code string) {
	t.Helper()
	err, got := a.Resolve(t.Context(), ap, d), ""
	if e := (*countersign.Error)(nil); errors.As(err, &e) {
		got = e.Code
	}
	if got != code || err != nil && got == "" {
		t.Errorf("%v, and not %q", err, code)
	}
}
