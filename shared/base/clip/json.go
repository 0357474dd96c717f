package clip

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"sort"
)

// limits bounds the parts of a JSON value.
type limits struct {
	text    int // bytes of each text
	items   int // number of elements in each list
	members int // number of members in each object
}

// Limits that JSON tries in turn. It first cuts long texts to shortText bytes, and then shortens lists and objects.
const (
	shortText   = 256
	tinyText    = 64
	maxItems    = 1 << 14
	leastFields = 32
)

// JSON returns the value unchanged if it has at most n bytes. Otherwise it shortens the value to at most n bytes. It
// first cuts the longest texts, as [Middle] does, and cuts lists and objects only if that is not enough. Numbers, short
// texts and field names therefore survive next to a long text. A shortened object keeps the members that come first in
// name order. Input that is not JSON is treated as a text.
func JSON(value json.RawMessage, n int) json.RawMessage {
	if len(value) <= n {
		return value
	}
	v := decoded(value)
	for _, rung := range []func(i int) limits{
		func(i int) limits { return limits{max(n-i, shortText), maxItems, maxItems} },
		func(i int) limits { return limits{shortText, max(maxItems-i, 2), max(maxItems-i, leastFields)} },
		func(i int) limits { return limits{tinyText, max(maxItems-i, 1), max(maxItems-i, 1)} },
	} {
		most := max(n, maxItems)
		fits := func(i int) bool { return len(encoded(rung(i).shorten(v))) <= n }
		if i := sort.Search(most, fits); i < most {
			return encoded(rung(i).shorten(v))
		}
	}
	if short := encoded(fmt.Sprintf("[%d bytes of JSON left out]", len(value))); len(short) <= n {
		return short
	}
	return json.RawMessage("null")
}

func decoded(value json.RawMessage) (v any) {
	in := json.NewDecoder(bytes.NewReader(value))
	in.UseNumber()
	if err := in.Decode(&v); err != nil || in.More() {
		return string(bytes.ToValidUTF8(value, []byte("\uFFFD")))
	}
	return v
}

// encoded returns v as JSON, without HTML escaping. v must come from decoded.
func encoded(v any) json.RawMessage {
	var b bytes.Buffer
	out := json.NewEncoder(&b)
	out.SetEscapeHTML(false)
	if err := out.Encode(v); err != nil { // a decoded value can always be encoded
		panic("clip: " + err.Error())
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// shorten returns v cut to the limits.
func (l limits) shorten(v any) any {
	switch v := v.(type) {
	case string:
		if len(v) <= l.text+tinyText { // the mark would be as long as the text that it replaces
			return v
		}
		kept, _ := Middle(v, l.text)
		return kept
	case []any:
		return l.list(v)
	case map[string]any:
		return l.object(v)
	}
	return v
}

// list returns the first and the last elements of v, with a note about the number left out.
func (l limits) list(v []any) []any {
	head, tail := len(v), 0
	if len(v) > l.items {
		head, tail = (l.items+1)/2, l.items/2
	}
	out := make([]any, 0, head+tail+1)
	for _, item := range v[:head] {
		out = append(out, l.shorten(item))
	}
	if left := len(v) - head - tail; left > 0 {
		out = append(out, fmt.Sprintf("[… %d items left out …]", left))
	}
	for _, item := range v[len(v)-tail:] {
		out = append(out, l.shorten(item))
	}
	return out
}

// object returns the members of v that come first in name order, with a note about the number left out.
func (l limits) object(v map[string]any) map[string]any {
	names := make([]string, 0, len(v))
	for name := range v {
		names = append(names, name)
	}
	slices.Sort(names)
	out := make(map[string]any, min(len(v), l.members+1))
	for i, name := range names {
		if i == l.members {
			out["…"] = fmt.Sprintf("[%d members left out]", len(v)-i)
			break
		}
		out[name] = l.shorten(v[name])
	}
	return out
}
