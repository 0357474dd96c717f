package gemini

import (
	"bytes"
	"encoding/json"
	"regexp"
	"slices"
	"strings"

	jsonv2 "github.com/go-json-experiment/json"
	"google.golang.org/genai"

	"github.com/countersign-run/countersign/shared/fault"
	"github.com/countersign-run/countersign/shared/model"
)

// answer collects what genai decoded of the response, chunk by chunk.
type answer struct {
	stream    bool
	shown     bool // a piece of the text was passed on
	passing   bool // delta is running
	text      strings.Builder
	candidate bool
	blocked   genai.BlockedReason
	finish    genai.FinishReason
	usage     model.Usage
	version   string
}

// take adds one response or one chunk, and passes its visible text to delta.
func (a *answer) take(res *genai.GenerateContentResponse, delta func(string)) {
	if res.PromptFeedback != nil && res.PromptFeedback.BlockReason != "" {
		a.blocked = res.PromptFeedback.BlockReason
	}
	if u := res.UsageMetadata; u != nil {
		a.usage = model.Usage{
			Prompt: int(u.PromptTokenCount) + int(u.ToolUsePromptTokenCount), Cached: int(u.CachedContentTokenCount),
			Output: int(u.CandidatesTokenCount), Thoughts: int(u.ThoughtsTokenCount), Total: int(u.TotalTokenCount),
		}
	}
	if res.ModelVersion != "" {
		a.version = res.ModelVersion
	}
	if len(res.Candidates) == 0 || res.Candidates[0] == nil {
		return
	}
	c := res.Candidates[0]
	a.candidate = true
	if c.FinishReason != "" {
		a.finish = c.FinishReason
	}
	if c.Content == nil {
		return
	}
	for _, p := range c.Content.Parts {
		if p != nil && !p.Thought && p.Text != "" {
			a.text.WriteString(p.Text)
			a.shown, a.passing = true, true
			delta(p.Text)
			a.passing = false
		}
	}
}

// reply validates the answer: an unusable one is an error, one that the model can mend is a correction.
func (a *answer) reply(ex *exchange, req model.Request) (*model.Reply, *fault.Error) {
	if err := a.stopped(); err != nil {
		return nil, err
	}
	r := &model.Reply{Text: a.text.String(), Finish: string(a.finish), Usage: a.usage, Model: a.version,
		Correction: corrections[a.finish]}
	if r.Correction != "" {
		return r, nil
	}
	parts, err := rawParts(ex.body.Bytes(), a.stream)
	switch {
	case err != nil:
		return nil, unreadable()
	case len(parts) == 0:
		return nil, empty()
	}
	content := contentOf(parts)
	parsed, err := model.Parse(content)
	switch {
	case err != nil:
		return nil, fault.As(err)
	case parsed.Text != r.Text: // genai and this package disagree: trust neither
		return nil, unreadable()
	case len(parsed.Calls) == 0 && strings.TrimSpace(parsed.Text) == "":
		return nil, empty()
	case len(parsed.Calls) > 0 && req.NoTools:
		r.Correction = corrections[genai.FinishReasonUnexpectedToolCall]
		return r, nil
	}
	r.Content, r.Calls = content, parsed.Calls
	r.Finish = string(genai.FinishReasonStop)
	return r, nil
}

// corrections holds the model's message for each finish reason whose answer is not used.
var corrections = map[genai.FinishReason]string{
	genai.FinishReasonMalformedFunctionCall: "Your last answer held a function call that could not be read. Nothing " +
		"was done. Call the function again with plain JSON arguments, or answer in words.",
	genai.FinishReasonUnexpectedToolCall: "Your last answer called a function that may not be called now. Nothing " +
		"was done. Answer in words.",
	genai.FinishReasonTooManyToolCalls: "Your last answer called too many functions. Nothing was done. Call " +
		"fewer at once, or answer in words.",
}

