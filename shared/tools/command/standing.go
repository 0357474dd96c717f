package command

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strings"

	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/terminal"
	"github.com/countersign-run/countersign/shared/terminal/shell"
	"github.com/countersign-run/countersign/shared/terminal/supervisor"
)

// CodeProgram is of a command that its user always allows, whose program is another file than it was then.
const CodeProgram = fault.Code("program_changed")

// standing notes which file a command runs that its user always allows with this yes. It refuses a command that runs by
// such a permission if its program is another file by now. The permission's key binds the host, the directory and the
// words; the file is what the name resolves to in the clean environment in which such a command runs.
func (r *runner) standing(ctx context.Context, m *machine, c tool.Call, a Args) error {
	if !c.Standing && !c.Always {
		return nil
	}
	allowed := always(a, m.at)
	if allowed == nil {
		return nil // the policy asks
	}
	key := hashed(allowed.Key)
	file, err := resolveProgram(ctx, m, a)
	if err != nil {
		return err
	}
	if c.Always {
		home := m.Facts.Home
		if m.at.Cwd != "" && m.at.Host.Home == "" {
			home = "" // the key names the directory; known now, the home directory would make it another key
		}
		p := terminal.Program{Key: key, File: file}
		return terminal.SetProgram(ctx, r.Store, c.UID, m.at.Host.ID, home, p)
	}
	for _, p := range m.at.Host.Programs {
		if p.Key == key && p.File == file && file != "" {
			return nil
		}
	}
	return tool.AskFirst(fault.New(fault.Policy, CodeProgram,
		"You always allow this command, but its program may be another file by now. Nothing was run."))
}

// cleanPath is the search path of a command that runs unasked, as the keeper sets it.
const cleanPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// whichFile prints the file that a name resolves to in a directory, and the SHA-256 of the file if it can be read. It
// holds no character that a login shell could take for its own within single quotes.
const whichFile = `cd "$1" || exit; f=$(command -v "$0") || exit; case $f in /*) ;; */*) f=$PWD/$f ;; ` +
	`*) echo builtin; exit ;; esac; readlink -f -- "$f" || exit; [ -r "$f" ] || { echo unreadable; exit; }; ` +
	`sha256sum <"$f" 2>/dev/null || shasum -a 256 <"$f" 2>/dev/null || sha256 -q <"$f"`

// resolveProgram returns the path and the hash of the file that a command runs, or nothing if the host does not say.
func resolveProgram(ctx context.Context, m *machine, a Args) (string, error) {
	words, err := shell.Allow(a.Command)
	if err != nil || len(words) != 1 {
		return "", nil
	}
	dir := `"$HOME"`
	if m.at.Cwd != "" {
		dir = shell.Quote([]string{m.at.Cwd})
	}
	name := words[0][0]
	if odd("/"+name) || strings.ContainsAny(m.at.Cwd, "\n'\\") {
		return "", nil
	}
	line := "env -i PATH=" + cleanPath + " sh -c '" + whichFile + "' " + shell.Quote([]string{name}) + " " + dir
	said, err := answered(ctx, m.conn, line)
	if err != nil || len(said) == 1 && said[0] != "builtin" {
		return "", err // a path without a hash proves nothing
	}
	return strings.Join(said, "\n"), nil
}

// plain reports whether a command runs unasked, in an environment that no earlier command could change.
func plain(c tool.Call, j *shell.Judgment, o supervisor.Opens) bool {
	return j.Class == shell.ReadOnly || c.Standing || o.Git != ""
}

// odd reports whether no host is asked about a path.
func odd(p string) bool { return !path.IsAbs(p) || strings.ContainsAny(p, "\n'\\") }

var errResolve = errors.New("command: the host does not say which program a name is")

// answered returns the lines that the host answers, or none if the answer is not whole or is that of a failure.
func answered(ctx context.Context, conn supervisor.Conn, line string) ([]string, error) {
	var b limited
	exit, err := conn.Exec(ctx, supervisor.Exec{Line: line, Stdout: &b})
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errResolve, err)
	}
	if text, whole := strings.CutSuffix(b.String(), "\n"); exit == 0 && whole {
		return strings.Split(text, "\n"), nil
	}
	return nil, nil
}

// maxResolved is how much a host may answer, in bytes.
const maxResolved = 256 << 10

// limited keeps the beginning of the text written to it.
type limited struct{ strings.Builder }

func (l *limited) Write(b []byte) (int, error) {
	l.Builder.Write(b[:min(len(b), maxResolved-min(maxResolved, l.Len()))])
	return len(b), nil
}
