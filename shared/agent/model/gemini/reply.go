package gemini

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"google.golang.org/genai"

	"github.com/countersign-run/countersign/shared/agent/model"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/base/lazyregexp"
)

// answer is one answer of the model.
type answer struct {
	stream  bool
	shown   bool            // a piece of the text was passed on
	passing bool            // delta is running
	said    strings.Builder // the text that was passed on

	parts     []json.RawMessage // verbatim and in order, without empty parts
	text      string            // the visible text of parts
	candidate bool
	done      bool // the stream said that it was complete
	blocked   genai.BlockedReason
	finish    genai.FinishReason
	usage     model.Usage
	version   string
	sources   []model.Source
}

// show passes on the visible text of one chunk, and its thoughts if think is not nil.
func (a *answer) show(res *genai.GenerateContentResponse, delta, think func(string)) {
	first := slices.IndexFunc(res.Candidates, func(c *genai.Candidate) bool { return c != nil && c.Index == 0 })
	if first < 0 || res.Candidates[first].Content == nil {
		return
	}
	for _, p := range res.Candidates[first].Content.Parts {
		switch {
		case p == nil || p.Text == "" || p.Thought && think == nil:
			continue
		case p.Thought: // the answer can still be asked for again
			a.passing = true
			think(p.Text)
		default:
			a.said.WriteString(p.Text)
			a.shown, a.passing = true, true
			delta(p.Text)
		}
		a.passing = false
	}
}

// reply validates a complete answer. An unusable answer is an error. If the model can correct it, the reply has a
// correction.
func (a *answer) reply(req model.Request) (*model.Reply, *fault.Error) {
	if err := a.stopped(); err != nil {
		return nil, err
	}
	r := &model.Reply{Text: a.text, Finish: string(a.finish), Usage: a.usage, Model: a.version,
		Correction: a.correction(), Sources: a.sources}
	switch {
	case a.stream && a.text != a.said.String(): // genai and this package disagree, so neither is trusted
		return nil, unreadable()
	case r.Correction != "":
		return r, nil
	case len(a.parts) == 0:
		r.Correction = saidNothing
		return r, nil
	}
	content, files, err := model.TakeFiles(contentOf(a.parts))
	var parsed *model.Parsed
	if err == nil {
		parsed, err = model.Parse(content)
	}
	switch {
	case fault.Is(err, fault.Model, model.CodeEmpty): // only drafts of pictures
		r.Correction = saidNothing
		return r, nil
	case err != nil:
		return nil, fault.As(err)
	case parsed.Text != r.Text:
		return nil, unreadable()
	case len(parsed.Calls) == 0 && strings.TrimSpace(parsed.Text) == "" && len(files) > 0:
	case len(parsed.Calls) == 0 && strings.TrimSpace(parsed.Text) == "" && model.HasLostFile(content):
		r.Correction = onlyFile
		return r, nil
	case len(parsed.Calls) == 0 && strings.TrimSpace(parsed.Text) == "": // for example only thoughts
		r.Correction = saidNothing
		return r, nil
	case len(parsed.Calls) > 0 && req.NoTools:
		r.Finish = string(genai.FinishReasonUnexpectedToolCall)
		r.Correction = corrections[genai.FinishReasonUnexpectedToolCall]
		return r, nil
	}
	r.Content, r.Calls, r.Files = content, parsed.Calls, files
	r.Finish = string(genai.FinishReasonStop)
	return r, nil
}

// corrections maps the finish reasons of unusable answers to messages for the model.
var corrections = map[genai.FinishReason]string{
	genai.FinishReasonMalformedFunctionCall: "Your last answer held a function call that could not be read. Nothing " +
		"was done. Call the function again with plain JSON arguments, or answer in words.",
	genai.FinishReasonUnexpectedToolCall: "Your last answer called a function that may not be called now. Nothing " +
		"was done. Answer in words.",
	genai.FinishReasonTooManyToolCalls: "Your last answer called too many functions. Nothing was done. Call " +
		"fewer at once, or answer in words.",
}

// Messages for the model if no finish reason states the fault of its answer.
const (
	saidNothing = "Your last answer held neither words nor a function call. Answer in words, or call a function."
	onlyFile    = "Your last answer held a file alone, of a type that cannot be shown here. Answer in words."
	notFinished = "Your last answer ended before it was complete, and is not used. Nothing was done. Answer again."
)

