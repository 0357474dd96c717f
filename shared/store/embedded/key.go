package embedded

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/countersign-run/countersign/shared/store"
)

// A field's value is stored as a string whose byte order is Firestore's order of values: a letter for the type
// (boolean, number, time, string, in Firestore's order of types), then the value, at a fixed width except for strings.
// The letter after a tag sorts after all values of that type and is itself no tag; beyond sorts after all values.
const (
	tagBool   = 'b'
	tagNumber = 'n'
	tagTime   = 't'
	tagWords  = 'w'
	beyond    = "x"

	timeLayout = "2006-01-02T15:04:05.000000Z"
)

func key(v any) (string, error) {
	v, err := store.Canonical(v)
	if err != nil {
		return "", err
	}
	switch v := v.(type) {
	case bool:
		return string(tagBool) + strconv.FormatBool(v), nil // "false" < "true"
	case int64:
		// The sign bit is flipped so that negative numbers come first.
		n := binary.BigEndian.AppendUint64(nil, uint64(v)^1<<63)
		return string(tagNumber) + hex.EncodeToString(n), nil
	case time.Time:
		return string(tagTime) + v.Format(timeLayout), nil
	default:
		return string(tagWords) + v.(string), nil
	}
}

func value(key string) (any, error) {
	if key == "" {
		return nil, fmt.Errorf("embedded store: an empty field in the file")
	}
	switch rest := key[1:]; key[0] {
	case tagBool:
		return strconv.ParseBool(rest)
	case tagNumber:
		n, err := strconv.ParseUint(rest, 16, 64)
		return int64(n ^ 1<<63), err
	case tagTime:
		return time.Parse(timeLayout, rest)
	case tagWords:
		return rest, nil
	}
	return nil, fmt.Errorf("embedded store: a field of unknown type %q in the file", key[0])
}

// A field is one field of a document: its name, and its value as a key.
type field struct{ name, key string }

// fieldsOf returns the fields, sorted by name.
func fieldsOf(values map[string]any) ([]field, error) {
	if len(values) == 0 {
		return nil, nil
	}
	all := make([]field, 0, len(values))
	for name, v := range values {
		k, err := key(v)
		if err != nil {
			return nil, err
		}
		all = append(all, field{name, k})
	}
	slices.SortFunc(all, func(a, b field) int { return strings.Compare(a.name, b.name) })
	return all, nil
}

// encode returns the fields as a JSON object. Equal fields give equal text. It runs for each written document and
// avoids the reflection of json.Marshal.
func encode(fields []field) (string, error) {
	if len(fields) == 0 {
		return "{}", nil
	}
	text := append(make([]byte, 0, 256), '{')
	var err error
	for _, f := range fields {
		if text, err = jsontext.AppendQuote(text, f.name); err != nil {
			return "", err
		}
		if text, err = jsontext.AppendQuote(append(text, ':'), f.key); err != nil {
			return "", err
		}
		text = append(text, ',')
	}
	text[len(text)-1] = '}'
	return string(text), nil
}

// decode parses the output of encode. It runs for each document that is read and avoids the reflection of
// json.Unmarshal.
func decode(text string) (fields []field, err error) {
	if text == "{}" {
		return nil, nil
	}
	for rest := text; rest != "}"; {
		var f field
		if f.name, rest, err = quoted(rest, "{,"); err == nil {
			f.key, rest, err = quoted(rest, ":")
		}
		if err != nil {
			return nil, err
		}
		fields = append(fields, f)
	}
	return fields, nil
}

var errFields = errors.New("embedded store: the fields of a document in the file cannot be read")

// quoted reads a JSON string that follows one of the characters in after.
func quoted(text, after string) (s, rest string, err error) {
	if len(text) < 2 || !strings.Contains(after, text[:1]) || text[1] != '"' {
		return "", "", errFields
	}
	plain := true
	for i := 2; i < len(text); i++ {
		switch text[i] {
		case '\\':
			plain = false
			i++
		case '"':
			if s, rest = text[2:i], text[i+1:]; plain {
				return s, rest, nil
			}
			unquoted, err := jsontext.AppendUnquote(nil, text[1:i+1])
			return string(unquoted), rest, err
		}
	}
	return "", "", errFields
}

// values returns the fields with decoded values.
func values(text string) (map[string]any, error) {
	fields, err := decode(text)
	if err != nil {
		return nil, err
	}
	all := make(map[string]any, len(fields))
	for _, f := range fields {
		if all[f.name], err = value(f.key); err != nil {
			return nil, err
		}
	}
	return all, nil
}
