package github

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	githubapi "github.com/google/go-github/v92/github"

	"github.com/countersign-run/countersign/shared/agent/tool"
)

// begun is the handle of a marked creation: the earliest time at which GitHub's lists can contain it.
type begun struct {
	Since        time.Time `json:"since"`
	Conversation int64     `json:"conversation,omitempty"` // of a reply: the comment that starts the conversation
}

func (b begun) handle() (string, error) {
	raw, err := json.Marshal(b)
	return string(raw), err
}

// margin is the maximum difference between the clocks of GitHub's machines.
const margin = time.Minute

// began returns the handle's content. It uses GitHub's clock if the answer has the time.
func (h *hub) began(res *githubapi.Response) begun {
	at := h.now()
	if res != nil {
		if clock, err := http.ParseTime(res.Header.Get("Date")); err == nil {
			at = clock
		}
	}
	return begun{Since: at.Add(-margin).UTC().Truncate(time.Second)}
}

// since reads the handle. A call without a handle has sent nothing, and will send nothing.
func since(c tool.Call) (time.Time, bool) {
	var b begun
	err := json.Unmarshal([]byte(c.Handle), &b)
	return b.Since, err == nil && !b.Since.IsZero()
}

// clientOfBegun returns the client of a call with a handle.
func (h *hub) clientOfBegun(ctx context.Context, c tool.Call) (*githubapi.Client, error) {
	if _, begun := since(c); !begun {
		return nil, noRecord()
	}
	return h.client(ctx, c)
}

// inRepositoryBegun prepares a creation in a repository, which must exist.
func (h *hub) inRepositoryBegun(ctx context.Context, c tool.Call, owner, repo string) (string, error) {
	api, err := h.client(ctx, c)
	if err != nil {
		return "", err
	}
	r, res, err := api.Repositories.Get(ctx, owner, repo)
	if err != nil {
		return "", unlooked(err, "repos.get")
	}
	if r.GetName() == "" {
		return "", odd()
	}
	return h.began(res).handle()
}

// maxPages limits a search to 5,000 objects of one user since the call started.
const maxPages = 50

// walk requests the pages of a list until look has found its object or returns 0. look returns the number of the next
// page, or 0 at the end of the search.
func walk(look func(page int) (found bool, next int, err error)) error {
	page := 1
	for range maxPages {
		found, next, err := look(page)
		if found || err != nil || next == 0 {
			return err
		}
		page = next
	}
	return nil
}

// search looks for the object that the call created: the one with its mark among the user's own objects since the call
// started. Objects of other users do not count, because anyone can copy a mark.
type search[Out any] func(ctx context.Context, api *githubapi.Client, login, mark string, since time.Time) (*Out, error)

// marking defines a tool that creates an object with a mark, and that finds the object by its mark. d has the
// properties in which such tools differ.
func marking[In, Out any](h *hub, d tool.Def[In, Out], thing string, find func(In) search[Out]) *tool.Tool {
	d.SideEffect = true
	d.Reconcile = func(ctx context.Context, c tool.Call, in In) (tool.Verdict, Out, string, error) {
		return reconcileMarked(ctx, h, c, thing, find(in))
	}
	d.LookUp = func(ctx context.Context, c tool.Call, in In) (tool.Verdict, Out, string, error) {
		return lookUpMarked(ctx, h, c, thing, find(in))
	}
	return define(h, d)
}

// newestOf walks the pages of a list, and returns the last match on the first page that has one.
func newestOf[T, Out any](list func(githubapi.ListOptions) ([]T, *githubapi.Response, error), ours func(T) bool,
	made func(T) Out) (found *Out, err error) {
	err = walk(func(page int) (bool, int, error) {
		all, res, err := list(githubapi.ListOptions{Page: page, PerPage: 100})
		if err != nil {
			return false, 0, err
		}
		for _, t := range all {
			if ours(t) {
				out := made(t)
				found = &out
			}
		}
		return found != nil, res.NextPage, nil
	})
	return found, err
}

// reconcileMarked returns the verdict of a search for the mark. GitHub's lists may lag by minutes, so a missing mark
// proves nothing.
func reconcileMarked[Out any](ctx context.Context, h *hub, c tool.Call, thing string,
	find search[Out]) (verdict tool.Verdict, out Out, reason string, err error) {
	from, begun := since(c)
	if !begun {
		return tool.NotDone, out, "", nil // without a handle, Execute sends nothing
	}
	found, err := searched(ctx, h, c, from, find)
	switch {
	case err != nil:
		verdict, reason, err = cannotAsk(err, "list", thing)
		return verdict, out, reason, err
	case found == nil:
		return tool.Unknown, out, "GitHub does not list " + thing + ", and its lists may lag behind. Please look at " +
			"GitHub in some minutes.", nil
	}
	return tool.Done, *found, "", nil
}

// lookUpMarked is like reconcileMarked for a call without a record, and therefore without a handle.
func lookUpMarked[Out any](ctx context.Context, h *hub, c tool.Call, thing string,
	find search[Out]) (verdict tool.Verdict, out Out, reason string, err error) {
	if c.Handle, err = (begun{Since: c.Since.Add(-margin)}).handle(); err != nil {
		return "", out, "", err
	}
	return reconcileMarked(ctx, h, c, thing, find)
}

func searched[Out any](ctx context.Context, h *hub, c tool.Call, from time.Time, find search[Out]) (*Out, error) {
	api, err := h.client(ctx, c)
	if err != nil {
		return nil, err
	}
	me, _, err := api.Users.Get(ctx, "")
	if err != nil {
		return nil, err
	}
	if me.GetLogin() == "" {
		return nil, odd()
	}
	return find(ctx, api, me.GetLogin(), mark(c.ActionID), from)
}
