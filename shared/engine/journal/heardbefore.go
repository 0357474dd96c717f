package journal

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/countersign-run/countersign/shared/agent/model"
	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/agent/taint"
	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/store"
	"github.com/countersign-run/countersign/shared/store/document"
)

// history adds the earlier messages of a thread, for a run that sees only their text.
func (h *heard) history(tx *Tx) error {
	var answers []string
	for _, m := range tx.State.Input.History {
		switch {
		case m.Role == run.RoleUser && m.Read == nil:
			h.record.Say(m.OwnWords())
			continue
		case m.Read != nil: // the model's words, which may contain those of strangers
			h.record.Read(taint.Source{Origin: "an earlier answer, after " + m.Read.Origin, Private: m.Read.Private,
				Text: m.OwnWords() + "\n" + m.Outcome, Echo: true, Found: strings.Join(m.Read.Addresses, "\n")})
		}
		answers = append(answers, m.OwnWords())
	}
	h.record.Compose(strings.Join(answers, "\n"))
	return h.wrote(tx)
}

// wrote adds what the model wrote in these earlier runs, if its tools fetch addresses. The model may read such text
// again if it sent it to itself or stored it.
func (h *heard) wrote(tx *Tx) error {
	fetches := slices.ContainsFunc(tx.Ex.Tools.Names(), func(name string) bool {
		return tx.Ex.Tools[name].FetchesAddress() && tx.ToolIn(name, false) != nil
	})
	if !fetches {
		return nil
	}
	var done []string
	for _, m := range tx.State.Input.History {
		if m.RunID == "" || slices.Contains(done, m.RunID) {
			continue
		}
		done = append(done, m.RunID)
		s, err := endedIn(tx, m.RunID)
		if err != nil {
			return err
		}
		for _, t := range s.Turns {
			h.compose(tx, t.Content)
		}
	}
	return nil
}

// thread adds the part of the thread's contents that the run sees. A summary counts as strangers' text, because its
// sources are unknown.
func (h *heard) thread(tx *Tx, told run.Told) error {
	if text := strings.TrimSpace(told.Summary + "\n" + told.Carried); text != "" {
		h.record.Compose(text)
		h.record.Read(taint.Source{Origin: "the summary of what came before in this conversation", Text: text})
	}
	entries, err := toldIn(tx, told)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.Raw != nil {
			h.content(tx, e.Raw)
			continue
		}
		s, err := endedIn(tx, e.Run)
		if err != nil {
			return err
		}
		h.ended(tx, s)
	}
	return nil
}

// ended adds an earlier run of the thread, turn by turn.
func (h *heard) ended(tx *Tx, s *run.State) {
	h.asked(s.Input)
	for i, t := range s.Turns {
		h.compose(tx, t.Content)
		for _, a := range s.Actions {
			if a.Turn == i+1 {
				h.read(tx, &a.ProposedCall, a.Result, a.Error)
			}
		}
	}
}

// content adds one Gemini content: the user's words, and tool results that come from strangers. Records that the server
// wrote in the user's role are skipped.
func (h *heard) content(tx *Tx, raw json.RawMessage) {
	var c struct {
		Role  string `json:"role"`
		Parts []struct {
			Text string `json:"text"`
		} `json:"parts"`
	}
	if json.Unmarshal(raw, &c) != nil {
		return
	}
	if c.Role != string(model.User) {
		h.compose(tx, raw)
		return
	}
	for _, p := range c.Parts {
		if p.Text != "" && !strings.HasPrefix(p.Text, "[record ") {
			h.record.Say(p.Text)
		}
	}
	responses, err := model.Responses(raw)
	if err != nil { // the content is text
		return
	}
	for i, r := range responses {
		if !r.Untrusted {
			continue
		}
		src := taint.Source{Origin: "an earlier result of " + r.Name,
			Text: strings.Join(append(tool.Strings(r.Result), r.Error), "\n")}
		if t := tx.Ex.Tools[r.Name]; t != nil {
			var args json.RawMessage
			if i < len(h.asks) {
				args = h.asks[i].Args
			}
			is := t.Reading(args, r.Result)
			src.Private, src.Echo, src.Found = t.Placed(), t.Echoes, is.Found
		}
		h.record.Read(src)
	}
}

// toldIn is [Execution.ToldContents] within a transition.
func toldIn(tx *Tx, told run.Told) ([]run.Content, error) {
	if told.Last < max(told.First, 1) {
		return nil, nil
	}
	var t run.Thread
	path := document.ThreadPath(tx.Run.ThreadID)
	if _, err := tx.Doc(path, &t); err != nil {
		return nil, err
	}
	chunks, err := chunksIn(tx, t.Contents.Paths(path, run.ContentChunks, told.First, told.Last))
	if err != nil {
		return nil, err
	}
	return toldOf(t, told, chunks)
}

// endedIn is [Execution.EndedRun] within a transition.
func endedIn(tx *Tx, id string) (*run.State, error) {
	var r run.Run
	path := document.RunPath(id)
	if d, err := tx.Doc(path, &r); err != nil {
		return nil, err
	} else if !d.Exists() {
		return nil, fmt.Errorf("journal: run %s of the conversation is missing", id)
	}
	chunks, err := chunksIn(tx, r.Log.ChunkPaths(path, "events"))
	if err != nil {
		return nil, err
	}
	events, err := r.Log.All(chunks...)
	if err != nil {
		return nil, err
	}
	return run.Fold(events)
}

// chunksIn returns documents that never change, within a transition. It returns errMissingDocs if some are not cached.
func chunksIn(tx *Tx, paths []string) (all []json.RawMessage, err error) {
	var missing errMissingDocs
	for _, p := range paths {
		d, read := tx.Ex.Docs[p]
		if !read && len(missing) < store.MaxReads-2 { // leaves room for the user's document and the thread
			missing = append(missing, p)
		}
		all = append(all, d.Data)
	}
	if missing != nil {
		return nil, missing
	}
	return all, nil
}
