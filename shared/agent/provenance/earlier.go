package provenance

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/countersign-run/countersign/shared/agent/model"
	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/agent/taint"
	"github.com/countersign-run/countersign/shared/agent/tool"
)

// history adds the earlier messages of a thread, for a run that sees only their text.
func (h *Record) history() error {
	var answers []string
	for _, m := range h.run.Input.History {
		switch {
		case m.Role == run.RoleUser && m.Read == nil:
			h.texts.Say(m.TrustedText())
			continue
		case m.Read != nil: // the model's words, which may contain those of strangers
			h.texts.Read(taint.Source{Origin: "an earlier answer, after " + m.Read.Origin, Private: m.Read.Private,
				Text: m.TrustedText() + "\n" + m.Outcome, Echo: true, Found: strings.Join(m.Read.Addresses, "\n")})
		}
		answers = append(answers, m.TrustedText())
	}
	h.texts.Compose(strings.Join(answers, "\n"))
	return h.wrote()
}

// wrote adds what the model wrote in these earlier runs, if its tools fetch addresses. The model may read such text
// again if it sent it to itself or stored it.
func (h *Record) wrote() error {
	fetches := slices.ContainsFunc(h.run.Tools().Names(), func(name string) bool {
		return h.run.Tools()[name].FetchesAddress() && h.run.Has(name)
	})
	if !fetches {
		return nil
	}
	var done []string
	for _, m := range h.run.Input.History {
		if m.RunID == "" || slices.Contains(done, m.RunID) {
			continue
		}
		done = append(done, m.RunID)
		s, err := h.run.Ended(m.RunID)
		if err != nil {
			return err
		}
		for _, t := range s.Turns {
			h.compose(t.Content)
		}
	}
	return nil
}

// thread adds the part of the thread's contents that the run sees. A summary counts as strangers' text, because its
// sources are unknown.
func (h *Record) thread(window run.ContextWindow) error {
	if text := strings.TrimSpace(window.Summary + "\n" + window.Carried); text != "" {
		h.texts.Compose(text)
		h.texts.Read(taint.Source{Origin: "the summary of what came before in this conversation", Text: text})
	}
	entries, err := h.run.Thread(window)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.Raw != nil {
			h.content(e.Raw)
			continue
		}
		s, err := h.run.Ended(e.Run)
		if err != nil {
			return err
		}
		h.ended(s)
	}
	return nil
}

// ended adds an earlier run of the thread, turn by turn.
func (h *Record) ended(s *run.State) {
	h.prompt(s.Input)
	for i, t := range s.Turns {
		h.compose(t.Content)
		for _, a := range s.Actions {
			if a.Turn == i+1 {
				h.read(&a.ProposedCall, a.Result, a.Error)
			}
		}
	}
}

// content adds one Gemini content: the user's words, files, and tool results that come from strangers. Records that the
// server wrote in the user's role are skipped.
func (h *Record) content(raw json.RawMessage) {
	var c struct {
		Role  string `json:"role"`
		Parts []struct {
			Text string `json:"text"`
		} `json:"parts"`
	}
	if json.Unmarshal(raw, &c) != nil {
		return
	}
	for range model.Files(raw) {
		h.texts.ReadFile(earlierFile)
	}
	if c.Role != string(model.User) {
		h.compose(raw)
		return
	}
	for _, p := range c.Parts {
		if p.Text != "" && !strings.HasPrefix(p.Text, "[record ") {
			h.texts.Say(p.Text)
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
		if t := h.run.Tools()[r.Name]; t != nil {
			var args json.RawMessage
			if i < len(h.asks) {
				args = h.asks[i].Args
			}
			is := t.Reading(args, r.Result)
			src.Private, src.Echo, src.Found = t.Placed(), t.Echoes, is.Found
		}
		h.texts.Read(src)
	}
}
