package records

import (
	"context"
	"slices"
	"time"

	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/store/document"
)

// A Search selects conversations. Zero fields select all.
type Search struct {
	Words    string // each must occur in the title, the user's own words, the recipients or the tools
	State    State
	From, To time.Time // of the last use
}

// A State is the state of a conversation in a search.
type State string

// The states of a conversation.
const (
	Waiting   State = "waiting" // for a decision of the user
	Running   State = "running"
	Completed State = "completed"
	Failed    State = "failed"
)

// States lists all states.
var States = []State{Waiting, Running, Completed, Failed}

// Limits of a search: the number of documents in one query, and in one search.
const (
	searchPage = 50
	maxSearch  = 300
)

// Find returns the user's conversations that the search selects, newest first. It reads at most maxSearch
// conversations. If more remain, it returns a cursor, even if it has found fewer than limit.
func (r *Records) Find(ctx context.Context, uid string, s Search, cursor string, limit int) ([]ThreadView, string,
	error) {
	waiting, err := r.waiting(ctx, uid, s.State)
	if err != nil {
		return nil, "", err
	}
	views, words := []ThreadView{}, run.SearchWords(s.Words)
	q := document.ThreadsUsed(uid, s.From, s.To, searchPage)
	for read := 0; read < maxSearch; read += searchPage {
		docs, next, err := r.page(ctx, q, cursor)
		if err != nil {
			return nil, "", err
		}
		for i, d := range docs {
			var t run.Thread
			if err := document.Decode(d, &t); err != nil {
				return nil, "", err
			}
			if !t.Has(words) || s.State != "" && stateOf(t, waiting) != s.State {
				continue
			}
			switch views = append(views, viewThread(t)); {
			case len(views) == limit && i == len(docs)-1:
				return views, next, nil // the cursor is the last one
			case len(views) == limit:
				return views, document.FormatCursor(q, d), nil
			}
		}
		if cursor = next; next == "" {
			break
		}
	}
	return views, cursor, nil
}

// waiting returns the IDs of the conversations with an approval that waits for the user, if the search has a state. It
// reads only the fields of approvals. It reads whole approvals of earlier releases, whose fields have no thread.
func (r *Records) waiting(ctx context.Context, uid string, s State) (map[string]bool, error) {
	ids := map[string]bool{}
	var whole []string
	for cursor, more := "", s != ""; more; more = cursor != "" {
		docs, next, err := r.page(ctx, document.WaitingThreads(uid, string(run.ApprovalOpen), searchPage), cursor)
		if err != nil {
			return nil, err
		}
		for _, d := range docs {
			switch f := document.ApprovalFieldsOf(d); {
			case f.ThreadID == "":
				whole = append(whole, document.ID(d))
			case d.ReadTime.Before(f.ExpiresAt):
				ids[f.ThreadID] = true
			}
		}
		cursor = next
	}
	for part := range slices.Chunk(whole, searchPage) {
		open, err := r.Approvals(ctx, uid, part)
		if err != nil {
			return nil, err
		}
		for _, a := range open {
			ids[a.ThreadID] = true
		}
	}
	return ids, nil
}

func stateOf(t run.Thread, waiting map[string]bool) State {
	switch ended := t.Ended(); {
	case waiting[t.ID]:
		return Waiting
	case ended == run.Failed:
		return Failed
	case ended == run.Completed:
		return Completed
	}
	return Running
}
