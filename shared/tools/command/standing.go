package command

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/terminal"
	"github.com/countersign-run/countersign/shared/terminal/shell"
	"github.com/countersign-run/countersign/shared/terminal/supervisor"
)

// CodeProgram is the error code for a command that its user always allows, if its program is now another file.
const CodeProgram = fault.Code("program_changed")

// standing records which file runs, and where, if its user always allows the command with this approval. It refuses a
// command that runs by such a permission if its program is now another file, or if a link now leads its directory
// elsewhere. The permission's key has the host, the directory and the words. The file is the one to which the name
// resolves in the clean environment in which such a command runs.
func (r *runner) standing(ctx context.Context, m *machine, c tool.Call, a Args) error {
	if !c.Standing && !c.Always {
		return nil
	}
	allowed := always(a, m.at)
	if allowed == nil {
		return nil // the policy asks for approval
	}
	key := hashed(allowed.Key)
	file, err := resolveProgram(ctx, m, a)
	if err != nil {
		return err
	}
	if c.Always {
		home := m.Facts.Home
		if m.at.Cwd != "" && m.at.Host.Home == "" {
			home = "" // the key includes the directory, so storing the home directory now would change the key
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
		"You always allow this command, but its program or its directory may be another one by now. Nothing was "+
			"run."))
}

// cleanPath is the search path that the supervisor sets for a command that runs without approval.
const cleanPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// whichFile prints the place of a directory without links, the file to which a name resolves there, and the SHA-256 of
// the file if it is readable. It contains no character that a login shell could interpret within single quotes.
const whichFile = `cd "$1" || exit; pwd -P; f=$(command -v "$0") || exit; case $f in /*) ;; */*) f=$PWD/$f ;; ` +
	`*) echo builtin; exit ;; esac; readlink -f -- "$f" || exit; [ -r "$f" ] || { echo unreadable; exit; }; ` +
	`sha256sum <"$f" 2>/dev/null || shasum -a 256 <"$f" 2>/dev/null || sha256 -q <"$f"`

// resolveProgram returns the place of the directory without links, and the path and the hash of the file that a command
// runs. It returns "" if the host does not report them.
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
	if err != nil || len(said) < 3 && !slices.Equal(said[min(1, len(said)):], []string{"builtin"}) {
		return "", err // a path without a hash proves nothing
	}
	return strings.Join(said, "\n"), nil
}

// plain reports whether a command runs without approval, in an environment that no earlier command could change.
func plain(c tool.Call, j *shell.Judgment, o supervisor.Opens) bool {
	return j.Class == shell.ReadOnly || c.Standing || o.Git != ""
}

// odd reports whether a path is not sent to the host.
func odd(p string) bool { return !path.IsAbs(p) || strings.ContainsAny(p, "\n'\\") }

var errResolve = errors.New("command: the host does not report the program of a name")

// answered returns the lines of the host's answer, or none if the answer is incomplete or reports a failure.
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

// maxResolved is the size limit of the host's answer, in bytes.
const maxResolved = 256 << 10

// limited keeps the beginning of the text written to it.
type limited struct{ strings.Builder }

func (l *limited) Write(b []byte) (int, error) {
	l.Builder.Write(b[:min(len(b), maxResolved-min(maxResolved, l.Len()))])
	return len(b), nil
}
