package model

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/countersign-run/countersign/shared/base/strictjson"
	"github.com/countersign-run/countersign/shared/store/attachment"
)

// FileData is a file in a prompt, as Gemini's API names it. A stored file has the URI of an [attachment.Ref]. Its bytes
// are in no stored content; [WithFiles] adds them to a request.
type FileData struct {
	URI  string `json:"fileUri"`
	Type string `json:"mimeType"`
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

// filesIn decodes a content of the user that contains stored files. It returns nil for any other content.
func filesIn(raw json.RawMessage) *content {
	if !bytes.Contains(raw, []byte(attachment.Scheme)) {
		return nil
	}
	c, err := decode(raw)
	if err != nil || c.Role != string(User) {
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

// HasFile reports whether a content of the model has an image, a sound or another file.
func HasFile(raw json.RawMessage) bool {
	if !bytes.Contains(raw, []byte("inlineData")) && !bytes.Contains(raw, []byte("fileData")) {
		return false
	}
	c, err := decode(raw)
	return err == nil && slices.ContainsFunc(c.parts,
		func(p part) bool { return p.InlineData != nil || p.FileData != nil })
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

// InlineFile returns the parts of a file whose bytes are in the request: a line with its name, and the bytes.
func InlineFile(line string, f *attachment.File) []any {
	return append(TextPart(line), map[string]any{"inlineData": struct {
		Type string `json:"mimeType"`
		Data []byte `json:"data"`
	}{f.Type, f.Data}})
}

// TextPart returns a part with a text.
func TextPart(text string) []any { return []any{map[string]string{"text": text}} }

// WithFiles returns the contents with each stored file replaced by the parts that replace returns. All other contents
// keep their bytes.
func WithFiles(contents []json.RawMessage, replace func(attachment.Ref) ([]any, error)) ([]json.RawMessage, error) {
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
			made, err := replace(ref)
			if err != nil {
				return nil, err
			}
			parts = append(parts, made...)
		}
		content, err := strictjson.Marshal(struct {
			Role  Role  `json:"role"`
			Parts []any `json:"parts"`
		}{User, parts})
		if err != nil {
			return nil, err
		}
		out[i] = content
	}
	return out, nil
}
