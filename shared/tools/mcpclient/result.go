package mcpclient

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/countersign-run/countersign/shared/base/clip"
	"github.com/countersign-run/countersign/shared/base/strictjson"
)

// Limits for the parts of a result.
const (
	maxOthers = 20
	maxWord   = 80 // bytes of a type, a name or a URI
)

// result is an answer in the form that the model sees.
type result struct {
	IsError    bool            `json:"isError,omitempty"` // the server reports that the tool failed
	Text       string          `json:"text,omitempty"`
	Structured json.RawMessage `json:"structured,omitempty"`
	Others     []other         `json:"others,omitempty"` // content that is not text
	Truncated  bool            `json:"truncated,omitempty"`

	attach func(data []byte) string
}

// other describes content that is not text: an image, a sound or a file. The model gets it if File names it.
type other struct {
	Type     string `json:"type"`
	MIMEType string `json:"mimeType,omitempty"`
	Name     string `json:"name,omitempty"`
	URI      string `json:"uri,omitempty"`
	Bytes    int64  `json:"bytes,omitempty"`
	File     string `json:"file,omitempty"` // name of the file that the model gets with the result
}

// told returns the answer as bounded JSON. attach gets the bytes of content that is not text, and returns the name of
// the file that the run keeps, or "" ([tool.Call.Attach]).
func told(answer *mcp.CallToolResult, attach func([]byte) string) (json.RawMessage, error) {
	r := result{IsError: answer.IsError, attach: attach}
	var texts []string
	for _, one := range answer.Content {
		switch one := one.(type) {
		case *mcp.TextContent:
			texts = append(texts, one.Text)
		case *mcp.EmbeddedResource:
			if one.Resource != nil && one.Resource.Text != "" {
				texts = append(texts, one.Resource.Text)
				continue
			}
			r.add(one)
		default:
			r.add(one)
		}
	}
	r.Text = strings.Join(texts, "\n")
	if err := r.structure(answer.StructuredContent); err != nil {
		return nil, err
	}
	return r.bounded()
}

// add adds a description of content that is not text.
func (r *result) add(one mcp.Content) {
	var o other
	var data []byte
	switch one := one.(type) {
	case *mcp.ImageContent:
		o, data = other{Type: "image", MIMEType: one.MIMEType, Bytes: int64(len(one.Data))}, one.Data
	case *mcp.AudioContent:
		o, data = other{Type: "audio", MIMEType: one.MIMEType, Bytes: int64(len(one.Data))}, one.Data
	case *mcp.ResourceLink:
		o = other{Type: "resource_link", MIMEType: one.MIMEType, Name: one.Name, URI: one.URI}
		if one.Size != nil {
			o.Bytes = *one.Size
		}
	case *mcp.EmbeddedResource:
		o = other{Type: "resource"}
		if in := one.Resource; in != nil {
			o.MIMEType, o.URI, o.Bytes, data = in.MIMEType, in.URI, int64(len(in.Blob)), in.Blob
		}
	default:
		o = other{Type: strings.TrimPrefix(fmt.Sprintf("%T", one), "*mcp.")}
	}
	if len(r.Others) == maxOthers {
		r.Truncated = true
		return
	}
	for _, word := range []*string{&o.MIMEType, &o.Name, &o.URI} {
		*word = clip.Text(*word, maxWord)
	}
	if len(data) > 0 {
		o.File = r.attach(data)
	}
	r.Others = append(r.Others, o)
}

// structure adds the structured content. If a text repeats it, the text is dropped. Content that nests too deep for
// this server's JSON is added as text.
func (r *result) structure(said any) error {
	if said == nil {
		return nil
	}
	raw, err := asWritten(said)
	if err != nil {
		return err
	}
	v := decoded(raw)
	if text := []byte(r.Text); readable(text) && reflect.DeepEqual(decoded(text), v) {
		r.Text = ""
	}
	if only, ok := v.(map[string]any); ok && len(only) == 1 { // the way in which some servers repeat a text
		for _, text := range only {
			if text == r.Text {
				return nil
			}
		}
	}
	if !readable(raw) {
		r.Text = strings.Trim(string(raw)+"\n"+r.Text, "\n")
		return nil
	}
	r.Structured = clip.JSON(raw, maxResult/2)
	r.Truncated = r.Truncated || len(r.Structured) < len(raw)
	return nil
}

// asWritten returns structured content with the server's own bytes, without white space (see exact).
func asWritten(said any) (json.RawMessage, error) {
	text, ok := said.(string)
	if !ok { // a message in a form that is not rewritten
		return strictjson.Marshal(said)
	}
	var b bytes.Buffer
	err := json.Compact(&b, []byte(text))
	return b.Bytes(), err
}

// decoded decodes a JSON value and keeps its numbers as text. It returns nil for invalid JSON.
func decoded(raw []byte) (v any) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	if dec.Decode(&v) != nil {
		return nil
	}
	return v
}

// readable reports whether later readers of the result accept the JSON value.
func readable(raw []byte) bool {
	return strictjson.Check(slices.Concat([]byte(`{"structured":`), raw, []byte("}"))) == nil
}

// bounded returns the result as JSON. It cuts the middle of the text until the result has at most maxResult bytes.
func (r *result) bounded() (json.RawMessage, error) {
	r.Text = strings.ToValidUTF8(r.Text, "\uFFFD")
	for keep := maxResult; ; keep /= 2 {
		if text, cut := clip.Middle(r.Text, keep); cut {
			r.Text, r.Truncated = text, true
		}
		b, err := strictjson.Marshal(r)
		if err != nil || len(b) <= maxResult || keep == 0 {
			return b, err
		}
	}
}
