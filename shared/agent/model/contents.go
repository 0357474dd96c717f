package model

import (
	"encoding/json"
	"slices"

	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/base/strictjson"
)

// Role is the speaker of a Message.
type Role string

// The roles, in Gemini's words.
const (
	User   Role = "user"
	Answer Role = "model"
)

// A Message is one line of an earlier conversation, as people read it.
type Message struct {
	Role Role
	Text string
}

// Limits of the history that NewContents takes over: the latest messages within both.
const (
	MaxHistory      = 100       // messages
	MaxHistoryBytes = 256 << 10 // bytes of their text
)

// Contents is a conversation in the form that Gemini requires; only this type builds that form. The model's turns are
// kept as the bytes it sent. Contents guarantees that
//   - the first content is the user's, and no content and no part of it is empty;
//   - a model content with N calls is followed by one content with N responses, in order, with the same names and ids;
//   - the user's words added while calls are open wait until the calls are answered;
//   - only whole, finished turns are removed.
//
// Its methods return errors on misuse, and then leave it unchanged. It is not safe for concurrent use.
type Contents struct {
	entries []entry
	queued  []string
}

// entry is one content.
type entry struct {
	raw   json.RawMessage
	role  Role
	calls []Call   // set on a model content
	words bool     // the user's words, where a turn begins
	texts []string // texts made by this package, which further texts may join
}

// NewContents returns the contents of earlier messages, oldest first, bounded by MaxHistory and MaxHistoryBytes.
// Messages without text and leading answers are left out; consecutive ones of one role become one content.
func NewContents(history []Message) (*Contents, error) {
	c := &Contents{}
	for _, m := range newestMessages(history) {
		switch {
		case m.Role != User && m.Role != Answer:
			return nil, errMisuse("a message has the role %q", m.Role)
		case m.Text == "" || len(c.entries) == 0 && m.Role == Answer:
		default:
			c.addText(m.Role, m.Text)
		}
	}
	return c, nil
}

func newestMessages(history []Message) []Message {
	first, size := len(history), 0
	for first > 0 && len(history)-first < MaxHistory && size+len(history[first-1].Text) <= MaxHistoryBytes {
		first--
		size += len(history[first].Text)
	}
	return history[first:]
}

// Load returns contents that [Contents.JSON] returned earlier, byte for byte. Its errors are of class Model: a
// conversation that breaks the rules above would be refused by the service.
func Load(raw []json.RawMessage) (*Contents, error) {
	c := &Contents{}
	if err := c.Append(raw...); err != nil {
		return nil, err
	}
	return c, nil
}

// load adds a content of the user's side: words, or the responses to the open calls.
func (c *Contents) load(raw json.RawMessage, in *content) error {
	if in.Role != string(User) {
		return errMisuse("a content has the role %q", in.Role)
	}
	var given []Response
	for _, p := range in.parts {
		if p.FunctionCall != nil {
			return errMisuse("the user calls a function")
		}
		if r := p.FunctionResponse; r != nil {
			given = append(given, Response{ID: r.ID, Name: r.Name})
		}
	}
	if len(given) > 0 && len(given) != len(in.Parts) {
		return errMisuse("words stand among the responses")
	}
	if err := c.fits(given); err != nil {
		return err
	}
	if last := len(c.entries) - 1; in.isText() && last >= 0 && c.entries[last].words {
		before, err := decode(c.entries[last].raw)
		if err != nil {
			return err
		}
		if before.isText() { // roles alternate: words behind words are one content
			c.entries[last] = joined(before.Parts, in.Parts)
			return nil
		}
	}
	c.entries = append(c.entries, entry{raw: slices.Clone(raw), role: User, words: len(given) == 0})
	return nil
}

// joined returns one content of the user's words with the parts of two.
func joined(a, b []json.RawMessage) entry {
	parts := make([]any, 0, len(a)+len(b))
	for _, p := range slices.Concat(a, b) {
		parts = append(parts, p)
	}
	return entry{raw: encodeContent(User, parts), role: User, words: true}
}

