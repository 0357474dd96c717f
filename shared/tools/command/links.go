package command

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/countersign-run/countersign/shared/fault"
	"github.com/countersign-run/countersign/shared/keeper"
	"github.com/countersign-run/countersign/shared/shell"
	"github.com/countersign-run/countersign/shared/tool"
)

// CodeSystem is of a command that only looks, and shows more on the host's system than on others.
const CodeSystem = fault.Code("system_shows_more")

// CodeOther is of a command that only looks, and would read a pipe, a socket or a device.
const CodeOther = fault.Code("not_a_file")

// checkLinks refuses a command that runs unasked and would print a file outside of the folders that its user named,
// which links may lead to. It asks the host, right before the command runs. So it does with the e of ps where that may
// be the environments of processes, as on the BSDs, and not all processes.
func (r *runner) checkLinks(ctx context.Context, m *machine, c tool.Call, j *shell.Judgment) error {
	switch {
	case c.Approved:
		return nil
	case allProcesses(j.Argv) && !strings.HasPrefix(m.Facts.OS, "Linux") && !strings.HasPrefix(m.Facts.OS, "Darwin"):
		return tool.AskFirst(fault.New(fault.Policy, CodeSystem,
			"On this host's system, -e may show what is in the environment of processes; -A does not."))
	case len(j.Reads) == 0:
		return nil
	}
	paths := slices.Clone(m.at.Host.ReadPaths)
	n := len(paths)
	for _, f := range j.Reads {
		paths = append(paths, absolute(f, m.at.Cwd))
	}
	lead, err := resolve(ctx, m.conn, paths)
	if err != nil {
		return err
	}
	if err := ordinary(ctx, m.conn, lead[n:]); err != nil {
		return err
	}
	for i, f := range lead[n:] {
		if !within(lead[:n], f) {
			return tool.AskFirst(fault.New(fault.Policy, CodeOutside, "%s leads to a file outside of the folders that "+
				"may be read without asking.", shell.Quote(paths[n+i:n+i+1])))
		}
	}
	return nil
}

// allProcesses reports whether a command that only looks is ps with -e, alone or before other letters.
func allProcesses(argv []string) bool {
	return len(argv) > 1 && argv[0] == "ps" && strings.HasPrefix(argv[1], "-e")
}

// maxLine is how long a line may be that asks about several paths, in bytes.
const maxLine = 16 << 10

// resolve returns where paths lead on the host when all links are followed; one that cannot be followed leads nowhere.
// One line asks about all of them, and where the answer is not one for each, a line about each.
func resolve(ctx context.Context, conn keeper.Conn, paths []string) ([]string, error) {
	line := func(p ...string) string { return "readlink -f -- " + shell.Quote(p) }
	if all := line(paths...); len(all) <= maxLine && !slices.ContainsFunc(paths, odd) {
		if lead, err := answered(ctx, conn, all); err != nil || len(lead) == len(paths) {
			return lead, err
		}
	}
	out := make([]string, len(paths))
	for i, p := range paths {
		if odd(p) {
			continue
		}
		lead, err := answered(ctx, conn, line(p))
		if err != nil {
			return nil, err
		}
		if len(lead) == 1 {
			out[i] = lead[0]
		}
	}
	return out, nil
}

// ordinaryFile prints a line for each path at which there is something else than a regular file or a directory.
const ordinaryFile = `for f; do [ -f "$f" ] || [ -d "$f" ] || [ ! -e "$f" ] || echo other; done; echo over`

// ordinary refuses paths of pipes, sockets and devices: to read one may take what another program waits for, or never
// end.
func ordinary(ctx context.Context, conn keeper.Conn, paths []string) error {
	paths = slices.DeleteFunc(slices.Clone(paths), odd) // nothing leads there
	said, err := answered(ctx, conn, "sh -c '"+ordinaryFile+"' sh "+shell.Quote(paths))
	if err == nil && !slices.Equal(said, []string{"over"}) {
		err = tool.AskFirst(fault.New(fault.Policy, CodeOther,
			"A path leads to something else than a file or a folder, such as a pipe."))
	}
	return err
}

// odd reports whether no host is asked about a path.
func odd(p string) bool { return !path.IsAbs(p) || strings.ContainsAny(p, "\n'\\") }

var errResolve = errors.New("command: the host does not say where links lead")

// answered returns the lines that the host answers, or none if the answer is not whole or is that of a failure.
func answered(ctx context.Context, conn keeper.Conn, line string) ([]string, error) {
	var b limited
	exit, err := conn.Exec(ctx, keeper.Exec{Line: line, Stdout: &b})
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

// limited keeps the beginning of what is written to it.
type limited struct{ strings.Builder }

func (l *limited) Write(b []byte) (int, error) {
	l.Builder.Write(b[:min(len(b), maxResolved-min(maxResolved, l.Len()))])
	return len(b), nil
}
