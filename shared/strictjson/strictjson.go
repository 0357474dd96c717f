// Package strictjson decodes JSON from untrusted sources: request bodies, push messages, a model's arguments. It
// refuses what encoding/json accepts and what has been used to smuggle a second meaning past a first reader
// (reliability §0.10): unknown, duplicate and case-variant names, a second value after the first, invalid UTF-8 and
// lone surrogates, a byte order mark, null in place of an object, and unlimited nesting.
package strictjson

import (
	"bytes"
	"errors"
	"io"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	jsonv1 "github.com/go-json-experiment/json/v1"

	"github.com/countersign-run/countersign/shared/clip"
	"github.com/countersign-run/countersign/shared/fault"
)

// MaxDepth is how deep objects and arrays may nest (contract §1).
const MaxDepth = 64

// Decode decodes one JSON object into into, a pointer to a struct. Its errors are ValidationErrors that name the field.
func Decode(data []byte, into any) error { return decode(data, into, json.RejectUnknownMembers(true)) }

// DecodeKnown is Decode for what clients of other makers send: names that are not known are passed over.
func DecodeKnown(data []byte, into any) error { return decode(data, into) }

func decode(data []byte, into any, options ...json.Options) error {
	if err := Check(data); err != nil {
		return err
	}
	options = append(options, jsonv1.FormatDurationAsNano(true)) // what encoding/json writes of a time.Duration
	err := json.Unmarshal(data, into, options...)
	var sem *json.SemanticError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &sem) && errors.Is(err, json.ErrUnknownName):
		return fault.Invalid(field(sem.JSONPointer), "this field is not known")
	case errors.As(err, &sem):
		return fault.Invalid(field(sem.JSONPointer), "%s", neededFor(sem.GoType))
	}
	return fault.Invalid("", "the JSON could not be read")
}

// Check returns nil if data is one JSON object within the limits of this package.
func Check(data []byte) error {
	if len(bytes.TrimSpace(data)) == 0 {
		return fault.Invalid("", "a JSON object is needed, and nothing was sent")
	}
	dec := jsontext.NewDecoder(bytes.NewReader(data))
	if dec.PeekKind() != '{' {
		return fault.Invalid("", "a JSON object is needed")
	}
	for first := true; first || dec.StackDepth() > 0; first = false {
		if _, err := dec.ReadToken(); err != nil {
			return syntax(dec, err)
		}
		if dec.StackDepth() > MaxDepth {
			return fault.Invalid("", "the JSON is nested deeper than %d levels", MaxDepth)
		}
	}
	if _, err := dec.ReadToken(); err != io.EOF {
		return fault.Invalid("", "unexpected data after the JSON object")
	}
	return nil
}

func syntax(dec *jsontext.Decoder, err error) error {
	if errors.Is(err, jsontext.ErrDuplicateName) {
		return fault.Invalid(field(dec.StackPointer()), "duplicate key")
	}
	return fault.Invalid(field(dec.StackPointer()), "this is not valid JSON in UTF-8 (near byte %d)", dec.InputOffset())
}

// field returns a JSON pointer without its first slash, cut to a readable length.
func field(p jsontext.Pointer) string {
	s := string(p)
	if len(s) > 0 {
		s = s[1:]
	}
	return clip.Text(s, 80)
}