// Append adds further contents that [Contents.JSON] returned, of this conversation or of another, and keeps their
// bytes; words that follow words become one content. It is [Load] for a conversation that has begun.
func (c *Contents) Append(raw ...json.RawMessage) error {
	undo := c.mark()
	for _, r := range raw {
		in, err := decode(r)
		switch {
		case err != nil:
		case in.Role == string(Answer):
			err = c.addRead(r, in)
		default:
			err = c.load(r, in)
		}
		if err != nil {
			undo()
			return err
		}
	}
	return nil
}

// mark returns a function that takes back what is appended from now on: new entries, and words that join the last one.
func (c *Contents) mark() (undo func()) {
	n := len(c.entries)
	if n == 0 {
		return func() { c.entries = nil }
	}
	last := c.entries[n-1]
	return func() {
		c.entries = c.entries[:n]
		c.entries[n-1] = last
	}
}

// AppendWords is [Contents.Append] for contents that another model or service has answered, whose signatures are not
// valid here: they are told in words, whole. The user's words stay as they are, and the model's visible ones are its
// own. record makes the user's content that tells of a call and its response, both as JSON.
func (c *Contents) AppendWords(raw []json.RawMessage, record func(call Call, response json.RawMessage) string) error {
	undo := c.mark()
	var open []Call
	for _, r := range raw {
		in, err := decode(r)
		if err == nil && in.Role == string(Answer) {
			open, err = c.answerInWords(r)
		} else if err == nil {
			err = c.userInWords(r, in, open, record)
		}
		if err != nil {
			undo()
			return err
		}
	}
	return nil
}

func (c *Contents) answerInWords(raw json.RawMessage) ([]Call, error) {
	p, err := Parse(raw)
	if err != nil {
		return nil, err
	}
	if p.Text != "" {
		c.addText(Answer, p.Text)
	}
	return p.Calls, nil
}

func (c *Contents) userInWords(raw json.RawMessage, in *content, open []Call,
	record func(Call, json.RawMessage) string) error {
	n := 0
	for _, p := range in.parts {
		if p.FunctionResponse != nil && n < len(open) {
			if err := c.AddUser(record(open[n], p.FunctionResponse.Response)); err != nil {
				return err
			}
			n++
		}
	}
	if n > 0 {
		return nil
	}
	return c.load(raw, in)
}

// AddUser adds the user's words. While calls are open they wait for the responses.
func (c *Contents) AddUser(text string) error {
	if text == "" {
		return errMisuse("the user said nothing")
	}
	if len(c.Open()) > 0 {
		c.queued = append(c.queued, text)
		return nil
	}
	if n := len(c.entries); n > 0 && c.entries[n-1].words && c.entries[n-1].texts == nil {
		return c.Append(encodeContent(User, []any{map[string]string{"text": text}})) // loaded words that it joins
	}
	c.addText(User, text)
	return nil
}

// AddModel adds the model's answer as it came (Reply.Content). See Parse for the errors.
func (c *Contents) AddModel(raw json.RawMessage) error {
	p, err := Parse(raw)
	if err != nil {
		return err
	}
	return c.addParsed(raw, p)
}

// addRead is AddModel for an answer that was decoded.
func (c *Contents) addRead(raw json.RawMessage, in *content) error {
	if len(raw) > MaxContent {
		return errTooLong()
	}
	p, err := in.parsed()
	if err != nil {
		return err
	}
	return c.addParsed(raw, p)
}

func (c *Contents) addParsed(raw json.RawMessage, p *Parsed) error {
	if n := len(c.entries); n == 0 || c.entries[n-1].role == Answer {
		return errMisuse("the model answers without a question")
	}
	c.entries = append(c.entries, entry{raw: slices.Clone(raw), role: Answer, calls: p.Calls})
	return nil
}

// Open returns the calls of the last content, which wait for their responses, or nil.
func (c *Contents) Open() []Call {
	if len(c.entries) == 0 {
		return nil
	}
	return slices.Clone(c.entries[len(c.entries)-1].calls)
}

