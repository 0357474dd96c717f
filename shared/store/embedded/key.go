package embedded

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
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
		return fmt.Sprintf("%c%016x", tagNumber, uint64(v)^1<<63), nil
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

// encodeFields returns the fields in the order of their names, so that the same fields are the same text. It is called
// for each document that is written, and does without the reflection of json.Marshal.
func encodeFields(fields map[string]any) (string, error) {
	text := append(make([]byte, 0, 256), '{')
	for i, name := range slices.Sorted(maps.Keys(fields)) {
		k, err := key(fields[name])
		if err != nil {
			return "", err
		}
		if i > 0 {
			text = append(text, ',')
		}
		for _, part := range []string{name, k} {
			if text, err = jsontext.AppendQuote(text, part); err != nil {
				return "", err
			}
			text = append(text, ':')
		}
		text = text[:len(text)-1]
	}
	return string(append(text, '}')), nil
}

func decodeFields(text string) (map[string]any, error) {
	var keys map[string]string
	if err := json.Unmarshal([]byte(text), &keys); err != nil {
		return nil, fmt.Errorf("embedded store: fields in the file: %w", err)
	}
	fields := make(map[string]any, len(keys))
	for name, k := range keys {
		v, err := value(k)
		if err != nil {
			return nil, err
		}
		fields[name] = v
	}
	return fields, nil
}
