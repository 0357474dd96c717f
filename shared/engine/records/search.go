package records

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/store/document"
)

// A Search says which conversations are wanted. A zero field wants all.
type Search struct {
	Words    string // each of which stands in the title, the user's own words, the recipients or the tools
	State    State
	From, To time.Time // of the last use
}

// A State is how a conversation stands, for a search.
type State string

// The states of a conversation.
const (
	Waiting   State = "waiting" // for a decision of its user
	Running   State = "running"
	Completed State = "completed"
	Failed    State = "failed"
)

// States are all of them.
var States = []State{Waiting, Running, Completed, Failed}

// The bounds of a search: the documents of one query, and those that one search reads.
const (
	searchPage = 50
	maxSearch  = 300
)

// Find returns the user's conversations that are wanted, the newest first. It reads up to maxSearch of them, one after
// another; the cursor, if there is one, goes on from there, also where fewer than limit were found.
func (r *Records) Find(ctx context.Context, uid string, s Search, cursor string, limit int) ([]ThreadView, string,
	error) {
	waiting, err := r.waiting(ctx, uid, s.State)
	if err != nil {
		return nil, "", err
	}
	views, words := []ThreadView{}, strings.Fields(run.Folded(s.Words))
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
				return views, next, nil // nothing may come after it
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

// waiting returns the ids of the conversations in which something waits for the user, where a state is asked for. It
// reads the approvals' fields alone, and whole ones only of an earlier release, whose fields have no thread.
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
