package hostile

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/countersign-run/countersign/shared/audit"
	"github.com/countersign-run/countersign/shared/document"
	"github.com/countersign-run/countersign/shared/loop"
	"github.com/countersign-run/countersign/shared/testkit"
	"github.com/countersign-run/countersign/shared/testkit/faulty"
)

var deletion = regexp.MustCompile(`(?i)^(?:delete|erase|forget|remove) (?:the )?(?:user )?(\w+)$`)

// erased has an operator delete a user who has sent a mail, waits with another, and has a plain conversation. No
// document holds anything of what they wrote, and the chains of the audit are whole up to the end that they had.
func (s *env) erased(text string) (got, error) {
	m := deletion.FindStringSubmatch(text)
	if m == nil {
		return got{}, unknown("gdpr: %s", text)
	}
	uid := m[1]
	var seen *faulty.Recorder
	if err := s.open(func(l *loop.Loop) {
		seen = faulty.Record(l.Store)
		l.Store = seen
	}); err != nil {
		return got{}, err
	}
	sent, e1 := s.open1("", uid)
	e2 := s.decided(uid, sent, "approve_and_always_allow_recipient")
	_, e3 := s.opened(uid, "gmail_send", testkit.Mail("bob@example.com", "waits", canaryOf(uid)))
	_, e4 := s.ask(uid, canaryOf(uid), testkit.Says("About "+canaryOf(uid)))
	_, head, e5 := s.chain(sent)
	if err := errors.Join(e1, e2, e3, e4, e5); err != nil {
		return got{}, err
	}
	done, err := s.w.App.Offboard().Delete(s.ctx, uid)
	if err != nil || !done.Gone {
		return got{}, errors.Join(err, fmt.Errorf("the deletion: %+v", done))
	}
	entries, err := s.remains(seen, uid, sent.RunID)
	if err != nil {
		return got{}, err
	}
	if problems := audit.Verify(entries, head); len(problems) > 0 || len(entries) != 4 {
		return got{}, fmt.Errorf("the chain of %d entries: %v", len(entries), problems)
	}
	return got{status: 200, class: "none",
		detail: "there are no content keys, for the audit has no content: the content itself is gone"}, nil
}

// remains looks through every document that was written and exists, and returns the run's entries.
func (s *env) remains(seen *faulty.Recorder, uid, runID string) (entries []audit.Entry, err error) {
	left, err := seen.Left(s.ctx)
	if err != nil {
		return nil, err
	}
	for _, d := range left {
		if text := string(d.Data); strings.Contains(text, canaryOf(uid)) ||
			strings.Contains(text, testkit.Address(uid)) || strings.Contains(text, "bob@example.com") {
			return nil, fmt.Errorf("%s still holds what the user wrote: %.200s", d.Path, text)
		}
		if strings.HasPrefix(d.Path, "audit/"+runID) {
			e := audit.Entry{}
			if err := document.Decode(d, &e); err != nil {
				return nil, err
			}
			entries = append(entries, e)
		}
	}
	return entries, nil
}
