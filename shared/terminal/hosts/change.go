package hosts

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/base/strictjson"
	"github.com/countersign-run/countersign/shared/store"
	"github.com/countersign-run/countersign/shared/store/audit"
	"github.com/countersign-run/countersign/shared/store/document"
	"github.com/countersign-run/countersign/shared/terminal"
)

// maxRaces is the maximum number of attempts of a change that loses races. It can lose a race only to another change of
// the same user: a program may add all of its user's hosts and open all terminals at once.
const maxRaces = terminal.MaxHosts + terminal.MaxTerminals

// change changes the user's list and the documents of its entries in one commit. The commit also checks that the user
// is not disabled, so that nothing is stored for a user who is being deleted.
func (h *Hosts) change(ctx context.Context, uid string, decide func(*state) error) error {
	for try := 0; ; try++ {
		s, err := h.read(ctx, uid)
		if err != nil {
			return err
		}
		if err := decide(s); err != nil {
			return err
		}
		err = s.commit(ctx)
		if err == nil {
			return nil
		}
		if !errors.Is(err, store.ErrConflict) || try == maxRaces {
			return storeDown(err)
		}
	}
}

// closing is like [Hosts.change] for a removal of terminals. It first ends overdue runs on them, because readers
// already see such a run as ended.
func (h *Hosts) closing(ctx context.Context, uid string, decide func(*state) error) error {
	for {
		err := h.change(ctx, uid, decide)
		var open *run.OpenError
		if h.cfg.EndOverdue == nil || !errors.As(err, &open) || !h.cfg.EndOverdue(ctx, open.RunID) {
			return err
		}
	}
}

// state is the state on which a change is decided, and its writes.
type state struct {
	hosts  *Hosts
	uid    string
	now    time.Time // by the store's clock
	at     time.Time // by the program's clock, in the precision of the store
	list   terminal.List
	writes []store.Write
	entry  *audit.Entry

	listDoc, user store.Doc
	listChanged   bool
}

func (h *Hosts) read(ctx context.Context, uid string) (*state, error) {
	docs, err := h.cfg.Store.Get(ctx, document.HostListPath(uid), document.UserPath(uid))
	if err != nil {
		return nil, storeDown(err)
	}
	s := &state{hosts: h, uid: uid, now: docs[0].ReadTime, at: h.cfg.Now().UTC().Truncate(time.Microsecond),
		list: terminal.List{UID: uid}, listDoc: docs[0], user: docs[1]}
	u := run.User{UID: uid}
	for _, d := range []struct {
		doc  store.Doc
		into any
	}{{s.listDoc, &s.list}, {s.user, &u}} {
		if d.doc.Exists() {
			if err := document.Decode(d.doc, d.into); err != nil {
				return nil, storeDown(err)
			}
		}
	}
	return s, u.CheckEnabled()
}

// commit stores the change.
func (s *state) commit(ctx context.Context) error {
	if s.listChanged {
		if err := s.keep(s.listDoc, document.HostListPath(s.uid), s.list); err != nil {
			return err
		}
	}
	if len(s.writes) == 0 {
		return nil
	}
	if s.user.Exists() {
		s.writes = append(s.writes, store.Check(s.user.Path, s.user.Version))
	} else if err := s.create(s.user.Path, run.User{UID: s.uid}); err != nil {
		return err
	}
	if s.entry != nil {
		entry, err := audit.Append(ctx, s.hosts.cfg.Store, *s.entry)
		if err != nil {
			return err
		}
		s.writes = append(s.writes, entry...)
	}
	_, err := s.hosts.cfg.Store.Commit(ctx, s.writes...)
	return err
}

func (s *state) keep(d store.Doc, path string, v any) error {
	if d.Exists() {
		return s.update(d, v)
	}
	return s.create(path, v)
}

func (s *state) create(path string, v any) error {
	data, err := strictjson.Marshal(v)
	s.writes = append(s.writes, store.Create(path, nil, data))
	return err
}

func (s *state) update(d store.Doc, v any) error {
	w, err := document.Put(d, nil, v)
	s.writes = append(s.writes, w)
	return err
}

// record adds a change of the host to the user's own audit chain: the host's ID, and which commands run there without
// approval.
func (s *state) record(kind string, h terminal.Host) {
	s.entry = &audit.Entry{UID: s.uid, At: s.at, KeepDays: s.hosts.cfg.AuditDays, Kind: kind, Ref: h.ID}
	if kind != audit.HostRemoved {
		s.entry.Decision = string(h.Unasked())
	}
}

func (s *state) host(ctx context.Context, id string) (terminal.Host, store.Doc, error) {
	return terminal.ReadHostDoc(ctx, s.hosts.cfg.Store, s.uid, id)
}

// close removes terminals from the list and deletes them, unless a run is open on one. The commit checks the version of
// the document that reserves a terminal for a run. It therefore fails if a run starts in the meantime.
func (s *state) close(ctx context.Context, ids ...string) error {
	if len(ids) == 0 {
		return nil
	}
	var paths []string
	for _, id := range ids {
		paths = append(paths, document.TerminalPath(s.uid, id), document.TerminalRunPath(s.uid, id))
	}
	docs, err := s.hosts.cfg.Store.Get(ctx, paths...)
	if err != nil {
		return storeDown(err)
	}
	var runs []string
	for _, d := range docs {
		if d.Exists() {
			s.writes = append(s.writes, store.Delete(d.Path, d.Version))
		}
		var kept run.TerminalRun
		if d.Exists() && strings.HasPrefix(d.Path, document.TerminalRuns+"/") {
			if err := document.Decode(d, &kept); err != nil {
				return storeDown(err)
			}
		}
		if kept.RunID != "" {
			runs = append(runs, document.RunPath(kept.RunID))
		}
	}
	s.list.Terminals = slices.DeleteFunc(s.list.Terminals, func(id string) bool { return slices.Contains(ids, id) })
	s.listChanged = true
	return s.checkEnded(ctx, runs)
}

// checkEnded returns PolicyError terminal_busy if one of the runs has not ended. A quarantined run reserves nothing.
func (s *state) checkEnded(ctx context.Context, runs []string) error {
	if len(runs) == 0 {
		return nil
	}
	docs, err := s.hosts.cfg.Store.Get(ctx, runs...)
	if err != nil {
		return storeDown(err)
	}
	for _, d := range docs {
		f := document.RunFieldsOf(d)
		is := run.Status(f.Status)
		if d.Exists() && !f.Quarantined && is != run.Completed && is != run.Failed {
			return fault.New(fault.Policy, fault.CodeTerminalBusy,
				"This terminal has an unfinished request (%s). Wait for it to end, or stop it.", is).
				Because(&run.OpenError{RunID: document.ID(d), Status: is})
		}
	}
	return nil
}

// storeDown returns the error for a failed store. An error that is already a fault is returned unchanged.
func storeDown(err error) error {
	var f *fault.Error
	if errors.As(err, &f) {
		return err
	}
	return fault.Unavailable("The hosts and terminals cannot be read or written just now; please try again.", err)
}
