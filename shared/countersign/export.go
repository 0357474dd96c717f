package countersign

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"

	"github.com/countersign-run/countersign/shared/agent/model"
	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/base/clip"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/base/strictjson"
	"github.com/countersign-run/countersign/shared/engine/conversation"
	"github.com/countersign-run/countersign/shared/engine/loop"
)

// exportHead is the first line of an exported session. Each further line is an exportLine, which holds one run.
type exportHead struct {
	Version int    `json:"countersign"` // the version of the format: 1
	Title   string `json:"title,omitempty"`
	Mark    string `json:"mark,omitempty"` // distinguishes the runtime's own lines in the contents
}

type exportLine struct {
	Run      string            `json:"run,omitempty"`
	By       string            `json:"by,omitempty"` // the service and model that signed the model's answers
	Record   bool              `json:"record,omitempty"`
	Contents []json.RawMessage `json:"contents"`
}

// The limits of Import.
const (
	exportVersion  = 1
	maxExportLine  = 2 << 20
	maxExportLines = run.MaxMessages / 2
)

// Export writes the session as JSON lines, one for each run that has ended, with all contents byte for byte.
// [Agent.Import] reads them.
func (s *Session) Export(ctx context.Context, w io.Writer) error {
	t, _, err := s.stored(ctx)
	if err != nil {
		return err
	}
	return s.parts(ctx, true, func(p *conversation.Parts, _ string) error {
		lines := []any{exportHead{exportVersion, t.Title, t.Mark}}
		for _, c := range p.Closed {
			lines = append(lines, exportLine{c.Run, c.By, c.Recorded, c.Contents})
		}
		for _, l := range lines {
			b, err := strictjson.Marshal(l)
			if err == nil {
				_, err = w.Write(append(b, '\n'))
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// Import reads the output of [Session.Export] and stores it as a new session of the agent's user. It repeats no
// question and no effect. Contents that another model signed reach the model as plain text. Import reads and checks
// everything before it stores anything. The error has the class [ClassValidation] and names the line. The limit is 1
// MiB of contents for each run.
func (a *Agent) Import(ctx context.Context, r io.Reader) (*Session, error) {
	if err := a.usable(); err != nil {
		return nil, err
	}
	head, lines, err := readExport(r)
	if err != nil {
		return nil, public(err)
	}
	s := a.NewSession()
	for _, l := range lines {
		said := messagesOf("", l.Contents)
		in := loop.Import{Contents: l.Contents, By: l.By, Recorded: l.Record, Mark: head.Mark,
			Prompt: clip.Text(said[0].Text, maxPrompt)}
		if last := said[len(said)-1]; last.Role == string(model.Answer) {
			in.Answer = clip.Text(last.Text, run.MaxMessageText)
		}
		_, err := a.core.loop.Start(ctx, loop.StartRequest{UID: a.user, Agent: a.core.name, ThreadID: s.id,
			Title: head.Title}, in)
		if err != nil {
			return nil, public(err)
		}
	}
	return s, nil
}

// readExport reads and checks an exported session.
func readExport(r io.Reader) (head exportHead, lines []exportLine, err error) {
	scan := bufio.NewScanner(r)
	scan.Buffer(nil, maxExportLine)
	for n := 1; scan.Scan(); n++ {
		bad := func(why string, cause error) error {
			return fault.Invalid("line", "line %d: %s", n, why).Because(cause)
		}
		if n == 1 {
			if err := strictjson.Decode(scan.Bytes(), &head); err != nil || head.Version != exportVersion {
				return head, nil, bad("it is not the beginning of an exported session", err)
			}
			continue
		}
		var l exportLine
		if err := strictjson.Decode(scan.Bytes(), &l); err != nil {
			return head, nil, bad("it is not a run of an exported session", err)
		}
		if err := checkExported(l); err != nil {
			return head, nil, bad("a model would not accept the run", err)
		}
		if lines = append(lines, l); n > maxExportLines {
			return head, nil, bad("there are too many runs", nil)
		}
	}
	switch {
	case errors.Is(scan.Err(), bufio.ErrTooLong):
		return head, nil, fault.Invalid("line", "a line is longer than %d bytes", maxExportLine)
	case scan.Err() != nil:
		return head, nil, scan.Err()
	case len(lines) == 0:
		return head, nil, fault.Invalid("line", "no run in the export")
	}
	if head.Title == "" {
		head.Title = "imported"
	}
	return head, lines, nil
}

// checkExported checks that a model accepts the run: it begins with the user's text, and every call has its response.
func checkExported(l exportLine) error {
	c, err := model.Load(l.Contents)
	switch {
	case err != nil:
		return err
	case len(l.Contents) == 0 || len(c.Open()) > 0 || model.Words(l.Contents[0]) == "":
		return errors.New("the beginning is missing, or a call has no response")
	case conversation.Size(l.Contents) > run.MaxRunContents:
		return errors.New("too large")
	}
	for _, raw := range l.Contents {
		if len(raw) > run.MaxContent {
			return errors.New("a content is too large")
		}
	}
	return nil
}
