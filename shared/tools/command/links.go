package command

import (
	"errors"
	"slices"
	"strings"

	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/terminal/shell"
	"github.com/countersign-run/countersign/shared/terminal/supervisor"
)

// Codes for read-only commands that need approval after their host has examined them.
const (
	CodeSystem     = fault.Code("system_shows_more")  // it shows more on this host's system than on others
	CodeOther      = fault.Code("not_a_file")         // it would read a pipe, a socket or a device
	CodeMissing    = fault.Code("not_there")          // a path does not exist, or cannot be opened
	CodeMounted    = fault.Code("mounted_on_demand")  // opening a path may connect to something or start a program
	CodeWalk       = fault.Code("may_follow_links")   // the host's program may follow links below a folder
	CodeRepository = fault.Code("repository_may_act") // the repository may make git run another program
	CodeUnverified = fault.Code("cannot_be_verified") // the host cannot find out where the paths lead
)

// opens returns the command in the form in which it is started. A command that runs without approval gets its files as
// descriptors. The supervisor has opened them and checked that they are in the folders that the user allowed. Opening
// and reading are one command line for the host, so no link can change in between. Other commands are started
// unchanged.
func (r *runner) opens(m *machine, c tool.Call, a Args, j *shell.Judgment) (string, supervisor.Opens, error) {
	if c.Approved || !runsUnasked(j, m.at) {
		return a.Command, supervisor.Opens{}, nil
	}
	if j.Repository != nil {
		return repository(m, a, j)
	}
	o, home := supervisor.Opens{Walks: j.Walks, Private: j.Private, Files: j.Files}, m.Facts.Home
	if len(j.Reads) > 0 {
		o.Within = m.at.Host.ReadPaths
	}
	for _, f := range j.Looks {
		if !slices.Contains(j.Reads, f) {
			o.Looks = append(o.Looks, inHome(f, home))
		}
	}
	names := make([]string, len(j.Reads))
	for i, f := range j.Reads {
		f = inHome(f, home)
		o.Paths = append(o.Paths, supervisor.Path{Name: absolute(f, m.at.Cwd), Shown: f})
		names[i] = supervisor.Opened(i)
	}
	if !m.Opens(&o) || home == "" && j.AtHome() {
		return "", o, asks(a, CodeUnverified, "The host cannot tell where so many, or such, paths lead.")
	}
	return j.Line(home, names), o, nil
}

// repository returns the words of a git command that runs without approval, and the paths that the host checks: the
// folder of its repository, and the paths that the line's other programs examine.
func repository(m *machine, a Args, j *shell.Judgment) (string, supervisor.Opens, error) {
	home := m.Facts.Home
	o := supervisor.Opens{Git: supervisor.GitHistory, Looks: []string{inHome(j.Repository.Dir, home)}, Walks: true}
	for _, f := range j.Looks {
		o.Looks = append(o.Looks, inHome(f, home))
	}
	if j.Repository.Tree {
		o.Git = supervisor.GitTree
	}
	if j.Repository.Prints {
		o.Within = m.at.Host.ReadPaths
	}
	if !m.Opens(&o) || home == "" && j.AtHome() {
		return "", o, asks(a, CodeUnverified, "The host cannot tell where such a path leads.")
	}
	return j.Line(home, nil), o, nil
}

// checkSystem requires approval for ps -e on systems where -e may show the environment of processes instead of all
// processes, as on the BSDs.
func checkSystem(m *machine, c tool.Call, j *shell.Judgment) error {
	if c.Approved || !runsUnasked(j, m.at) || !slices.ContainsFunc(j.Programs(), allProcesses) ||
		strings.HasPrefix(m.Facts.OS, "Linux") || strings.HasPrefix(m.Facts.OS, "Darwin") {
		return nil
	}
	return tool.AskFirst(fault.New(fault.Policy, CodeSystem,
		"On this host, -e may show the environment of processes; -A does not."))
}

// allProcesses reports whether a read-only command is ps with -e, by itself or before other letters.
func allProcesses(argv []string) bool {
	return len(argv) > 1 && argv[0] == "ps" && strings.HasPrefix(argv[1], "-e")
}

// notOpened returns the request for approval of a command whose files the supervisor could not open, or whose program
// or directory has changed. For any other error it returns nil.
func notOpened(a Args, err error) error {
	switch {
	case errors.Is(err, supervisor.ErrProgram):
		return asks(a, CodeProgram, otherProgram)
	case errors.Is(err, supervisor.ErrOutside):
		return asks(a, CodeOutside, "A path leads to a file outside of the folders that may be read without asking.")
	case errors.Is(err, supervisor.ErrSpecial):
		return asks(a, CodeOther, "A path leads to something else than a file or a folder, such as a pipe.")
	case errors.Is(err, supervisor.ErrMissing):
		return asks(a, CodeMissing, "A path leads nowhere, or the file cannot be opened.")
	case errors.Is(err, supervisor.ErrMounted):
		return asks(a, CodeMounted, "A path leads to a mount made on demand or by a user, or through another "+
			"process: a look there may connect to another machine, or run something.")
	case errors.Is(err, supervisor.ErrGit):
		return asks(a, CodeRepository, "The host did not run it without asking: this repository is not an ordinary "+
			"one, or its configuration, or a submodule in it, can have git run another program.")
	case errors.Is(err, supervisor.ErrWalk):
		return asks(a, CodeWalk, "The host's grep may follow links out of the folders that may be read without asking.")
	case errors.Is(err, supervisor.ErrShared):
		return asks(a, CodeWalk, "Another user of the host can write below one of these folders, or the folder has "+
			"links where a search expects lists of ignored files, so it could be led elsewhere.")
	}
	return nil
}

// asks returns a request for approval of the command, with a reason.
func asks(a Args, code fault.Code, why string) error {
	return tool.AskAnew(a, fault.New(fault.Policy, code, "%s", why))
}
