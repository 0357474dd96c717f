package schema

import (
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
)

// reference expands a local reference.
func (i *importer) reference(at place, v any, depth int) (*jsonschema.Schema, error) {
	text, _ := v.(string)
	base, fragment, _ := strings.Cut(text, "#")
	if strings.Contains(base, "://json-schema.org/draft") { // the schema of schemas
		return &jsonschema.Schema{Types: []string{"object", "boolean"}}, nil
	}
	pointer, local := i.pointerTo(base, fragment)
	if text == "" || !local {
		return nil, refused(at, "must be a reference within the schema, such as #/$defs/name")
	}
	target, to, ok := i.follow(pointer)
	if !ok {
		target, to, ok = i.follow(i.elsewhere(pointer))
	}
	if !ok {
		return nil, refused(at, "this reference leads nowhere")
	}
	if n := i.open[to.pointer()]; n > 0 {
		i.recursive = true
		if n > i.again {
			return cut(target), nil
		}
	}
	return i.node(to, target, depth)
}

// pointerTo returns the JSON pointer of a reference: its base is the name of a schema in the document or empty, and its
// fragment is a pointer, an anchor or empty.
func (i *importer) pointerTo(base, fragment string) (pointer string, local bool) {
	n := i.named()
	if base != "" {
		if pointer, local = n.ids[n.absolute(base)]; !local {
			return "", false
		}
	}
	switch {
	case fragment == "":
		return pointer, true
	case fragment[0] == '/':
		return pointer + fragment, true
	}
	pointer, local = n.ids["#"+fragment]
	return pointer, local
}

// follow returns the value at a JSON pointer and its place. In a reference, a pointer is percent-encoded.
func (i *importer) follow(pointer string) (target any, to place, ok bool) {
	target = i.doc
	for n, step := range strings.Split(pointer, "/") {
		if n == 0 {
			continue // the empty part before the first slash
		}
		step = unescaper.Replace(step)
		inner, ok := within(target, step)
		if plain, err := url.PathUnescape(step); !ok && err == nil {
			step = plain
			inner, ok = within(target, step)
		}
		if !ok {
			return nil, nil, false
		}
		target, to = inner, append(to, step)
	}
	return target, to, true
}

var unescaper = strings.NewReplacer("~1", "/", "~0", "~")

// buckets are the keywords and paths under which schemas keep definitions. Programs that move a schema rename them
// without updating the references.
var buckets = []string{"/$defs/", "/definitions/", "/components/schemas/"}

// elsewhere handles a pointer to a definition that was moved. If the document has exactly one definition with that
// name, elsewhere returns a pointer to it. Otherwise it returns the pointer unchanged.
func (i *importer) elsewhere(pointer string) string {
	for _, bucket := range buckets {
		name, ok := strings.CutPrefix(pointer, bucket)
		if !ok {
			continue
		}
		name, rest, _ := strings.Cut(name, "/")
		if found := i.named().definitions[name]; len(found) == 1 {
			return strings.TrimSuffix(found[0]+"/"+rest, "/")
		}
	}
	return pointer
}

// names indexes the named schemas of a document. The values are JSON pointers.
type names struct {
	base        *url.URL
	ids         map[string]string   // by $id, and by # with the anchor
	definitions map[string][]string // by the name in $defs or definitions
}

// named returns the named schemas of the document.
func (i *importer) named() *names {
	if i.names == nil {
		i.names = &names{base: &url.URL{}, ids: map[string]string{}, definitions: map[string][]string{}}
		if root, ok := i.doc.(map[string]any); ok {
			id, _ := root["$id"].(string)
			if base, err := url.Parse(id); err == nil {
				i.names.base = base
			}
		}
		i.names.note(i.doc, nil)
	}
	return i.names
}

// absolute returns a schema's name as a URL without a fragment.
func (n *names) absolute(id string) string {
	u, err := n.base.Parse(strings.TrimSuffix(id, "#"))
	if err != nil {
		return id
	}
	return u.String()
}

func (n *names) note(v any, at place) {
	fields, ok := v.(map[string]any)
	if !ok || len(at) > 2*MaxDepth { // each schema is at most two names deeper than the schema around it
		return
	}
	pointer := ""
	if len(at) > 0 {
		pointer = "/" + at.pointer()
	}
	for _, key := range []string{"$anchor", "$dynamicAnchor"} {
		if name, ok := fields[key].(string); ok {
			n.add("#"+name, pointer)
		}
	}
	for _, key := range []string{"$id", "id"} { // draft 4 has id
		id, _ := fields[key].(string)
		switch {
		case strings.HasPrefix(id, "#"): // an anchor, before draft 2019-09
			n.add(id, pointer)
		case id != "":
			n.add(n.absolute(id), pointer)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		inner := at.to(name)
		if len(at) > 0 && (at[len(at)-1] == "$defs" || at[len(at)-1] == "definitions") {
			n.definitions[escaper.Replace(name)] = append(n.definitions[escaper.Replace(name)], "/"+inner.pointer())
		}
		n.note(fields[name], inner)
	}
}

// add records the pointer of a name. The first pointer, which belongs to the outermost schema, is kept.
func (n *names) add(name, pointer string) {
	if _, known := n.ids[name]; !known {
		n.ids[name] = pointer
	}
}
