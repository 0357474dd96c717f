package clip

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"sort"
)

// limits say what is kept of a JSON value.
type limits struct {
	text    int // bytes of each text
	items   int // of each list
	members int // of each object
}

// The limits below which a value is shortened in another way: texts to shortText bytes, then lists and objects.
const (
	shortText   = 256
	tinyText    = 64
	maxItems    = 1 << 14
	leastFields = 32
)

// JSON returns a JSON value, or if it has more than n bytes, the same value in at most n bytes: its longest texts are
// cut as [Middle] cuts, and only if that is not enough the lists and objects are. So numbers, short texts and the
// names of all fields outlast the cut of a long text beside them. Objects that are cut have their members in the order
// of their names. Bytes that are not JSON are taken as a text.
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

// encoded returns a value that was decoded from JSON in JSON, without escapes for HTML.
func encoded(v any) json.RawMessage {
	var b bytes.Buffer
	out := json.NewEncoder(&b)
	out.SetEscapeHTML(false)
	if err := out.Encode(v); err != nil { // what was decoded can be encoded
		panic("clip: " + err.Error())
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// shorten returns a value within the limits.
func (l limits) shorten(v any) any {
	switch v := v.(type) {
	case string:
		if len(v) <= l.text+tinyText { // its mark would be as long as what it stands for
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

// list keeps the first and the last items.
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

// object keeps the first members by their names.
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
