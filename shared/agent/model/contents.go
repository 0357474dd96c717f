package model

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/countersign-run/countersign/shared/base/fault"
)

// Role is the speaker of a Message.
type Role string

// The roles, in Gemini's words.
const (
	User   Role = "user"
	Answer Role = "model"
)

// A Message is one line of an earlier conversation, in the form that people read.
type Message struct {
	Role Role
	Text string
}

// Limits of the history in NewContents, which keeps the newest messages within both.
const (
	MaxHistory      = 100       // messages
	MaxHistoryBytes = 256 << 10 // bytes of text
)

// Contents is a conversation in the form that Gemini requires. Only this type builds that form. The model's turns are
// kept as the bytes that it sent. Contents guarantees that
//   - the first content is the user's, and no content and no part is empty;
//   - a model content with N calls is followed by one content with N responses, in order, with the same names and IDs;
//   - text that the user adds while calls are open waits until the calls are answered;
//   - only whole, finished turns are removed.
//
// A method that is used wrongly returns an error and leaves the contents unchanged. Contents is not safe for concurrent
// use.
type Contents struct {
	entries []entry
	queued  []string
}

// entry is one content.
type entry struct {
	raw   json.RawMessage
	role  Role
	calls []Call   // only in a model content
	words bool     // the user's text; a turn begins here
	texts []string // texts from this package, which can be joined with later ones
}

// NewContents returns the contents of earlier messages, oldest first, within MaxHistory and MaxHistoryBytes. Messages
// without text and answers at the beginning are left out. Consecutive messages of one role become one content.
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

// Load returns contents from an earlier [Contents.JSON], byte for byte. If the conversation breaks the rules above, the
// error is of class Model, because the service would refuse it.
func Load(raw []json.RawMessage) (*Contents, error) {
	c := &Contents{}
	if err := c.Append(raw...); err != nil {
		return nil, err
	}
	return c, nil
}

// load adds a content of the user's side: text, or the responses to the open calls.
func (c *Contents) load(raw json.RawMessage, in *content) error {
	if in.Role != string(User) {
		return errMisuse("a content has the role %q", in.Role)
	}
	var given []Response
	for _, p := range in.parts {
		if p.FunctionCall != nil {
			return errMisuse("a content of the user calls a function")
		}
		if r := p.FunctionResponse; r != nil {
			given = append(given, Response{ID: r.ID, Name: r.Name})
		}
	}
	if len(given) > 0 && len(given) != len(in.Parts) {
		return errMisuse("a content mixes text and responses")
	}
	if err := c.fits(given); err != nil {
		return err
	}
	if last := len(c.entries) - 1; in.isPrompt() && last >= 0 && c.entries[last].words {
		before, err := decode(c.entries[last].raw)
		if err != nil {
			return err
		}
		if before.isPrompt() { // roles must alternate, so consecutive prompts become one content
			c.entries[last] = joined(before.Parts, in.Parts)
			return nil
		}
	}
	c.entries = append(c.entries, entry{raw: slices.Clone(raw), role: User, words: len(given) == 0})
	return nil
}

// joined returns one content of the user's text with the parts of both.
func joined(a, b []json.RawMessage) entry {
	parts := make([]any, 0, len(a)+len(b))
	for _, p := range slices.Concat(a, b) {
		parts = append(parts, p)
	}
	return entry{raw: encodeContent(User, parts), role: User, words: true}
}

// Append adds contents from another [Contents.JSON] and keeps their bytes. Text that follows text becomes one content.
// Append is [Load] for a conversation that has begun.
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

// mark returns a function that removes everything that is appended after the call, including text that was joined with
// the last entry.
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