// AddResponses answers all open calls at once: one response for each, in their order, with their names and ids. The
// user's words that were added in the meantime follow.
func (c *Contents) AddResponses(rs []Response) error {
	if len(rs) == 0 {
		return errMisuse("no responses were given")
	}
	if err := c.fits(rs); err != nil {
		return err
	}
	parts := make([]any, len(rs))
	for i, r := range rs {
		p, err := r.part()
		if err != nil {
			return err
		}
		parts[i] = p
	}
	c.entries = append(c.entries, entry{raw: encodeContent(User, parts), role: User})
	for _, text := range c.queued {
		c.addText(User, text)
	}
	c.queued = nil
	return nil
}

// fits reports whether the responses are those that the open calls wait for.
func (c *Contents) fits(rs []Response) error {
	open := c.Open()
	if len(open) != len(rs) {
		return errMisuse("%d calls are open, and %d responses were given", len(open), len(rs))
	}
	for i := range rs {
		if rs[i].ID != open[i].ID || rs[i].Name != open[i].Name {
			return errMisuse("response %d is not that of the call in its place", i)
		}
	}
	return nil
}

// JSON returns the contents, verbatim and oldest first, for Request.Contents, without the words that wait for
// responses.
func (c *Contents) JSON() []json.RawMessage {
	out := make([]json.RawMessage, len(c.entries))
	for i, e := range c.entries {
		out[i] = e.raw
	}
	return out
}

// Size returns the sum of the contents' lengths in bytes.
func (c *Contents) Size() int {
	n := 0
	for _, e := range c.entries {
		n += len(e.raw)
	}
	return n
}

// Bound removes the oldest turns until Size is at most maxBytes. A turn begins with the user's words. The last one is
// never removed, since its calls, responses and signatures belong together: if it alone is larger, the error is of
// class Model and code answer_too_large.
func (c *Contents) Bound(maxBytes int) error {
	kept, size := *c, c.Size()
	for size > max(0, maxBytes) {
		next := 1 + slices.IndexFunc(kept.entries[1:], func(e entry) bool { return e.words })
		if next == 0 {
			return fault.New(fault.Model, CodeTooLarge,
				"The conversation has become too long for the model. Please start a new one.")
		}
		for _, e := range kept.entries[:next] {
			size -= len(e.raw)
		}
		kept.entries = kept.entries[next:]
	}
	c.entries = slices.Clone(kept.entries)
	return nil
}

// addText adds a text made by this package, to the last content if that holds such texts of the same role.
func (c *Contents) addText(role Role, text string) {
	e := entry{role: role, words: role == User}
	if n := len(c.entries); n > 0 && c.entries[n-1].role == role && c.entries[n-1].texts != nil {
		e.texts = slices.Clone(c.entries[n-1].texts)
		c.entries = c.entries[:n-1]
	}
	e.texts = append(e.texts, text)
	parts := make([]any, len(e.texts))
	for i, t := range e.texts {
		parts[i] = map[string]string{"text": t}
	}
	e.raw = encodeContent(role, parts)
	c.entries = append(c.entries, e)
}

func encodeContent(role Role, parts []any) json.RawMessage {
	return encode(struct {
		Role  Role  `json:"role"`
		Parts []any `json:"parts"`
	}{role, parts})
}

// encode is json.Marshal without escapes for HTML, for values that cannot fail.
func encode(v any) json.RawMessage {
	b, err := strictjson.Marshal(v)
	if err != nil {
		panic("model: " + err.Error())
	}
	return b
}

// errMisuse returns the error for a caller that broke the order of a conversation: a bug of the caller, not of the
// model.
func errMisuse(format string, args ...any) error {
	cause := fault.New(fault.Tool, fault.CodeInternal, format, args...)
	return fault.New(fault.Tool, fault.CodeInternal, "The conversation could not be continued.").Because(cause)
}
