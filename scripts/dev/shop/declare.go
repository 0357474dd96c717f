package shop

import (
	"embed"
	"errors"
	"io/fs"
	"os"

	"github.com/countersign-run/countersign/shared/action"
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

// Declare writes the files of the actions into a folder, from which they are read like an operator's.
func Declare(dir string) error {
	files, err := fs.Sub(declared, "actions")
	if err != nil {
		return err
	}
	return errors.Join(os.RemoveAll(dir), os.CopyFS(dir, files))
}
