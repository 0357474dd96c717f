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

// prompt adds the prompt of a run and its files. The prompt counts as the user's words unless another program's agent
// wrote it.
func (h *Record) prompt(in run.Input) {
	if in.FilesBefore { // the model's words may repeat a file even after a summary has replaced it
		h.texts.ReadFile(earlierFile)
	}
	for _, f := range in.Files {
		h.texts.ReadFile(fileOrigin(f))
	}
	if in.DelegatedBy != nil {
		h.texts.Read(taint.Source{Origin: in.DelegatedBy.Origin(), Text: in.Prompt})
		return
	}
	h.texts.Say(in.Prompt)
}

// compose adds the model's words and calls in one of its contents. A call that fetches an address is left out: either
// the address was known already, or the call waits for its user.
func (h *Record) compose(content json.RawMessage) {
	var c struct {
		Parts []struct {
			Text         string          `json:"text"`
			FunctionCall json.RawMessage `json:"functionCall"`
		} `json:"parts"`
	}
	if content == nil || json.Unmarshal(content, &c) != nil {
		return
	}
	var words []string
	h.asks = nil
	for _, p := range c.Parts {
		words = append(words, p.Text)
		var call model.Call
		if p.FunctionCall == nil || json.Unmarshal(p.FunctionCall, &call) != nil {
			continue
		}
		h.asks = append(h.asks, call)
		if t := h.run.Tools()[call.Name]; t == nil || !t.FetchesAddress() {
			words = append(words, composedIn(call)...)
		}
	}
	h.texts.Compose(strings.Join(words, "\n"))
}

// composedIn returns what the model wrote in a call: the strings in the model's order, and then the whole call with its
// names and numbers.
func composedIn(c model.Call) []string {
	return append(tool.Strings(c.Args), c.Name, string(c.Args))
}

// read adds the result of a call, if it comes from strangers.
func (h *Record) read(c *run.ProposedCall, result json.RawMessage, failed *run.ErrorInfo) {
	if !c.Untrusted {
		return
	}
	is, private := Reading(h.run.Tools(), h.run.Input, c, result)
	src := taint.Source{Origin: is.Origin, Private: private, Found: is.Found}
	if t := h.run.Tools()[c.Tool]; t != nil {
		src.Echo = t.Echoes
		if failed != nil && t.FetchesAddress() { // the error may contain the address
			h.texts.Compose(string(c.Args))
		}
	}
	if is.File {
		src.Repository = RepositoryURL(h.run.Input, is.Repository)
		if t := h.run.Tools()[c.Tool]; t != nil {
			for _, p := range t.Shows(c.Args, result) {
				src.Files = append(src.Files, p.Name)
			}
		}
	}
	texts := tool.Strings(result)
	if failed != nil {
		texts = append(texts, failed.Message)
	}
	src.Text = strings.Join(texts, "\n")
	h.texts.Read(src)
}

func say(r *taint.Record, words []string) {
	for _, w := range words {
		if w != "" {
			r.Say(w)
		}
	}
}

// edited returns the strings that a user has put into the arguments. Strings that the user left unchanged do not count
// as the user's own.
func edited(before, after json.RawMessage) []string {
	if after == nil {
		return nil
	}
	was := tool.Strings(before)
	return slices.DeleteFunc(tool.Strings(after), func(s string) bool { return slices.Contains(was, s) })
}
