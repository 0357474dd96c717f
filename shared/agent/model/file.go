package model

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/countersign-run/countersign/shared/store/attachment"
)

// FileData is a file in a prompt or in an answer, as Gemini's API names it. A stored file has the URI of an
// [attachment.Ref]. Its bytes are in no stored content; [WithFiles] adds them to a request.
type FileData struct {
	URI  string `json:"fileUri"`
	Type string `json:"mimeType"`
}

// AddReturned adds the files of results after the responses to the model's calls. They do not begin a turn, so
// [Contents.Bound] keeps the calls before them.
func (c *Contents) AddReturned(files ...FileData) error {
	n := len(c.entries)
	if err := c.AddFiles(files...); err != nil {
		return err
	}
	if len(c.entries) > n { // otherwise the files joined a text of the user
		c.entries[n].words = false
	}
	return nil
}

// AddFiles adds files that the user attached to the text that follows.
func (c *Contents) AddFiles(files ...FileData) error {
	if len(c.Open()) > 0 {
		return errMisuse("files are added while calls are open")
	}
	parts := make([]any, len(files))
	for i, f := range files {
		parts[i] = map[string]any{"fileData": f}
	}
	return c.Append(encodeContent(User, parts))
}

// stored returns the reference of a part that is a stored file.
func (p part) stored() (ref attachment.Ref, ok bool) {
	if p.FileData == nil {
		return ref, false
	}
	return attachment.ParseRef(p.FileData.URI)
}

// filesIn decodes a content that contains stored files. It returns nil for any other content.
func filesIn(raw json.RawMessage) *content {
	if !bytes.Contains(raw, []byte(attachment.Scheme)) {
		return nil
	}
	c, err := decode(raw)
	if err != nil {
		return nil
	}
	for _, p := range c.parts {
		if _, ok := p.stored(); ok {
			return c
		}
	}
	return nil
}

// Files returns the references of the stored files in the contents, in their order.
func Files(contents ...json.RawMessage) (refs []attachment.Ref) {
	for _, raw := range contents {
		c := filesIn(raw)
		if c == nil {
			continue
		}
		for _, p := range c.parts {
			if ref, ok := p.stored(); ok {
				refs = append(refs, ref)
			}
		}
	}
	return refs
}

// HasLostFile reports whether a content of the model has a file that is not stored: one of a type that Gemini does not
// read, or one at an address of the service.
func HasLostFile(raw json.RawMessage) bool {
	if !bytes.Contains(raw, []byte("inlineData")) && !bytes.Contains(raw, []byte("fileData")) {
		return false
	}
	c, err := decode(raw)
	return err == nil && slices.ContainsFunc(c.parts,
		func(p part) bool {
			_, kept := p.stored()
			return p.InlineData != nil || p.FileData != nil && !kept
		})
}

// FileTokens estimates the tokens of the stored files in the contents.
func FileTokens(contents ...json.RawMessage) (n int) {
	for _, raw := range contents {
		c := filesIn(raw)
		if c == nil {
			continue
		}
		for _, p := range c.parts {
			if ref, ok := p.stored(); ok {
				n += ref.Tokens(p.FileData.Type)
			}
		}
	}
	return n
}

// WithoutFiles returns the contents with the line in place of each stored file of the user.
func WithoutFiles(contents []json.RawMessage, line string) ([]json.RawMessage, error) {
	return WithFiles(contents, func(attachment.Ref) (string, *attachment.File, error) { return line, nil, nil })
}

// inline is a file whose bytes are in the request.
type inline struct {
	Type string `json:"mimeType"`
	Data []byte `json:"data"`
}

func textPart(text string) any { return map[string]string{"text": text} }

// WithFiles returns the contents with the bytes of their stored files. find returns a file, and a line about it that
// precedes a file of the user. For a file that is not sent it returns nil, and the line takes the place of the file. A
// file that the model made keeps its signature. All other contents keep their bytes.
func WithFiles(contents []json.RawMessage, find func(attachment.Ref) (line string, f *attachment.File, err error)) (
	[]json.RawMessage, error) {
	out := make([]json.RawMessage, len(contents))
	for i, raw := range contents {
		out[i] = raw
		c := filesIn(raw)
		if c == nil {
			continue
		}
		var parts []any
		for n, p := range c.parts {
			ref, ok := p.stored()
			if !ok {
				parts = append(parts, c.Parts[n])
				continue
			}
			line, f, err := find(ref)
			switch {
			case err != nil:
				return nil, err
			case f == nil:
				parts = append(parts, textPart(line))
			case c.Role == string(Answer):
				parts = append(parts, withData(c.Parts[n], "inlineData", inline{f.Type, f.Data}))
			default:
				parts = append(parts, textPart(line), map[string]any{"inlineData": inline{f.Type, f.Data}})
			}
		}
		out[i] = encodeContent(Role(c.Role), parts)
	}
	return out, nil
}
