package terminal

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/store"
	"github.com/countersign-run/countersign/shared/store/document"
	"github.com/countersign-run/countersign/shared/terminal/shell"
)

// Reads returns the paths of the documents that determine where and how a command on the scope's terminal runs: those
// of the terminal and its host. If the caller has put these documents into the context ([document.With]), ReadTerminal
// and ReadHost take them from there. Reads returns nil if the scope has no terminal.
func Reads(in tool.Scope) []string {
	hostID, ok := HostOf(in.Terminal)
	if !ok {
		return nil
	}
	return []string{document.TerminalPath(in.UID, in.Terminal), document.HostPath(in.UID, hostID)}
}

// ReadTerminal returns the user's terminal. Errors: AuthError not_found, also for a terminal of another user, and
// ToolExecutionError store_unavailable.
func ReadTerminal(ctx context.Context, st store.Store, uid, id string) (Terminal, error) {
	t, _, err := ReadTerminalDoc(ctx, st, uid, id)
	return t, err
}

// ReadHost returns the user's host. It returns the errors of ReadTerminal.
func ReadHost(ctx context.Context, st store.Store, uid, id string) (Host, error) {
	h, _, err := ReadHostDoc(ctx, st, uid, id)
	return h, err
}

// ReadJumps returns the user's hosts on the way to a host, in the order of the connection. id is the ID of that host's
// jump host; an empty id has no hosts on the way. It returns the errors of ReadTerminal, and AuthError not_found for
// more hosts than MaxJumps.
func ReadJumps(ctx context.Context, st store.Store, uid, id string) (via []Host, err error) {
	for ; id != ""; id = via[0].Jump {
		if len(via) == MaxJumps {
			return nil, fault.NotFound()
		}
		h, err := ReadHost(ctx, st, uid, id)
		if err != nil {
			return nil, err
		}
		via = slices.Insert(via, 0, h)
	}
	return via, nil
}

// ReadTerminalDoc is like ReadTerminal for callers that change the terminal: it also returns the document.
func ReadTerminalDoc(ctx context.Context, st store.Store, uid, id string) (t Terminal, d store.Doc, err error) {
	if _, ok := HostOf(id); !ok {
		return t, d, fault.NotFound()
	}
	if d, err = read(ctx, st, document.TerminalPath(uid, id), &t); err == nil && (t.UID != uid || t.ID != id) {
		err = damaged(d)
	}
	return t, d, err
}

// ReadHostDoc is like ReadHost for callers that change the host: it also returns the document.
func ReadHostDoc(ctx context.Context, st store.Store, uid, id string) (h Host, d store.Doc, err error) {
	if !run.ValidID(id) {
		return h, d, fault.NotFound()
	}
	if d, err = read(ctx, st, document.HostPath(uid, id), &h); err == nil && (h.UID != uid || h.ID != id) {
		err = damaged(d)
	}
	return h, d, err
}

// read reads the document at the path, which must exist.
func read(ctx context.Context, st store.Store, path string, into any) (store.Doc, error) {
	d, err := document.Read(ctx, st, path)
	if err != nil {
		return d, storeDown(err)
	}
	if !d.Exists() {
		return d, fault.NotFound()
	}
	if err := document.Decode(d, into); err != nil {
		return d, storeDown(err)
	}
	return d, nil
}

func damaged(d store.Doc) error {
	return storeDown(errors.New("terminal: " + d.Path + " is another's"))
}

// storeDown returns the error for a store that failed before a host was contacted. It keeps the cause as text,
// because a deadline of the store must not count as a command with an unknown outcome.
func storeDown(err error) error {
	return tool.Transient(fault.Unavailable("The hosts and terminals cannot be read or written just now; please try "+
		"again.", errors.New(err.Error())))
}

// maxCwd is the size limit of a directory, in bytes: PATH_MAX of Linux.
const maxCwd = 4096

// ValidDir reports whether a directory can be stored: absolute, at most 4096 bytes, without NUL.
func ValidDir(dir string) bool {
	return strings.HasPrefix(dir, "/") && len(dir) <= maxCwd && !strings.ContainsRune(dir, 0)
}

// SetCwd stores the directory in which the terminal's next command starts, and the real path without links. It writes
// nothing if both are the same or the terminal is closed. An invalid directory is stored as empty: the next command
// starts in the home directory. Its only error is ToolExecutionError store_unavailable.
func SetCwd(ctx context.Context, st store.Store, uid, id, cwd, real string) error {
	if !ValidDir(cwd) {
		cwd = ""
	}
	if cwd == "" || !ValidDir(real) {
		real = ""
	}
	return note(ctx, st, func(ctx context.Context) (any, store.Doc, bool, error) {
		t, d, err := ReadTerminalDoc(ctx, st, uid, id)
		same := t.Cwd == cwd && t.Real == real
		t.Cwd, t.Real = cwd, real
		return t, d, same, err
	})
}

// SetShell stores the shell that runs the host's commands, because commands are judged by that shell's grammar. It
// writes nothing if the shell is the same or the host is deleted. Its only error is ToolExecutionError
// store_unavailable.
func SetShell(ctx context.Context, st store.Store, uid, hostID string, g shell.Grammar) error {
	return note(ctx, st, func(ctx context.Context) (any, store.Doc, bool, error) {
		h, d, err := ReadHostDoc(ctx, st, uid, hostID)
		same := h.Shell == g
		h.Shell = g
		return h, d, same, err
	})
}

// SetProgram stores the file that runs for a command that is always allowed on the host, and the host's home
// directory.
func SetProgram(ctx context.Context, st store.Store, uid, hostID, home string, p Program) error {
	return note(ctx, st, func(ctx context.Context) (any, store.Doc, bool, error) {
		h, d, err := ReadHostDoc(ctx, st, uid, hostID)
		same := slices.Contains(h.Programs, p) && h.Home == home
		h.Home = home
		h.Programs = slices.DeleteFunc(h.Programs, func(other Program) bool { return other.Key == p.Key })
		h.Programs = append(h.Programs, p)
		h.Programs = h.Programs[max(0, len(h.Programs)-MaxPrograms):]
		return h, d, same, err
	})
}

// note replaces a document with the result of read. It writes nothing if the result is the same or the document does
// not exist.
func note(ctx context.Context, st store.Store,
	read func(context.Context) (v any, d store.Doc, same bool, err error)) error {
	for range 3 {
		v, d, same, err := read(ctx)
		if fault.Is(err, fault.Auth, fault.CodeNotFound) || err == nil && same {
			return nil
		}
		if err != nil {
			return err
		}
		w, err := document.Put(d, nil, v)
		if err != nil {
			return err
		}
		_, err = st.Commit(ctx, w)
		if err == nil {
			return nil
		}
		if !errors.Is(err, store.ErrConflict) {
			return storeDown(err)
		}
		ctx = document.Anew(ctx)
	}
	return storeDown(store.ErrConflict)
}
