package crash

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	"github.com/countersign-run/countersign/scripts/prove/proof"
	"github.com/countersign-run/countersign/shared/testkit"
	"github.com/countersign-run/countersign/shared/testkit/invariants"
	"github.com/countersign-run/countersign/shared/tools/command"
)

// upload copies a file of the prompt to a host that does not have the file yet.
var upload = kind{name: "file for a host", tool: command.Upload, mode: "draft", onHost: true}

// putInto is the folder of the uploads on the host, and attached the name of each trial's file.
const (
	putInto  = "put"
	attached = "trial.txt"
)

func uploading(name string) map[string]any {
	return map[string]any{"file": attached, "path": putInto + "/" + name, "reasoning": "To have it."}
}

// otherName returns the name of a file whose path the user has edited.
func otherName(name string) string { return strings.Replace(name, " run ", " edited run ", 1) }

// askWithFile returns the request of the n-th run, with a file whose content is its name.
func (t *trial) askWithFile(to *process, n int) func(context.Context, string, ...string) (testkit.Answer, error) {
	return func(ctx context.Context, prompt string, header ...string) (testkit.Answer, error) {
		return t.at(to)(ctx, http.MethodPost, "/api/agent/run", map[string]any{"prompt": prompt,
			"terminalId": t.terminal, "attachments": []map[string]any{{"name": attached, "data": []byte(t.name(n))}}},
			header...)
	}
}

// uploads returns one effect for each time that a file of the trial was created on the host.
func (t *trial) uploads() (all []invariants.Effect) {
	for n := range t.started() {
		a := t.view(n)
		for _, name := range []string{t.name(n), otherName(t.name(n))} {
			for range t.env.host.put.times(name) {
				e := invariants.Effect{UID: t.uid, Agrees: t.holds(name, t.name(n))}
				if len(a.Actions) > 0 {
					e.ActionID = a.Actions[0].ActionID
				}
				all = append(all, e)
			}
		}
	}
	return all
}

// holds returns a check that the file has the approved name and content.
func (t *trial) holds(name, content string) func(json.RawMessage) error {
	text, err := os.ReadFile(filepath.Join(t.env.host.home, putInto, name))
	proof.Must(err)
	return func(args json.RawMessage) error {
		var a command.UploadArgs
		if err := json.Unmarshal(args, &a); err != nil {
			return err
		}
		if a.Path != putInto+"/"+name || string(text) != content {
			return fmt.Errorf("%s has %q instead of the approved file", name, text)
		}
		return nil
	}
}
