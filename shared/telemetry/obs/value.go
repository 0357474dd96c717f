package obs

import (
	"encoding/json"
	"fmt"
	"log/slog"

	"github.com/countersign-run/countersign/shared/base/fault"
)

// maxNested bounds the depth of groups; deeper ones are left out.
const maxNested = 16

// clean redacts attributes by key and by form, also within groups and values.
func clean(attrs []slog.Attr, secret bool, depth int) []slog.Attr {
	out := make([]slog.Attr, 0, len(attrs))
	for _, a := range attrs {
		out = append(out, slog.Attr{Key: Redact(a.Key),
			Value: cleanValue(a.Value, secret || isSensitive(a.Key), depth)})
	}
	return out
}

func cleanValue(v slog.Value, secret bool, depth int) slog.Value {
	v = v.Resolve()
	switch v.Kind() {
	case slog.KindGroup:
		if depth == maxNested {
			return slog.StringValue("[nested too deep]")
		}
		return slog.GroupValue(clean(v.Group(), secret, depth+1)...)
	case slog.KindString:
		return slog.StringValue(cleanText(v.String(), secret))
	case slog.KindAny:
		return slog.AnyValue(cleanAny(v.Any(), secret))
	}
	return v // numbers, bools, times and durations
}

func cleanText(s string, secret bool) string {
	if secret && s != "" {
		return redacted
	}
	return Redact(s)
}

// cleanAny converts any other value to JSON's types, and redacts the result.
func cleanAny(v any, secret bool) (out any) {
	defer func() {
		if recover() != nil { // for example a method of a nil pointer: a log line must not fail a request
			out = fmt.Sprintf("[%T cannot be logged]", v)
		}
	}()
	switch v := v.(type) {
	case nil:
		return nil
	case slog.Level: // the handler's own
		return v
	case fault.Code: // kept, whatever its key is
		return Redact(string(v))
	case error:
		return cleanText(v.Error(), secret)
	case []byte:
		return fmt.Sprintf("[%d bytes]", len(v))
	case json.RawMessage:
		return fmt.Sprintf("[%d bytes]", len(v))
	case fmt.Stringer:
		return cleanText(v.String(), secret)
	}
	text, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprintf("[%T cannot be logged]", v)
	}
	var plain any
	if err := json.Unmarshal(text, &plain); err != nil {
		return fmt.Sprintf("[%T cannot be logged]", v)
	}
	return cleanJSON(plain, secret)
}

func cleanJSON(v any, secret bool) any {
	switch v := v.(type) {
	case string:
		return cleanText(v, secret)
	case []any:
		for i := range v {
			v[i] = cleanJSON(v[i], secret)
		}
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, x := range v {
			out[Redact(k)] = cleanJSON(x, secret || isSensitive(k))
		}
		return out
	}
	return v
}
