package records

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/store/audit"
	"github.com/countersign-run/countersign/shared/store/document"
)

// AuditSearch selects audit entries. Zero fields select all.
type AuditSearch struct {
	Words    string   // each must occur in the action's description, recipients or place, or in the tool's name
	State    run.Came // the outcome of the action
	From, To time.Time
}

// maxAuditSearch is the number of entries that one search reads, in pages of searchPage. The search also reads the runs
// of the entries.
const maxAuditSearch = 300

// FindAudit returns the selected entries of the user with descriptions of their actions, newest first. It reads at most
// maxAuditSearch entries. If more remain, it returns a cursor, even if it has found fewer than limit entries.
func (r *Records) FindAudit(ctx context.Context, uid string, s AuditSearch, cursor string, limit int) (AuditPage,
	error) {
	found := AuditPage{Entries: []audit.Entry{}, About: map[string]run.About{}, NextCursor: cursor}
	words := run.SearchWords(s.Words)
	q := document.AuditWithin(uid, s.From, s.To, searchPage)
	for read := 0; read < maxAuditSearch; read += searchPage {
		docs, next, err := r.page(ctx, q, found.NextCursor)
		if err != nil {
			return found, err
		}
		page := AuditPage{}
		for _, d := range docs {
			var e audit.Entry
			if err := document.Decode(d, &e); err != nil {
				return found, err
			}
			page.Entries = append(page.Entries, e)
		}
		if err := r.AddAbout(ctx, uid, &page); err != nil {
			return found, err
		}
		for i, e := range page.Entries {
			about, known := page.About[e.ActionID]
			if !wanted(e, about, words, s.State) {
				continue
			}
			if found.Entries = append(found.Entries, e); known {
				found.About[e.ActionID] = about
			}
			if len(found.Entries) == limit {
				if found.NextCursor = next; i < len(docs)-1 {
					found.NextCursor = document.FormatCursor(q, docs[i])
				}
				return found, nil
			}
		}
		if found.NextCursor = next; next == "" {
			break
		}
	}
	return found, nil
}

func wanted(e audit.Entry, about run.About, words []string, state run.Came) bool {
	if state != "" && stateIn(e, about) != state {
		return false
	}
	text := run.Folded(strings.Join(append([]string{e.Tool, about.What, about.Where}, about.To...), "\n"))
	return !slices.ContainsFunc(words, func(word string) bool { return !strings.Contains(text, word) })
}

// stateIn returns the outcome of the entry's action. If the conversation was deleted, the outcome follows from the
// entry alone.
func stateIn(e audit.Entry, about run.About) run.Came {
	switch {
	case about.State != "":
		return about.State
	case e.ExecutionStatus == "succeeded":
		return run.CameDone
	case e.Kind == audit.Outcome:
		return run.CameFailed
	case e.Decision == string(run.Reject), e.Decision == string(run.Undo):
		return run.CameRejected
	}
	return ""
}

// AddAbout adds descriptions of the actions in the page. It reads the user's runs in one round trip, and their older
// events and conversations in another. The audit log itself has no descriptions. Conversations that are being deleted
// get none.
func (r *Records) AddAbout(ctx context.Context, uid string, page *AuditPage) error {
	page.About = map[string]run.About{}
	var paths []string
	for _, e := range page.Entries {
		if e.ActionID != "" {
			paths = append(paths, document.RunPath(e.RunID))
		}
	}
	slices.Sort(paths)
	docs, err := r.getFound(ctx, slices.Compact(paths))
	if err != nil {
		return err
	}
	runs, more := []run.Run{}, []string{}
	for _, d := range docs {
		var one run.Run
		if document.RunFieldsOf(d).UID != uid {
			continue
		}
		if err := document.Decode(d, &one); err != nil {
			return err
		}
		runs = append(runs, one)
		more = append(append(more, one.Log.ChunkPaths(d.Path, "events")...), document.ThreadPath(one.ThreadID))
	}
	slices.Sort(more)
	parts, err := r.getFound(ctx, slices.Compact(more))
	if err != nil {
		return err
	}
	read := map[string]json.RawMessage{}
	for _, d := range parts {
		read[d.Path] = d.Data
	}
	for _, one := range runs {
		for _, a := range actionsOf(one, read) {
			page.About[a.ID] = a.About()
		}
	}
	return nil
}

// actionsOf returns the run's actions. read holds the conversation and the run's older events, by path. It returns
// nothing if the run cannot be read or is being deleted: the audit entries remain valid without it, and GET
// /runs/{runId} reports the error.
func actionsOf(one run.Run, read map[string]json.RawMessage) []*run.Action {
	var thread run.Thread
	if json.Unmarshal(read[document.ThreadPath(one.ThreadID)], &thread) != nil || thread.Deleting {
		return nil
	}
	var chunks []json.RawMessage
	for _, path := range one.Log.ChunkPaths(document.RunPath(one.ID), "events") {
		chunks = append(chunks, read[path])
	}
	events, err := one.Log.All(chunks...)
	if err != nil {
		return nil
	}
	state, err := run.Fold(events)
	if err != nil {
		return nil
	}
	return state.Actions
}
