package command_test

import (
	"strings"
	"testing"

	"github.com/countersign-run/countersign/shared/testkit/toolstest"
	"github.com/countersign-run/countersign/shared/tools/command"
)

// wrongPaths adds paths that a card cannot show, or whose target is not known in advance.
func wrongPaths(more map[string]toolstest.Refused) map[string]toolstest.Refused {
	for _, path := range []string{"", " ", "~", "a/", "../a", "a/../b", "./a", "a\nb", "a\x00", "a\u202etxt.x",
		"a\u200bb", strings.Repeat("a", 4097)} {
		more["the path "+path[:min(len(path), 20)]] = toolstest.Refused{Change: map[string]any{"path": path},
			Field: "path"}
	}
	more["a blank reason"] = toolstest.Refused{Change: map[string]any{"reasoning": "\u200b "}, Field: "reasoning"}
	more["a host of its own"] = toolstest.Refused{Change: map[string]any{"hostId": "x"}, Field: "hostId"}
	return more
}

func TestUploadSuite(t *testing.T) {
	toolstest.Suite{
		Tool: command.New(command.Options{})[command.Upload],
		Args: map[string]any{"file": "a.conf", "path": "/etc/a.conf", "reasoning": "To have it."},
		Other: map[string]map[string]any{"file": {"file": "b.conf"}, "path": {"path": "/etc/b.conf"},
			"overwrite": {"overwrite": true}, "reasoning": {"reasoning": "To have another."}},
		Labels: []string{"File", "Type", "Size", "SHA-256", "Path", "Which is", "There now", "Replaces", "Overwrite",
			"The assistant says"},
		Texts: map[string]string{"file": "File", "reasoning": "The assistant says"},
		Previews: map[string]toolstest.Shown{
			"as it is":    {Want: []string{"Upload a file to a host", "File: a.conf", "Path: /etc/a.conf"}},
			"overwriting": {Change: map[string]any{"overwrite": true}, Want: []string{"Overwrite: Only the file"}},
		},
		Refused: wrongPaths(map[string]toolstest.Refused{
			"no file": {Change: map[string]any{"file": ""}, Field: "file"},
		}),
	}.Run(t)
}

func TestDownloadSuite(t *testing.T) {
	toolstest.Suite{
		Tool: command.New(command.Options{})[command.Download],
		Args: map[string]any{"path": "/var/log/a", "reasoning": "To have it."},
		Other: map[string]map[string]any{"path": {"path": "/var/log/b"},
			"reasoning": {"reasoning": "To have another."}},
		Labels: []string{"Path", "Which is", "Size", "SHA-256", "The assistant says"},
		Texts:  map[string]string{"reasoning": "The assistant says"},
		Previews: map[string]toolstest.Shown{
			"as it is": {Want: []string{"Download a file from a host", "Path: /var/log/a"}},
		},
		Refused: wrongPaths(map[string]toolstest.Refused{}),
	}.Run(t)
}
