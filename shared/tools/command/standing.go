package command

import (
	"context"
	"errors"
	"slices"

	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/terminal"
	"github.com/countersign-run/countersign/shared/terminal/shell"
	"github.com/countersign-run/countersign/shared/terminal/supervisor"
)

// CodeProgram is the error code for an always-allowed command whose program is now another file.
const CodeProgram = fault.Code("program_changed")

// standing handles commands that the user always allows. With the approval that allows such a command, it records which
// file runs, and in which directory. Later it refuses the command if its program is now another file, or if a link now
// leads its directory elsewhere. The permission's key has the host, the directory and the words. The file is found by
// the program's name in the clean environment in which such a command runs.
func (r *runner) standing(ctx context.Context, m *machine, c tool.Call, a Args) error {
	if !c.Standing && !c.Always {
		return nil
	}
	key, name := pinKey(m, a)
	if key == "" {
		return nil // the policy asks for approval
	}
	file, err := m.Program(ctx, m.at.Cwd, name)
	if err != nil && !errors.Is(err, supervisor.ErrCwd) {
		return err
	}
	if c.Always {
		home := m.Facts.Home
		if m.at.Cwd != "" && m.at.Host.Home == "" {
			home = "" // the key contains the directory, so storing the home directory now would change the key
		}
		p := terminal.Program{Key: key, File: file}
		return terminal.SetProgram(ctx, r.Store, c.UID, m.at.Host.ID, home, p)
	}
	if file == "" || file != pin(m, c, a).File {
		return tool.AskFirst(fault.New(fault.Policy, CodeProgram, "%s", otherProgram))
	}
	return nil
}

// pinKey returns the key of the permission to always run the command, and the name of its program. The key is empty if
// the command cannot have such a permission.
func pinKey(m *machine, a Args) (key, name string) {
	allowed := always(a, m.at)
	words, err := shell.Allow(a.Command)
	if allowed == nil || err != nil {
		return "", ""
	}
	return hashed(allowed.Key), words[0][0]
}

// pin returns the file that a command must run if it runs by a standing permission. The host checks it when the command
// starts, because a link or the file may have changed since the check in standing.
func pin(m *machine, c tool.Call, a Args) supervisor.Pin {
	key, name := pinKey(m, a)
	if !c.Standing || key == "" {
		return supervisor.Pin{}
	}
	at := slices.IndexFunc(m.at.Host.Programs, func(p terminal.Program) bool { return p.Key == key })
	if at < 0 {
		return supervisor.Pin{Name: name} // no file has this pin
	}
	return supervisor.Pin{Name: name, File: m.at.Host.Programs[at].File}
}

const otherProgram = "You always allow this command, but its program or its directory may be another one by now. " +
	"Nothing was run."

// plain reports whether a command runs without approval, in an environment that no earlier command could change.
func plain(c tool.Call, j *shell.Judgment, o supervisor.Opens) bool {
	return j.Class == shell.ReadOnly || c.Standing || o.Git != ""
}
