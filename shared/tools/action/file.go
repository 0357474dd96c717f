package action

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/countersign-run/countersign/shared/base/outbound"
	"github.com/countersign-run/countersign/shared/base/strictyaml"
)

// The limits of a file's contents.
const (
	maxDescription  = 4096
	defaultTimeout  = 10 * time.Second
	maxTimeout      = 30 * time.Second // of an endpoint
	maxCall         = 10 * time.Minute // of a call, as for the tools in agents' files
	maxTargets      = 20
	defaultResponse = 64 << 10
	maxResponse     = 1 << 20
	maxKept         = 64 << 10 // of an action with a side effect, whose result is recorded
)

// ParseMetadata parses a .jay-action file. file is its name in errors. It also returns the action's own name.
func ParseMetadata(file string, data []byte) (name string, m *Metadata, err error) {
	d, err := parse(file, data)
	if err != nil {
		return "", nil, err
	}
	s, err := d.tolerant(d.Root, []string{"import"}, "name", "description", "inputSchema", "outputSchema", "readOnly",
		"category", "sideEffect", "class", "approval", "timeout", "final", "untrusted", "targets", "bound", "preview",
		"binding")
	if err != nil {
		return "", nil, err
	}
	if imports := s.Values["import"]; imports != nil && imports.Kind == yaml.MappingNode {
		for i := 0; i < len(imports.Content); i += 2 {
			d.contracts = append(d.contracts, imports.Content[i].Value)
		}
	}
	m = &Metadata{File: file}
	if name, err = s.name(); err != nil {
		return "", nil, err
	}
	for _, read := range []func(section) error{m.readWords, m.readSchemas, m.readEffect, m.readCall, m.readTargets,
		m.readBound, m.readPreview, m.readBinding} {
		if err := read(s); err != nil {
			return "", nil, err
		}
	}
	m.notes = d.note(file)
	return name, m, nil
}

// name returns the value of the required key name.
func (s section) name() (string, error) {
	n, err := s.Required("name")
	if err != nil {
		return "", err
	}
	return s.actionName(n)
}

func (d *document) actionName(n *yaml.Node) (string, error) {
	if n.Kind != yaml.ScalarNode || !validName.MatchString(n.Value) {
		return "", d.Wrong(n, "the name %s: up to 55 letters, digits, _, . and - that begin with a letter were "+
			"expected", strictyaml.Quoted(n.Value))
	}
	return n.Value, nil
}

func (m *Metadata) readWords(s section) (err error) {
	if _, err = s.Required("description"); err != nil {
		return err
	}
	m.Description, err = s.Text("description", maxDescription)
	return err
}

func (m *Metadata) readSchemas(s section) error {
	in, err := s.Required("inputSchema")
	if err != nil {
		return err
	}
	if in, err = s.expanded(in, true); err != nil {
		return err
	}
	if m.Input, err = s.schema(in, "object"); err != nil {
		return err
	}
	closeObjects(m.Input, true)
	if err := s.usable(in, m.Input); err != nil { // a default may fit only the open object
		return err
	}
	if out := s.Values["outputSchema"]; out != nil && out.ShortTag() != "!!null" {
		if out, err = s.expanded(out, false); err != nil {
			return err
		}
		m.Output, err = s.schema(out, "")
	}
	return err
}

func (m *Metadata) readBinding(s section) error {
	n := s.Values["binding"]
	if n == nil {
		return nil
	}
	b, err := s.section(n, "method", "url", "timeout", "maxResponseBytes", "idempotent", "refusedBy", "key")
	if err != nil {
		return err
	}
	out := &Binding{}
	if out.Method, err = b.OneOf("method", "POST", "GET", "POST", "PUT", "PATCH", "DELETE"); err != nil {
		return err
	}
	if out.Method == "GET" && m.SideEffect {
		return s.Wrong(n, "binding: GET is for actions without side effects; sideEffect: false was expected, "+
			"or another method")
	}
	if out.URL, err = b.url(); err != nil {
		return err
	}
	if out.Timeout, err = b.duration("timeout", defaultTimeout, 100*time.Millisecond, maxTimeout); err != nil {
		return err
	}
	if m.Timeout > 0 && out.Timeout > m.Timeout {
		if b.Values["timeout"] != nil {
			return s.Wrong(b.Values["timeout"], "timeout: no more than the action's own, %s, was expected", m.Timeout)
		}
		out.Timeout = m.Timeout
	}
	if out.MaxResponseBytes, err = b.size("maxResponseBytes", m.SideEffect); err != nil {
		return err
	}
	if out.Idempotent, err = b.Flag("idempotent", false); err != nil {
		return err
	}
	if out.RefusedBy, err = b.statuses("refusedBy"); err != nil {
		return err
	}
	key, err := b.OneOf("key", "shared", "shared", "derived")
	out.DerivedKey = key == "derived"
	m.Binding = out
	return err
}

// statuses returns a list of 4xx statuses.
func (s section) statuses(key string) (out []int, err error) {
	n := s.Values[key]
	if n == nil {
		return nil, nil
	}
	if n.Kind != yaml.SequenceNode || len(n.Content) == 0 || len(n.Content) > 20 {
		return nil, s.Wrong(n, "%s: a list of 1 to 20 statuses was expected, such as [409]", key)
	}
	for _, c := range n.Content {
		status, err := strconv.Atoi(c.Value)
		if err != nil || status < 400 || status > 499 {
			return nil, s.Wrong(c, "%s: a status from 400 to 499 was expected", key)
		}
		out = append(out, status)
	}
	return out, nil
}

func (s section) url() (string, error) {
	n, err := s.Required("url")
	if err != nil {
		return "", err
	}
	u, err := url.Parse(n.Value)
	if err != nil || n.Kind != yaml.ScalarNode || !plainURL(u) || len(n.Value) > 2048 ||
		strings.ContainsAny(n.Value, "#?{}<>*\\ ") {
		return "", s.Wrong(n, "url: a fixed address with https (http only on a loopback address), without "+
			"credentials, query, fragment and placeholders was expected")
	}
	return n.Value, nil
}

func plainURL(u *url.URL) bool {
	port, err := strconv.Atoi(u.Port())
	ported := u.Port() == "" && !strings.HasSuffix(u.Host, ":") || err == nil && port >= 1 && port <= 65535
	return ported && outbound.Secure(u)
}

// duration returns a time within its limits, or def if the key is missing.
func (s section) duration(key string, def, least, most time.Duration) (time.Duration, error) {
	n := s.Values[key]
	if n == nil {
		return def, nil
	}
	d, err := time.ParseDuration(n.Value)
	if err != nil || d < least || d > most {
		return 0, s.Wrong(n, "%s: a time from %s to %s was expected, such as 5s", key, least, most)
	}
	return d, nil
}

func (s section) size(key string, effect bool) (int64, error) {
	n, most, why := s.Values[key], int64(maxResponse), ""
	if effect {
		most, why = maxKept, ", because the result of an action with a side effect stays on the record"
	}
	if n == nil {
		return defaultResponse, nil
	}
	size, err := strconv.ParseInt(n.Value, 10, 64)
	if err != nil || size < 1 || size > most {
		return 0, s.Wrong(n, "%s", fmt.Sprintf("%s: must be a number of bytes from 1 to %d%s", key, most, why))
	}
	return size, nil
}
