package command

import (
	"path"

	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/telemetry/obs"
	"github.com/countersign-run/countersign/shared/terminal/shell"
)

// shows returns the file contents that a command has printed.
func shows(a Args, out Result) (parts []tool.Part) {
	const rest = "Change it in place, as with sed or patch. If you mean another file, name it by its whole path."
	prints, _, moved := shell.Contents(a.Command, shell.Bash)
	text := func(name string) tool.Text {
		if !path.IsAbs(name) && !moved {
			name = path.Join(out.Cwd, name)
		}
		return tool.Text{Name: name}
	}
	for _, name := range shell.Excerpts(a.Command, shell.Bash) {
		parts = append(parts, tool.Part{Text: text(name), Rest: rest, Excerpt: true,
			Lost: "what the command did not print"})
	}
	for _, name := range prints {
		p := tool.Part{Text: text(name), Rest: rest}
		switch {
		case out.Truncated:
			p.Lost = "the omitted part of the output"
		case obs.Redacted(out.Output):
			p.Lost = "the redacted secrets"
		}
		parts = append(parts, p)
	}
	return parts
}

// replaces returns the files that a command overwrites with a text of the model.
func replaces(a Args) (texts []tool.Text) {
	_, writes, _ := shell.Contents(a.Command, shell.Bash)
	for _, name := range writes {
		texts = append(texts, tool.Text{Name: name})
	}
	return texts
}
