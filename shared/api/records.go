package api

import (
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/engine/records"
)

type ok struct {
	OK bool `json:"ok"`
}

// accepted is an answer with status 202: the work has begun, and continues after the answer.
type accepted struct{ body any }

func getThreads(r *request) (any, error) {
	limit, err := r.number("limit", 20, 1, 100)
	if err != nil {
		return nil, err
	}
	wanted, err := r.search()
	if err != nil {
		return nil, err
	}
	find := func() ([]records.ThreadView, string, error) {
		if wanted == (records.Search{}) {
			return r.api.Records.Threads(r.Context(), r.uid, r.URL.Query().Get("cursor"), int(limit))
		}
		return r.api.Records.Find(r.Context(), r.uid, wanted, r.URL.Query().Get("cursor"), int(limit))
	}
	threads, next, err := find()
	if err != nil {
		return nil, err
	}
	return struct {
		ok
		Threads    []records.ThreadView `json:"threads"`
		NextCursor string               `json:"nextCursor,omitempty"`
	}{ok{true}, threads, next}, nil
}

// maxWords is the maximum length of a search text, in characters.
const maxWords = 200

// search reads the filter for conversations from the query.
func (r *request) search() (s records.Search, err error) {
	if s.Words, err = r.words(); err != nil {
		return s, err
	}
	s.State = records.State(r.URL.Query().Get("state"))
	if s.State != "" && !slices.Contains(records.States, s.State) {
		return s, fault.Invalid("state", "must be one of waiting, running, completed, failed")
	}
	s.From, s.To, err = r.span()
	return s, err
}

// words reads the search text.
func (r *request) words() (string, error) {
	words := strings.TrimSpace(r.URL.Query().Get("q"))
	if n := utf8.RuneCountInString(words); n > maxWords {
		return "", fault.Invalid("q", "%d characters; the limit is %d", n, maxWords)
	}
	return words, nil
}

// span reads the time range.
func (r *request) span() (from, to time.Time, err error) {
	for name, at := range map[string]*time.Time{"from": &from, "to": &to} {
		if text := r.URL.Query().Get(name); text != "" {
			if *at, err = time.Parse(time.RFC3339, text); err != nil {
				return from, to, fault.Invalid(name, "must be a time such as 2026-03-02T10:00:00Z")
			}
		}
	}
	return from, to, nil
}

func getMessages(r *request) (any, error) {
	id, err := r.id("threadId")
	if err != nil {
		return nil, err
	}
	limit, err := r.number("limit", 50, 1, 200)
	if err != nil {
		return nil, err
	}
	before, err := r.number("before", 1<<53, 1, 1<<53)
	if err != nil {
		return nil, err
	}
	page, err := r.api.Records.Messages(r.Context(), r.uid, id, before, int(limit))
	if err != nil {
		return nil, err
	}
	return struct {
		ok
		records.MessagePage
	}{ok{true}, page}, nil
}

func patchThread(r *request) (any, error) {
	id, err := r.id("threadId")
	if err != nil {
		return nil, err
	}
	var in struct {
		Title string `json:"title"`
	}
	if _, err := r.decode(&in); err != nil {
		return nil, err
	}
	ctx, cancel := r.working()
	defer cancel()
	thread, err := r.api.Records.Rename(ctx, r.uid, id, in.Title)
	if err != nil {
		return nil, err
	}
	return struct {
		ok
		Thread records.ThreadView `json:"thread"`
	}{ok{true}, thread}, nil
}

func deleteThread(r *request) (any, error) {
	id, err := r.id("threadId")
	if err != nil {
		return nil, err
	}
	ctx, cancel := r.working()
	defer cancel()
	gone, err := r.api.Records.DeleteThread(ctx, r.uid, id)
	if err != nil || gone {
		return ok{true}, err
	}
	return accepted{struct {
		ok
		Status string `json:"status"`
	}{ok{true}, "deleting"}}, nil
}

func getAudit(r *request) (any, error) {
	runID := r.URL.Query().Get("runId")
	limit, err := r.number("limit", 50, 1, 200)
	if err != nil {
		return nil, err
	}
	wanted, about, err := r.auditSearch()
	if err != nil {
		return nil, err
	}
	find := func() (page records.AuditPage, err error) {
		cursor := r.URL.Query().Get("cursor")
		switch {
		case wanted != (records.AuditSearch{}):
			return r.api.Records.FindAudit(r.Context(), r.uid, wanted, cursor, int(limit))
		case !about:
			return r.api.Records.Audit(r.Context(), r.uid, runID, cursor, int(limit))
		}
		if page, err = r.api.Records.Audit(r.Context(), r.uid, runID, cursor, int(limit)); err != nil {
			return page, err
		}
		return page, r.api.Records.AddAbout(r.Context(), r.uid, &page)
	}
	page, err := find()
	if err != nil {
		return nil, err
	}
	return struct {
		ok
		records.AuditPage
	}{ok{true}, page}, nil
}

// auditSearch reads the filter for audit entries. about reports whether to add a description of each entry's action.
func (r *request) auditSearch() (s records.AuditSearch, about bool, err error) {
	q := r.URL.Query()
	if s.Words, err = r.words(); err != nil {
		return s, false, err
	}
	if s.State = run.Came(q.Get("state")); s.State != "" && !slices.Contains(run.AllCame, s.State) {
		return s, false, fault.Invalid("state", "must be one of done, failed, rejected, waiting, running")
	}
	if s.From, s.To, err = r.span(); err != nil {
		return s, false, err
	}
	if s != (records.AuditSearch{}) && q.Get("runId") != "" {
		return s, false, fault.Invalid("runId", "a search covers all runs: send either runId, or q, state, from and to")
	}
	switch q.Get("about") {
	case "", "false":
		return s, false, nil
	case "true":
		return s, true, nil
	}
	return s, false, fault.Invalid("about", "must be true or false")
}

func getAllowlist(r *request) (any, error) {
	entries, err := r.api.Records.Allowlist(r.Context(), r.uid)
	if err != nil {
		return nil, err
	}
	return struct {
		ok
		Entries []records.AllowView `json:"entries"`
	}{ok{true}, entries}, nil
}

func deleteAllowed(r *request) (any, error) {
	id, err := r.id("entryId")
	if err != nil {
		return nil, err
	}
	approvalID := r.URL.Query().Get("approvalId")
	if approvalID != "" && !run.ValidID(approvalID) {
		return nil, fault.Invalid("approvalId", "invalid ID")
	}
	ctx, cancel := r.working()
	defer cancel()
	return ok{true}, r.api.Records.Disallow(ctx, r.uid, id, approvalID)
}