// correction returns a message for the model if the answer is unusable and the model can answer again, or "". This
// includes unknown finish reasons: the service adds reasons, and each of them means that the answer is incomplete.
func (a *answer) correction() string {
	whole := a.finish == "" || a.finish == genai.FinishReasonStop
	if whole || a.finish == genai.FinishReasonMaxTokens || slices.Contains(blocking, a.finish) {
		return ""
	}
	return cmp.Or(corrections[a.finish], notFinished)
}

// foreign maps the finish reasons of other services to those of Gemini. Gateways keep them when they translate.
var foreign = map[genai.FinishReason]genai.FinishReason{
	"END_TURN": genai.FinishReasonStop, "STOP_SEQUENCE": genai.FinishReasonStop, "TOOL_CALLS": genai.FinishReasonStop,
	"FUNCTION_CALL": genai.FinishReasonStop, "TOOL_USE": genai.FinishReasonStop, "COMPLETE": genai.FinishReasonStop,
	"TOOL_CALL": genai.FinishReasonStop, "COMPLETED": genai.FinishReasonStop,
	"LENGTH": genai.FinishReasonMaxTokens, "MAX_OUTPUT_TOKENS": genai.FinishReasonMaxTokens,
	"CONTENT_FILTER": genai.FinishReasonSafety, "UNSPECIFIED": "",
}

// finishReason returns a reason in Gemini's form. An unspecified reason becomes "".
func finishReason(given genai.FinishReason) genai.FinishReason {
	reason := genai.FinishReason(strings.TrimPrefix(strings.ToUpper(string(given)), "FINISH_REASON_"))
	if ours, ok := foreign[reason]; ok {
		return ours
	}
	return reason
}

// blocking lists the finish reasons of answers that the service withholds.
var blocking = []genai.FinishReason{
	genai.FinishReasonSafety, genai.FinishReasonRecitation, genai.FinishReasonLanguage, genai.FinishReasonBlocklist,
	genai.FinishReasonProhibitedContent, genai.FinishReasonSPII, genai.FinishReasonImageSafety,
	genai.FinishReasonImageProhibitedContent,
	genai.FinishReasonImageRecitation, genai.FinishReasonNoImage, genai.FinishReasonImageOther, "MODEL_ARMOR",
}

// stopped returns the error for an incomplete answer. It returns nil if the answer is complete or the model can correct
// it.
func (a *answer) stopped() *fault.Error {
	switch {
	case a.blocked != "":
		return blocked(string(a.blocked))
	case !a.candidate:
		return empty()
	case slices.Contains(blocking, a.finish):
		return blocked(string(a.finish))
	case a.finish == genai.FinishReasonMaxTokens:
		return fault.New(fault.Model, model.CodeCut, "The model's answer became too long and was cut off.")
	case a.finish == "" && a.stream && !a.done: // some gateways omit the reason of a complete answer
		return fault.New(fault.Model, model.CodeCut, "The model's answer ended too early.")
	}
	return nil
}

func blocked(why string) *fault.Error {
	return fault.New(fault.Model, model.CodeBlocked, "Gemini withheld the answer%s. Please rephrase the request.",
		reason(why))
}

func empty() *fault.Error {
	return fault.New(fault.Model, model.CodeEmpty, "The model returned an empty answer.")
}

func unreadable() *fault.Error {
	return fault.New(fault.Model, model.CodeUnreadable, "The model's answer could not be read.")
}

var enum = lazyregexp.New(`^[A-Z][A-Z_]{0,39}$`)

// reason returns the service's reason if it is one of its enum values. Other text of the provider is dropped.
func reason(s string) string {
	if !enum.MatchString(s) {
		return ""
	}
	return " (" + s + ")"
}

// response holds the fields that this package reads of a response, or of one chunk of a stream.
type response struct {
	PromptFeedback struct {
		BlockReason genai.BlockedReason `json:"blockReason"`
	} `json:"promptFeedback"`
	Candidates []*candidate `json:"candidates"`
	Usage      *struct {
		Prompt   count `json:"promptTokenCount"`
		Tools    count `json:"toolUsePromptTokenCount"`
		Cached   count `json:"cachedContentTokenCount"`
		Output   count `json:"candidatesTokenCount"`
		Thoughts count `json:"thoughtsTokenCount"`
		Total    count `json:"totalTokenCount"`
	} `json:"usageMetadata"`
	Version string  `json:"modelVersion"`
	Error   *status `json:"error"`
	Done    bool    `json:"done"` // see doneEvent
}

// count is a number of tokens. Some gateways write 3.0.
type count float64

