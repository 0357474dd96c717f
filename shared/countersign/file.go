package countersign

import (
	"context"

	"github.com/countersign-run/countersign/shared/agent/run"
)

// File is a picture or another file in an answer of the model or in a result of an MCP server's tool. It is stored with
// its run, and deleted with the session. Above 1.5 MiB in one answer or result, [Options.Files] keeps its bytes;
// without it, the file is not kept, and a line of the answer says so. Strangers' text can be in a file, as in an
// [Attachment].
type File struct {
	RunID  string
	Name   string
	Type   string // MIME type, by the content
	Size   int    // bytes
	SHA256 string // in hex

	number int
}

func filesIn(v *run.View) (all []File) {
	for _, f := range v.Files {
		all = append(all, File{v.RunID, f.Name, f.Type, f.Size, f.SHA256, f.Number})
	}
	return all
}

// Read returns the bytes of a file in an answer.
func (s *Session) Read(ctx context.Context, f File) ([]byte, error) {
	got, err := s.agent.core.loop.Attachment(ctx, s.agent.user, f.RunID, f.number)
	if err != nil {
		return nil, public(err)
	}
	return got.Data, nil
}
