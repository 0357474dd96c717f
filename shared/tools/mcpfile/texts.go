package mcpfile

import (
	"cmp"
	"encoding/json"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// texts merges the maps. A later map overrides an earlier one.
func texts[M ~map[string]text](all ...M) map[string]string {
	var out map[string]string
	for _, m := range all {
		for name, value := range m {
			if out == nil {
				out = map[string]string{}
			}
			out[name] = string(value)
		}
	}
	return out
}

func plain(list []text) (out []string) {
	for _, t := range list {
		out = append(out, string(t))
	}
	return out
}

// text is a string. A number or a boolean is taken as it is written.
type text string

// UnmarshalJSON implements [json.Unmarshaler].
func (t *text) UnmarshalJSON(data []byte) error {
	switch jsontext.Value(data).Kind() {
	case '0', 't', 'f':
		*t = text(data)
		return nil
	}
	return json.Unmarshal(data, (*string)(t)) // null leaves the text empty
}

// program is a command: a string, a list with its arguments, or an object.
type program struct {
	Path string          `json:"path"`
	Args []string        `json:"-"`
	List []text          `json:"args"`
	Env  map[string]text `json:"env"`
}

// UnmarshalJSON implements [json.Unmarshaler].
func (p *program) UnmarshalJSON(data []byte) error {
	type object program
	switch jsontext.Value(data).Kind() {
	case '[':
		if err := json.Unmarshal(data, &p.List); err != nil || len(p.List) == 0 {
			return err
		}
		p.Path, p.List = string(p.List[0]), p.List[1:]
	case '{':
		if err := json.Unmarshal(data, (*object)(p)); err != nil {
			return err
		}
	default:
		return json.Unmarshal(data, &p.Path)
	}
	p.Args = plain(p.List)
	return nil
}

// pairs are texts by their names: an object, or a list such as ["NAME=value"] or [{"name": "NAME", "value": "…"}].
type pairs map[string]text

// UnmarshalJSON implements [json.Unmarshaler].
func (p *pairs) UnmarshalJSON(data []byte) error {
	if jsontext.Value(data).Kind() != '[' {
		return json.Unmarshal(data, (*map[string]text)(p))
	}
	*p = pairs{}
	for _, one := range elements(data) {
		if one.Kind() == '"' {
			var line string
			if err := json.Unmarshal(one, &line); err != nil {
				return err
			}
			name, value, _ := strings.Cut(line, "=")
			(*p)[name] = text(value)
			continue
		}
		var of struct {
			Name  string `json:"name"`
			Key   string `json:"key"`
			Value text   `json:"value"`
		}
		if err := json.Unmarshal(one, &of); err != nil {
			return err
		}
		(*p)[cmp.Or(of.Name, of.Key)] = of.Value
	}
	return nil
}

// transport is the name of a transport, or an object with its other fields.
type transport struct {
	Type    text    `json:"type"`
	URL     text    `json:"url"`
	Headers pairs   `json:"headers"`
	Command program `json:"command"`
	Args    []text  `json:"args"`
	Env     pairs   `json:"env"`
}

// UnmarshalJSON implements [json.Unmarshaler].
func (t *transport) UnmarshalJSON(data []byte) error {
	type object transport
	if jsontext.Value(data).Kind() == '{' {
		return json.Unmarshal(data, (*object)(t))
	}
	return json.Unmarshal(data, &t.Type)
}

// over adds the fields of the transport to those of the entry.
func (t transport) over(f *fields) {
	f.URL = cmp.Or(f.URL, t.URL)
	if f.Command.Path == "" {
		f.Command = t.Command
	}
	if f.Args == nil {
		f.Args = t.Args
	}
	if f.Headers == nil {
		f.Headers = t.Headers
	}
	if f.Env == nil {
		f.Env = t.Env
	}
}
