package hostile

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/countersign-run/countersign/shared/audit"
	"github.com/countersign-run/countersign/shared/document"
	"github.com/countersign-run/countersign/shared/loop"
	"github.com/countersign-run/countersign/shared/store"
	"github.com/countersign-run/countersign/shared/testkit"
)

var deletion = regexp.MustCompile(`(?i)^(?:delete|erase|forget|remove) (?:the )?(?:user )?(\w+)$`)

// witness is a store that remembers which documents were written.
type witness struct {
	store.Store
	mu    sync.Mutex
	paths []string
}

func (w *witness) Commit(ctx context.Context, writes ...store.Write) ([]time.Time, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, write := range writes {
		w.paths = append(w.paths, write.Doc.Path)
	}
	return w.Store.Commit(ctx, writes...)
}

// erased has an operator delete a user who has sent a mail, waits with another, and has a plain conversation. No
// document holds anything of what they wrote, and the chains of the audit are whole up to the end that they had.
func (s *env) erased(text string) (got, error) {
	m := deletion.FindStringSubmatch(text)
	if m == nil {
		return got{}, unknown("gdpr: %s", text)
	}
	uid := m[1]
	seen := &witness{}
	if err := s.open(func(l *loop.Loop) { seen.Store, l.Store = l.Store, seen }); err != nil {
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

// remains looks through every document that was ever written, and returns the run's entries.
func (s *env) remains(seen *witness, uid, runID string) (entries []audit.Entry, err error) {
	for _, path := range slices.Compact(slices.Sorted(slices.Values(seen.paths))) {
		docs, err := s.w.App.Store.Get(s.ctx, path)
		if err != nil {
			return nil, err
		}
		if text := string(docs[0].Data); strings.Contains(text, canaryOf(uid)) ||
			strings.Contains(text, testkit.Address(uid)) || strings.Contains(text, "bob@example.com") {
			return nil, fmt.Errorf("%s still holds what the user wrote: %.200s", path, text)
		}
		if strings.HasPrefix(path, "audit/"+runID) {
			e := audit.Entry{}
			if err := document.Decode(docs[0], &e); err != nil {
				return nil, err
			}
			entries = append(entries, e)
		}
	}
	return entries, nil
}
