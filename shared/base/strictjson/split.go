package strictjson

import (
	"bytes"
	"encoding/json"
	"path"
	"slices"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// tolerant accepts input that Check refuses but that other JSON writers produce: lone surrogates and invalid UTF-8.
var tolerant = jsontext.AllowInvalidUTF8(true)

// Split returns a JSON object with the named array emptied, and the elements of that array. It finds only where each
// element ends, so an element may contain anything that Check refuses. An object without such an array is returned
// unchanged. The error is a ValidationError for input that is not JSON.
func Split(object []byte, member string) (rest []byte, elements []json.RawMessage, err error) {
	dec := jsontext.NewDecoder(bytes.NewReader(object), tolerant, jsontext.AllowDuplicateNames(true))
	if dec.PeekKind() != '{' {
		return object, nil, nil
	}
	for {
		tok, err := dec.ReadToken() // the opening brace, a name, or the closing brace
		if err != nil {
			return nil, nil, syntax(dec, err)
		}
		switch {
		case tok.Kind() == '}':
			return object, nil, nil
		case tok.Kind() == '{':
			continue
		case tok.String() != member || dec.PeekKind() != '[':
			err = dec.SkipValue()
		default:
			return split(object, dec)
		}
		if err != nil {
			return nil, nil, syntax(dec, err)
		}
	}
}

// split reads the array that dec points to.
func split(object []byte, dec *jsontext.Decoder) (rest []byte, elements []json.RawMessage, err error) {
	if _, err := dec.ReadToken(); err != nil {
		return nil, nil, syntax(dec, err)
	}
	from := dec.InputOffset()
	for dec.PeekKind() != ']' {
		element, err := dec.ReadValue()
		if err != nil {
			return nil, nil, syntax(dec, err)
		}
		elements = append(elements, bytes.Clone(element))
	}
	if _, err := dec.ReadToken(); err != nil {
		return nil, nil, syntax(dec, err)
	}
	to := dec.InputOffset() - int64(len("]"))
	return append(object[:from:from], object[to:]...), elements, nil
}

// Mend returns a JSON value with U+FFFD in place of invalid UTF-8 bytes and lone surrogates. Input that is not JSON is
// returned unchanged.
func Mend(value json.RawMessage) json.RawMessage {
	out := jsontext.Value(bytes.Clone(value))
	if err := out.Format(tolerant, jsontext.AllowDuplicateNames(true)); err != nil {
		return value
	}
	return json.RawMessage(out)
}

// MendAt is like [Mend] for the values at some places of a JSON object. Each place is a JSON pointer, in which *
// matches one name or index. Only lone surrogates are replaced; a value with invalid UTF-8 and all other bytes stay as
// they are.
func MendAt(object []byte, places ...string) []byte {
	if !bytes.Contains(object, []byte(`\ud`)) && !bytes.Contains(object, []byte(`\uD`)) {
		return object
	}
	dec := jsontext.NewDecoder(bytes.NewReader(object), tolerant, jsontext.AllowDuplicateNames(true))
	var out []byte
	copied := 0
	for {
		if _, err := dec.ReadToken(); err != nil { // the end, or not JSON
			return append(out, object[copied:]...)
		}
		within, read := dec.StackIndex(dec.StackDepth())
		isName := within == '{' && read%2 == 1
		at := string(dec.StackPointer())
		if !isName || !slices.ContainsFunc(places, func(p string) bool { ok, _ := path.Match(p, at); return ok }) {
			continue
		}
		value, err := dec.ReadValue()
		if err != nil || !utf8.Valid(value) {
			continue
		}
		end := int(dec.InputOffset())
		out = append(append(out, object[copied:end-len(value)]...), Mend(json.RawMessage(value))...)
		copied = end
	}
}

// Pick returns a JSON object with only the named members, each as often as the object has it. The values of all other
// members may be anything that Check refuses. Input that is not a JSON object is returned unchanged.
func Pick(object json.RawMessage, names ...string) json.RawMessage {
	dec := jsontext.NewDecoder(bytes.NewReader(object), tolerant, jsontext.AllowDuplicateNames(true))
	if tok, err := dec.ReadToken(); err != nil || tok.Kind() != '{' {
		return object
	}
	picked := []byte{'{'}
	for dec.PeekKind() != '}' {
		name, err := dec.ReadValue()
		if err != nil {
			return object
		}
		name = bytes.Clone(name)
		value, err := dec.ReadValue()
		if err != nil {
			return object
		}
		plain, err := jsontext.AppendUnquote(nil, name)
		if err != nil || !slices.Contains(names, string(plain)) {
			continue
		}
		if len(picked) > 1 {
			picked = append(picked, ',')
		}
		picked = append(append(append(picked, name...), ':'), value...)
	}
	return append(picked, '}')
}
