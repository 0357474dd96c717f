package mcpfile

import (
	"bytes"
	"cmp"
	"encoding/json"
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/tailscale/hujson"

	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/base/strictjson"
)

// roots are the paths at which clients store their servers in a file. The first one with an entry is used. Clients
// write an empty object there before their user adds a server.
var roots = [][]string{{"mcpServers"}, {"servers"}, {"context_servers"}, {"mcp_servers"}, {"amp.mcpServers"},
	{"mcp.servers"}, {"mcp", "servers"}, {"mcp"}, {}}

// entriesOf returns the entries of a file in their order. Like other clients, it ignores comments, trailing commas and
// a byte order mark. A duplicate key is a mistake of its entry and not of the file.
func entriesOf(data []byte) ([]entry, error) {
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	if standard, err := hujson.Standardize(data); err == nil { // every byte keeps its position
		data = standard
	}
	if err := strictjson.Check(data, repeated); err != nil {
		if first := bytes.TrimSpace(data); len(first) > 0 && first[0] != '{' { // Codex has TOML, Goose and others YAML
			return nil, fault.Invalid("", "must be a JSON object; TOML and YAML are not accepted")
		}
		return nil, err
	}
	empty := false
	for _, path := range roots {
		raw := jsontext.Value(data)
		for _, name := range path {
			raw = members(raw)[name]
		}
		sure := len(path) > 0 && path[0] != "mcp" || len(path) == 2
		empty = empty || sure && raw.Kind() == '{' && len(members(raw)) == 0
		if !sure && !holdsServers(raw) {
			continue
		}
		if all := entriesIn(raw, path, lines(data)); len(all) > 0 {
			out := shutOut(members(data)["mcp"])
			for i := range all {
				all[i].out = out(all[i].name)
			}
			return all, nil
		}
	}
	if empty {
		return nil, nil
	}
	return nil, fault.Invalid("mcpServers", "must be an object of servers by their names")
}

// entriesIn returns the entries of an object, by key, or of an array whose elements have names.
func entriesIn(raw jsontext.Value, path []string, lines map[jsontext.Pointer]int) (all []entry) {
	pointer := jsontext.Pointer("")
	for _, name := range path {
		pointer = pointer.AppendToken(name)
	}
	add := func(key, name string, raw jsontext.Value) {
		all = append(all, entry{name: name, raw: raw, line: lines[pointer.AppendToken(key)],
			at: strings.Join(append(slices.Clone(path), name), "/")})
	}
	for name, one := range pairsIn(raw) {
		add(name, name, one)
	}
	for i, one := range elements(raw) {
		var named struct {
			Name string `json:"name"`
		}
		if strictjson.DecodeKnown(one, &named) == nil {
			add(strconv.Itoa(i), named.Name, one)
		}
	}
	slices.SortStableFunc(all, func(a, b entry) int {
		return cmp.Or(cmp.Compare(a.line, b.line), strings.Compare(a.name, b.name))
	})
	return all
}

// holdsServers reports whether every member of the value looks like a server.
func holdsServers(raw jsontext.Value) bool {
	for _, one := range members(raw) {
		has := members(one)
		if has["command"] == nil && has["url"] == nil && has["httpUrl"] == nil && has["serverUrl"] == nil {
			return false
		}
	}
	return true
}

// shutOut returns a function that reports whether lists next to the servers, such as {"mcp": {"allowed": […]}}, exclude
// the named server.
func shutOut(beside jsontext.Value) func(name string) bool {
	lists := members(beside)
	var allowed, excluded []string
	if json.Unmarshal(lists["allowed"], &allowed) != nil { // no list
		allowed = nil
	}
	if json.Unmarshal(lists["excluded"], &excluded) != nil {
		excluded = nil
	}
	return func(name string) bool {
		in := func(list []string) bool { return slices.Contains(list, name) || slices.Contains(list, "*") }
		return allowed != nil && !in(allowed) || in(excluded)
	}
}

// lines returns the line number of each value in the text, by its JSON pointer.
func lines(data []byte) map[jsontext.Pointer]int {
	at, line, read := map[jsontext.Pointer]int{}, 1, 0
	for dec := jsontext.NewDecoder(bytes.NewReader(data), repeated); ; {
		if _, err := dec.ReadToken(); err != nil { // the end, because the text was checked before
			return at
		}
		now := int(dec.InputOffset())
		line, read = line+bytes.Count(data[read:now], []byte("\n")), now
		if p := dec.StackPointer(); at[p] == 0 {
			at[p] = line
		}
	}
}

// repeated allows duplicate keys.
var repeated = jsontext.AllowDuplicateNames(true)

// members returns the members of a JSON object, and none of any other value. Of equal keys the last one counts, as for
// other clients.
func members(raw jsontext.Value) map[string]jsontext.Value { return maps.Collect(pairsIn(raw)) }

// pairsIn returns the members of a JSON object in their order, and none of any other value.
func pairsIn(raw jsontext.Value) iter.Seq2[string, jsontext.Value] {
	return func(yield func(string, jsontext.Value) bool) {
		dec := jsontext.NewDecoder(bytes.NewReader(raw), repeated)
		if start, err := dec.ReadToken(); err != nil || start.Kind() != '{' {
			return
		}
		for dec.PeekKind() == '"' {
			name, err := dec.ReadToken()
			if err != nil {
				return
			}
			key := name.String()
			value, err := dec.ReadValue()
			if err != nil || !yield(key, value.Clone()) {
				return
			}
		}
	}
}

// elements returns the elements of a JSON array, or nil for any other value.
func elements(raw jsontext.Value) (list []jsontext.Value) {
	if json.Unmarshal(raw, &list) != nil {
		return nil
	}
	return list
}
