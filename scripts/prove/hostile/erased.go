package hostile

import (
	"regexp"
	"strings"

	"github.com/countersign-run/countersign/shared/engine/unit"
	"github.com/countersign-run/countersign/shared/store/audit"
	"github.com/countersign-run/countersign/shared/store/document"
	"github.com/countersign-run/countersign/shared/testkit"
	"github.com/countersign-run/countersign/shared/testkit/faulty"
)

var deletion = regexp.MustCompile(`(?i)^(?:delete|erase|forget|remove) (?:the )?(?:user )?(\w+)$`)

// erased deletes a user as an operator does. The user has sent an e-mail, has a pending e-mail, and has a plain
// conversation. No document may contain a text of the user, and the audit's chains must be complete up to their last
// entries.
func (s *env) erased(text string) got {
	m := deletion.FindStringSubmatch(text)
	if m == nil {
		s.unknown("gdpr: %s", text)
	}
	uid := m[1]
	var seen *faulty.Recorder
	s.open(func(l *unit.Env) {
		seen = faulty.Record(l.Store)
		l.Store = seen
	})
	sent := s.open1("", uid)
	s.decided(uid, sent, "approve_and_always_allow_recipient")
	s.opened(uid, "gmail_send", testkit.Mail("bob@example.com", "waits", canaryOf(uid)))
	s.ask(uid, canaryOf(uid), testkit.Says("About "+canaryOf(uid)))
	_, head := s.chain(sent)
	done, err := s.w.App.Offboard().Delete(s.ctx, uid)
	if s.must(err); !done.Gone {
		s.stop("the deletion: %+v", done)
	}
	entries := s.remains(seen, uid, sent.RunID)
	if problems := audit.Verify(entries, head); len(problems) > 0 || len(entries) != 4 {
		s.wrong("the chain of %d entries: %v", len(entries), problems)
	}
	return got{status: 200, class: "none",
		detail: "there are no content keys, for the audit has no content: the content itself is gone"}
}

// remains checks every document that was written and still exists, and returns the run's entries.
func (s *env) remains(seen *faulty.Recorder, uid, runID string) (entries []audit.Entry) {
	left, err := seen.Left(s.ctx)
	s.must(err)
	for _, d := range left {
		if text := string(d.Data); strings.Contains(text, canaryOf(uid)) ||
			strings.Contains(text, testkit.Address(uid)) || strings.Contains(text, "bob@example.com") {
			s.wrong("%s still holds what the user wrote: %.200s", d.Path, text)
		}
		if strings.HasPrefix(d.Path, "audit/"+runID) {
			e := audit.Entry{}
			s.must(document.Decode(d, &e))
			entries = append(entries, e)
		}
	}
	return entries
}
