package fakegoogle

import (
	"encoding/json"
	"strings"
)

// fields holds the fields of an answer that a client requests (parameter fields): the names of fields, each with its
// requested subfields, or with none for all.
type fields map[string]fields

// readFields parses a list such as kind,items(id,start). It requests every field if it cannot parse the list.
func readFields(s string) fields {
	f, _ := readGroup(s)
	return f
}

func readGroup(s string) (f fields, rest string) {
	f = fields{}
	for s != "" {
		end := strings.IndexAny(s, ",()")
		if end < 0 {
			f[s] = nil
			return f, ""
		}
		name, sign := s[:end], s[end]
		if s = s[end+1:]; name != "" {
			f[name] = nil
		}
		switch sign {
		case '(':
			f[name], s = readGroup(s)
		case ')':
			return f, s
		}
	}
	return f, ""
}

// partial returns the requested part of an answer.
func (f fields) partial(answer any) any {
	if len(f) == 0 {
		return answer
	}
	raw, err := json.Marshal(answer)
	var v any
	if err != nil || json.Unmarshal(raw, &v) != nil {
		return answer
	}
	return f.of(v)
}

func (f fields) of(v any) any {
	switch v := v.(type) {
	case map[string]any:
		part := map[string]any{}
		for name, child := range v {
			if inner, wanted := f[name]; wanted || len(f) == 0 {
				part[name] = inner.of(child)
			}
		}
		return part
	case []any:
		for i := range v {
			v[i] = f.of(v[i])
		}
	}
	return v
}