// candidate holds the fields that this package reads of one candidate. It requests only one.
type candidate struct {
	Index        int                `json:"index"`
	FinishReason genai.FinishReason `json:"finishReason"`
	Content      struct {
		Parts []json.RawMessage `json:"parts"`
	} `json:"content"`
	Grounding grounding `json:"groundingMetadata"`
}

// grounding holds the fields that this package reads of the sources of an answer
// (ai.google.dev/gemini-api/docs/google-search). A chunk may also describe a map or a file.
type grounding struct {
	Chunks []struct {
		Web *struct {
			URI   string `json:"uri"`
			Title string `json:"title"`
		} `json:"web"`
	} `json:"groundingChunks"`
}

// sources returns the pages without duplicates.
func (g grounding) sources() (all []model.Source) {
	for _, c := range g.Chunks {
		if c.Web == nil || c.Web.URI == "" {
			continue
		}
		if s := (model.Source{Title: c.Web.Title, URL: c.Web.URI}); !slices.Contains(all, s) {
			all = append(all, s)
		}
	}
	return all
}

// read reads the response, or all chunks of a stream. An error of the service in it is returned as a genai.APIError.
func (a *answer) read(body []byte) error {
	var chunks [][]byte
	switch {
	case a.stream:
		chunks = events(body)
	case jsontext.Value(body).Kind() == '[': // some gateways answer every request in the form of a stream
		var list []jsontext.Value
		if err := jsonv2.Unmarshal(body, &list); err != nil {
			return err
		}
		for _, one := range list {
			chunks = append(chunks, tidy(one))
		}
	default:
		chunks = [][]byte{tidy(body)}
	}
	var text strings.Builder
	for _, chunk := range chunks {
		var res response
		if len(chunk) > 0 {
			if err := jsonv2.Unmarshal(chunk, &res); err != nil {
				return err
			}
		}
		if e := res.Error; e != nil && e.Code != 0 {
			return genai.APIError{Code: e.Code, Status: e.Status, Details: e.Details}
		}
		if err := a.add(res, &text); err != nil {
			return err
		}
	}
	a.text = text.String()
	return nil
}

// add adds one response or chunk. An empty part (an empty object, or an empty text with no other field) is left out,
// because the service refuses it when it is sent back.
func (a *answer) add(res response, text *strings.Builder) error {
	a.done = a.done || res.Done
	if why := res.PromptFeedback.BlockReason; why != "" && why != genai.BlockedReasonUnspecified {
		a.blocked = why
	}
	a.version = cmp.Or(res.Version, a.version)
	if u := res.Usage; u != nil {
		a.usage = model.Usage{Prompt: int(u.Prompt + u.Tools), Cached: int(u.Cached), Output: int(u.Output),
			Thoughts: int(u.Thoughts), Total: int(u.Total)}
	}
	var c *candidate // the candidate with index 0; a gateway may send others, in any order
	for _, of := range res.Candidates {
		if c == nil && of != nil && of.Index == 0 {
			c = of
		}
	}
	if c == nil {
		return nil
	}
	a.candidate = true
	a.finish = cmp.Or(finishReason(c.FinishReason), a.finish)
	if found := c.Grounding.sources(); len(found) > 0 { // a later chunk repeats the sources of earlier ones
		a.sources = found
	}
	for _, raw := range c.Content.Parts {
		var p part
		if err := jsonv2.Unmarshal(raw, &p); err != nil {
			return err
		}
		if !p.hollow() {
			a.parts = append(a.parts, raw)
		}
		if p.Thought == nil || !*p.Thought {
			text.WriteString(p.Text)
		}
	}
	return nil
}

// part holds the fields that this package reads of a part. [model.Parse] reads its calls.
type part struct {
	Text    string                    `json:"text"`
	Thought *bool                     `json:"thought"`
	Others  map[string]jsontext.Value `json:",embed"`
}

func (p part) hollow() bool {
	for _, v := range p.Others {
		if v.Kind() != 'n' {
			return false
		}
	}
	return p.Text == "" && p.Thought == nil
}

var blankLine = lazyregexp.New(`\r?\n\r?\n`)

// events splits a stream that eventStream rewrote into the data of its events.
func events(body []byte) [][]byte {
	var out [][]byte
	for _, e := range blankLine.Split(string(body), -1) {
		if data, ok := strings.CutPrefix(e, "data:"); ok {
			out = append(out, []byte(data))
		}
	}
	return out
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
