// Package strictjson decodes JSON from untrusted sources: request bodies, push messages, arguments from a model. It
// refuses input that encoding/json accepts but that can mean different things to different readers: unknown, duplicate
// and case-variant names, data after the value, invalid UTF-8, lone surrogates, a byte order mark, null in place of an
// object, and unlimited nesting (reliability §0.10).
package strictjson

import (
	"bytes"
	stdjson "encoding/json"
	"errors"
	"io"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	jsonv1 "github.com/go-json-experiment/json/v1"

	"github.com/countersign-run/countersign/shared/base/clip"
	"github.com/countersign-run/countersign/shared/base/fault"
)

// MaxDepth is the maximum nesting of objects and arrays (contract §1).
const MaxDepth = 64

// Decode decodes one JSON object into a pointer to a struct. It returns ValidationErrors that name the field.
func Decode(data []byte, into any) error { return decode(data, into, json.RejectUnknownMembers(true)) }

// DecodeKnown is like [Decode] for requests of third-party clients: it ignores unknown names.
func DecodeKnown(data []byte, into any) error { return decode(data, into) }

func decode(data []byte, into any, options ...json.Options) error {
	if err := Check(data); err != nil {
		return err
	}
	// the form in which encoding/json writes a time.Duration
	options = append(options, jsonv1.FormatDurationAsNano(true), json.WithUnmarshalers(numbers))
	err := json.Unmarshal(data, into, options...)
	var sem *json.SemanticError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &sem) && errors.Is(err, json.ErrUnknownName):
		return fault.Invalid(field(sem.JSONPointer), "unknown field")
	case errors.As(err, &sem):
		return fault.Invalid(field(sem.JSONPointer), "%s", neededFor(sem.GoType))
	}
	return fault.Invalid("", "the JSON could not be read")
}

// numbers decodes a number into encoding/json's Number, which keeps its digits as written.
var numbers = json.UnmarshalFromFunc(func(dec *jsontext.Decoder, n *stdjson.Number) error {
	switch dec.PeekKind() {
	case '0':
		raw, err := dec.ReadValue()
		*n = stdjson.Number(raw)
		return err
	case 'n':
		*n = ""
		return dec.SkipValue()
	}
	return errors.New("not a number")
})

// Check returns nil if data is exactly one JSON object within the limits of this package. Otherwise it returns a
// ValidationError. Options relax the check, for example so that it accepts duplicate keys.
func Check(data []byte, options ...jsontext.Options) error {
	if len(bytes.TrimSpace(data)) == 0 {
		return fault.Invalid("", "a JSON object is required, but nothing was sent")
	}
	dec := jsontext.NewDecoder(bytes.NewReader(data), options...)
	if dec.PeekKind() != '{' {
		return fault.Invalid("", "must be a JSON object")
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
	return fault.Invalid(field(dec.StackPointer()), "not valid JSON in UTF-8 (near byte %d)", dec.InputOffset())
}

// field returns a JSON pointer without its first slash, cut to 80 bytes.
func field(p jsontext.Pointer) string {
	s := string(p)
	if len(s) > 0 {
		s = s[1:]
	}
	return clip.Text(s, 80)
}
