package agui

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/countersign-run/countersign/shared/api/stream"
	"github.com/countersign-run/countersign/shared/base/fault"
)

// part is a part of a message: text, or a file.
type part struct {
	Type string `json:"type"`
	Text string `json:"text"`

	// of image, audio, video and document
	Source struct {
		Type  string `json:"type"`
		Value string `json:"value"`
	} `json:"source"`
	Metadata json.RawMessage `json:"metadata"`

	// of binary, which clients older than 1.0 send
	Data     *string `json:"data"`
	URL      string  `json:"url"`
	Filename string  `json:"filename"`
}

// content reads a text, or the texts of parts. file reads every other part, whose place is at.
func content(field string, of json.RawMessage, file func(at string, p part) error) (string, error) {
	var text string
	if json.Unmarshal(of, &text) == nil {
		return text, nil
	}
	var parts []part
	if json.Unmarshal(of, &parts) != nil {
		return "", fault.Invalid(field, "a text or a list of text parts is required")
	}
	var texts []string
	for i, p := range parts {
		if p.Type == "text" {
			texts = append(texts, p.Text)
		} else if err := file(fmt.Sprintf("%s/%d", field, i), p); err != nil {
			return "", err
		}
	}
	return strings.Join(texts, "\n\n"), nil
}

// file returns the part's file. The bytes must be in the request.
func (p part) file(field string) (stream.File, error) {
	switch p.Type {
	case "image", "audio", "video", "document":
		return p.sourced(field + "/source")
	case "binary":
		switch {
		case p.Data != nil:
			return inline(field+"/data", p.Filename, *p.Data)
		case p.URL != "":
			return stream.FileOfURL(field+"/url", p.Filename, p.URL)
		}
		return stream.File{}, fault.Invalid(field+"/data", "the file's bytes are required, in base64")
	}
	return stream.File{}, fault.Invalid(field, "only text and files are accepted")
}

func (p part) sourced(field string) (stream.File, error) {
	var about struct {
		Filename string `json:"filename"`
	}
	_ = json.Unmarshal(p.Metadata, &about) // a client may put anything there
	switch p.Source.Type {
	case "data":
		return inline(field+"/value", about.Filename, p.Source.Value)
	case "url":
		return stream.FileOfURL(field+"/value", about.Filename, p.Source.Value)
	}
	return stream.File{}, fault.Invalid(field+"/type", "data, or url with a data: URL, is required")
}

// inline returns a file in base64. Some clients send a data: URL there.
func inline(field, name, data string) (stream.File, error) {
	if strings.HasPrefix(data, "data:") {
		return stream.FileOfURL(field, name, data)
	}
	return stream.FileOfBase64(field, name, data)
}