// blocking holds the finish reasons with which the service withholds an answer.
var blocking = []genai.FinishReason{
	genai.FinishReasonSafety, genai.FinishReasonRecitation, genai.FinishReasonLanguage, genai.FinishReasonBlocklist,
	genai.FinishReasonProhibitedContent, genai.FinishReasonSPII, genai.FinishReasonImageSafety,
	genai.FinishReasonImageProhibitedContent,
	genai.FinishReasonImageRecitation, genai.FinishReasonNoImage, genai.FinishReasonImageOther, "MODEL_ARMOR",
}

// stopped returns the error for an answer that is incomplete, or nil if it is complete or the model can mend it.
func (a *answer) stopped() *fault.Error {
	_, mendable := corrections[a.finish]
	switch {
	case a.blocked != "":
		return blocked(string(a.blocked))
	case !a.candidate:
		return empty()
	case slices.Contains(blocking, a.finish):
		return blocked(string(a.finish))
	case a.finish == genai.FinishReasonStop, mendable:
		return nil
	case a.finish == "" && !a.stream:
		return nil // one whole JSON body; some gateways leave the reason out
	case a.finish == genai.FinishReasonMaxTokens:
		return fault.New(fault.Model, model.CodeCut, "The model's answer became too long and was cut off.")
	case a.finish == "":
		return fault.New(fault.Model, model.CodeCut, "The model's answer broke off.")
	}
	return fault.New(fault.Model, model.CodeCut, "The model stopped before the end of its answer%s.",
		reason(string(a.finish)))
}

func blocked(why string) *fault.Error {
	return fault.New(fault.Model, model.CodeBlocked, "Gemini withheld the answer%s. Please put it in other words.",
		reason(why))
}

func empty() *fault.Error {
	return fault.New(fault.Model, model.CodeEmpty, "The model gave an empty answer.")
}

func unreadable() *fault.Error {
	return fault.New(fault.Model, model.CodeUnreadable, "The model's answer could not be read.")
}

var enum = regexp.MustCompile(`^[A-Z][A-Z_]{0,39}$`)

// reason returns the service's reason if it is one of its enum values, and no other text of the provider.
func reason(s string) string {
	if !enum.MatchString(s) {
		return ""
	}
	return " (" + s + ")"
}

// rawParts returns the first candidate's parts in the response, verbatim and in order. A part that holds nothing (an
// empty object, an empty text with nothing beside it) is left out: the service refuses it when it is sent back.
func rawParts(body []byte, stream bool) ([]json.RawMessage, error) {
	chunks := [][]byte{body}
	if stream {
		chunks = events(body)
	}
	var out []json.RawMessage
	for _, chunk := range chunks {
		var res struct {
			Candidates []struct {
				Content struct {
					Parts []json.RawMessage `json:"parts"`
				} `json:"content"`
			} `json:"candidates"`
		}
		if err := jsonv2.Unmarshal(chunk, &res); err != nil {
			return nil, err
		}
		if len(res.Candidates) == 0 {
			continue
		}
		for _, p := range res.Candidates[0].Content.Parts {
			if !hollow(p) {
				out = append(out, p)
			}
		}
	}
	return out, nil
}

var blankLine = regexp.MustCompile(`\r?\n\r?\n`)

// events splits a stream into the data of its events, as genai does.
func events(body []byte) [][]byte {
	var out [][]byte
	for _, e := range blankLine.Split(string(body), -1) {
		if data, ok := strings.CutPrefix(e, "data:"); ok {
			out = append(out, []byte(data))
		}
	}
	return out
}

func hollow(part json.RawMessage) bool {
	var fields map[string]any
	if json.Unmarshal(part, &fields) != nil {
		return false
	}
	for name, v := range fields {
		if v != nil && (name != "text" || v != "") {
			return false
		}
	}
	return true
}

func contentOf(parts []json.RawMessage) json.RawMessage {
	var b bytes.Buffer
	b.WriteString(`{"role":"model","parts":[`)
	for i, p := range parts {
		if i > 0 {
			b.WriteByte(',')
		}
		b.Write(p)
	}
	b.WriteString(`]}`)
	return b.Bytes()
}