// AppendWords is [Contents.Append] for contents that another model or service answered. Their signatures are not valid
// here, so calls and responses become text. The user's text and the model's visible text stay as they are. record
// returns the text for a call and its response; both are JSON.
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
	text := p.Text
	if n := len(Files(raw)); n > 0 { // a signature of the other model may cover the bytes
		note := fmt.Sprintf("\n[This answer also had files: %d. They are not shown here.]", n)
		text = strings.TrimPrefix(text+note, "\n")
	}
	if text != "" {
		c.addText(Answer, text)
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

// AddUser adds texts of the user's side, each as a part. While calls are open, they wait for the responses.
func (c *Contents) AddUser(texts ...string) error {
	if slices.Contains(texts, "") {
		return errMisuse("the user's text is empty")
	}
	if len(texts) == 0 {
		return nil
	}
	if len(c.Open()) > 0 {
		c.queued = append(c.queued, texts...)
		return nil
	}
	if n := len(c.entries); n > 0 && c.entries[n-1].words && c.entries[n-1].texts == nil {
		return c.Append(encodeTexts(User, texts)) // joins text that was loaded
	}
	c.addText(User, texts...)
	return nil
}

// AddNote adds a text of the server behind the responses to the model's calls. It does not begin a turn, so
// [Contents.Bound] keeps the calls before it.
func (c *Contents) AddNote(text string) error {
	n := len(c.entries)
	if err := c.AddUser(text); err != nil {
		return err
	}
	if n > 0 && len(c.entries) > n && c.entries[n-1].role == User {
		c.entries[n].words = false
	}
	return nil
}

// AddModel adds the model's answer unchanged (Reply.Content). See Parse for the errors.
func (c *Contents) AddModel(raw json.RawMessage) error {
	p, err := Parse(raw)
	if err != nil {
		return err
	}
	return c.addParsed(raw, p)
}

// addRead adds an answer that was decoded already.
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
		return errMisuse("a model answer without a user's text before it")
	}
	c.entries = append(c.entries, entry{raw: slices.Clone(raw), role: Answer, calls: p.Calls})
	return nil
}

// Open returns the calls of the last content that wait for responses, or nil.
func (c *Contents) Open() []Call {
	if len(c.entries) == 0 {
		return nil
	}
	return slices.Clone(c.entries[len(c.entries)-1].calls)
}

// AddResponses answers all open calls at once. rs must have one response for each call, in order, with the call's name
// and ID. Text that the user added in the meantime follows.
func (c *Contents) AddResponses(rs []Response) error {
	if len(rs) == 0 {
		return errMisuse("no responses")
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
	if len(c.queued) > 0 {
		c.addText(User, c.queued...)
	}
	c.queued = nil
	return nil
}

// fits returns an error unless the responses match the open calls.
func (c *Contents) fits(rs []Response) error {
	open := c.Open()
	if len(open) != len(rs) {
		return errMisuse("%d open calls, but %d responses", len(open), len(rs))
	}
	for i := range rs {
		if rs[i].ID != open[i].ID || rs[i].Name != open[i].Name {
			return errMisuse("response %d does not match its call", i)
		}
	}
	return nil
}

// JSON returns the contents for Request.Contents, verbatim and oldest first. Text that waits for responses is not
// included.
func (c *Contents) JSON() []json.RawMessage {
	out := make([]json.RawMessage, len(c.entries))
	for i, e := range c.entries {
		out[i] = e.raw
	}
	return out
}

// Size returns the total length of the contents in bytes.
func (c *Contents) Size() int {
	n := 0
	for _, e := range c.entries {
		n += len(e.raw)
	}
	return n
}

// Bound removes the oldest turns until Size is at most maxBytes. A turn begins with the user's text. The last turn is
// never removed, because its calls, responses and signatures belong together. If it alone is too large, the error is of
// class Model with the code answer_too_large.
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

// addText adds texts from this package. If the last content holds such texts of the same role, the texts join them.
func (c *Contents) addText(role Role, texts ...string) {
	if n := len(c.entries); n > 0 && c.entries[n-1].role == role && c.entries[n-1].texts != nil {
		texts = slices.Concat(c.entries[n-1].texts, texts)
		c.entries = c.entries[:n-1]
	}
	c.entries = append(c.entries, entry{raw: encodeTexts(role, texts), role: role, words: role == User, texts: texts})
}

// errMisuse returns the error for a caller that broke the order of a conversation. It reports a bug of the caller, not
// of the model.
func errMisuse(format string, args ...any) error {
	cause := fault.New(fault.Tool, fault.CodeInternal, format, args...)
	return fault.New(fault.Tool, fault.CodeInternal, "The conversation could not be continued.").Because(cause)
}
