package terminal

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/store"
	"github.com/countersign-run/countersign/shared/store/document"
)

// A List is the document that lists a user's hosts and terminals. Each change of them is part of one commit with the
// list. Limits therefore hold for concurrent requests, and neither a query nor an index is needed.
type List struct {
	UID       string   `json:"uid"`
	Hosts     []string `json:"hosts,omitempty"`     // IDs, in the order in which hosts were added
	Terminals []string `json:"terminals,omitempty"` // IDs, in the order in which terminals were opened
	Asked     Asked    `json:"asked,omitzero"`
}

// Limits of scans and checks, which send requests to hosts without an approval.
const (
	AsksPerMinute = 10
	AsksPerDay    = 100
)

// Asked counts a user's scans and checks.
type Asked struct {
	At  []int64 `json:"at,omitempty"`  // those in the last minute, in Unix milliseconds, oldest first
	Day string  `json:"day,omitempty"` // the UTC day of N
	N   int     `json:"n,omitempty"`
}

// Count counts one more request, or returns PolicyError too_many with the time after which another is allowed.
func (a *Asked) Count(now time.Time) error {
	today := now.UTC().Format(time.DateOnly)
	if a.Day != today {
		a.Day, a.N = today, 0
	}
	a.At = slices.DeleteFunc(a.At, func(at int64) bool { return !now.Before(time.UnixMilli(at).Add(time.Minute)) })
	switch {
	case a.N >= AsksPerDay:
		return fault.New(fault.Policy, fault.CodeTooMany,
			"You have scanned and checked hosts %d times today, which is the limit.", AsksPerDay).
			After(now.UTC().Truncate(24 * time.Hour).Add(24 * time.Hour).Sub(now))
	case len(a.At) >= AsksPerMinute:
		return fault.New(fault.Policy, fault.CodeTooMany,
			"You have scanned and checked hosts %d times within a minute, which is the limit.", AsksPerMinute).
			After(time.UnixMilli(a.At[0]).Add(time.Minute).Sub(now))
	}
	a.At, a.N = append(a.At, now.UnixMilli()), a.N+1
	return nil
}

// OnHost returns the ids of the list's terminals on the host.
func (l List) OnHost(hostID string) (ids []string) {
	for _, id := range l.Terminals {
		if strings.HasPrefix(id, hostID+"-") {
			ids = append(ids, id)
		}
	}
	return ids
}

// ReadList returns the user's list, and its document. Its error is ToolExecutionError store_unavailable.
func ReadList(ctx context.Context, st store.Store, uid string) (l List, d store.Doc, err error) {
	l.UID = uid
	if d, err = document.Get(ctx, st, document.HostListPath(uid), &l); err != nil {
		return l, d, storeDown(err)
	}
	if l.UID != uid {
		return l, d, damaged(d)
	}
	return l, d, nil
}

// All returns the user's hosts and terminals, in the order of their list. Entries that are deleted meanwhile are left
// out. Its error is ToolExecutionError store_unavailable.
func All(ctx context.Context, st store.Store, uid string) (hosts []Host, terminals []Terminal, err error) {
	l, _, err := ReadList(ctx, st, uid)
	if err != nil {
		return nil, nil, err
	}
	if hosts, err = Hosts(ctx, st, l); err != nil {
		return nil, nil, err
	}
	terminals, err = Terminals(ctx, st, l)
	return hosts, terminals, err
}

// Hosts returns the hosts of a list. Its error is ToolExecutionError store_unavailable.
func Hosts(ctx context.Context, st store.Store, l List) ([]Host, error) {
	return each(ctx, st, l.Hosts, func(id string) string { return document.HostPath(l.UID, id) },
		func(h Host) bool { return h.UID == l.UID })
}

// Terminals returns the terminals of a list. Its error is ToolExecutionError store_unavailable.
func Terminals(ctx context.Context, st store.Store, l List) ([]Terminal, error) {
	return each(ctx, st, l.Terminals, func(id string) string { return document.TerminalPath(l.UID, id) },
		func(t Terminal) bool { return t.UID == l.UID })
}

func each[T any](ctx context.Context, st store.Store, ids []string, path func(id string) string,
	own func(T) bool) ([]T, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	paths := make([]string, len(ids))
	for i, id := range ids {
		paths[i] = path(id)
	}
	docs, err := st.Get(ctx, paths...)
	if err != nil {
		return nil, storeDown(err)
	}
	var found []T
	for _, d := range docs {
		if !d.Exists() {
			continue
		}
		var v T
		if err := document.Decode(d, &v); err != nil {
			return nil, storeDown(err)
		}
		if !own(v) {
			return nil, damaged(d)
		}
		found = append(found, v)
	}
	return found, nil
}

// Erase deletes everything that is stored about the user's hosts and terminals, in one commit, and reports whether
// there was anything. Its error is ToolExecutionError store_unavailable; in that case nothing was deleted.
func Erase(ctx context.Context, st store.Store, uid string) (existed bool, err error) {
	for range 3 {
		l, d, err := ReadList(ctx, st, uid)
		if err != nil || !d.Exists() {
			return existed, err
		}
		existed = true
		writes := []store.Write{store.Delete(d.Path, d.Version)}
		for _, id := range l.Hosts {
			writes = append(writes, store.Delete(document.HostPath(uid, id), time.Time{}))
		}
		for _, id := range l.Terminals {
			writes = append(writes, store.Delete(document.TerminalPath(uid, id), time.Time{}),
				store.Delete(document.TerminalRunPath(uid, id), time.Time{}))
		}
		if _, err = st.Commit(ctx, writes...); err == nil {
			return true, nil
		}
		if !errors.Is(err, store.ErrConflict) {
			return existed, storeDown(err)
		}
	}
	return existed, storeDown(store.ErrConflict)
}
