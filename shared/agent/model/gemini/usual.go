package gemini

import (
	"bytes"
	"sync"

	"github.com/go-json-experiment/json/jsontext"
)

// shape is a form of JSON values: their kind, and the shapes of the members or elements that they may have. Without
// shapes, an object or a list may have any.
type shape struct {
	kind    jsontext.Kind
	members map[string]*shape // by the quoted name
	element *shape
}

// fields are the shapes of an object's members, by name.
type fields map[string]*shape

func objectOf(of fields) *shape {
	s := &shape{kind: '{', members: map[string]*shape{}}
	for name, member := range of {
		s.members[`"`+name+`"`] = member
	}
	return s
}

func listOf(element *shape) *shape { return &shape{kind: '[', element: element} }

var (
	aText   = &shape{kind: '"'}
	aNumber = &shape{kind: '0'}
	aBool   = &shape{kind: 't'} // or false
)

// usualAnswer is made at the first answer: most functions start without one.
var usualAnswer = sync.OnceValue(func() *shape {
	part := objectOf(fields{
		"text": aText, "thought": aBool, "thoughtSignature": aText,
		"functionCall": objectOf(fields{"id": aText, "name": aText, "args": {kind: '{'}}),
	})
	candidate := objectOf(fields{
		"content": objectOf(fields{"role": aText, "parts": listOf(part)}),
		"index":   aNumber, "finishReason": aText, "finishMessage": aText,
	})
	details := listOf(objectOf(fields{"modality": aText, "tokenCount": aNumber}))
	counts := objectOf(fields{
		"promptTokenCount": aNumber, "candidatesTokenCount": aNumber, "totalTokenCount": aNumber,
		"thoughtsTokenCount": aNumber, "cachedContentTokenCount": aNumber, "toolUsePromptTokenCount": aNumber,
		"promptTokensDetails": details, "candidatesTokensDetails": details, "cacheTokensDetails": details,
		"trafficType": aText,
	})
	return objectOf(fields{
		"candidates": listOf(candidate), "usageMetadata": counts, "modelVersion": aText, "responseId": aText,
		"createTime": aText,
	})
})

// usual reports whether a response has only the members that Gemini itself usually sends, in its own form. It allocates
// almost nothing, so most answers are read only once.
func usual(data []byte) bool {
	return usualAnswer().fits(jsontext.NewDecoder(bytes.NewBuffer(data), jsontext.AllowDuplicateNames(true)))
}

// fits reads the next value, and reports whether it has the shape.
func (s *shape) fits(in *jsontext.Decoder) bool {
	if kind := in.PeekKind(); kind != s.kind && (kind != 'f' || s.kind != 't') {
		return false
	}
	if s.members == nil && s.element == nil {
		return in.SkipValue() == nil
	}
	if _, err := in.ReadToken(); err != nil {
		return false
	}
	for in.PeekKind() != '}' && in.PeekKind() != ']' {
		of := s.element
		if s.members != nil {
			name, err := in.ReadValue()
			if err != nil {
				return false
			}
			of = s.members[string(name)]
		}
		if of == nil || !of.fits(in) {
			return false
		}
	}
	_, err := in.ReadToken()
	return err == nil
}
