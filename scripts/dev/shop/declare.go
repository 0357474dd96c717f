package shop

import (
	"bytes"
	"embed"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/countersign-run/countersign/shared/tools/action"
)

//go:embed actions
var declared embed.FS

// Handlers returns the handlers of the declared actions.
func (s *Shop) Handlers() action.Handlers {
	return action.Handlers{
		"searchProducts": action.Query(s.SearchProducts),
		"getProduct":     action.Query(s.GetProduct),
		"submitRating":   action.Handle(s.SubmitRating),
	}
}

// Declare writes the files of the actions into a folder, from which they are read like an operator's files. The agents
// that name the actions can use them. If the page has no agent, the built-in agents can.
func (s *Shop) Declare(dir string) error {
	files, err := fs.Sub(declared, "actions")
	if err != nil {
		return err
	}
	if err := errors.Join(os.RemoveAll(dir), os.CopyFS(dir, files)); err != nil || s.Agent != "" {
		return err
	}
	file := filepath.Join(dir, "plugin.yaml")
	plugin, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	return os.WriteFile(file, bytes.Replace(plugin, []byte("offered: named"), []byte("offered: all"), 1), 0o600)
}
