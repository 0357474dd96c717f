package agentfiles

import (
	"cmp"
	"encoding/json"
	"errors"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/countersign-run/countersign/shared/agent/registry"
	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/base/strictyaml"
	"github.com/countersign-run/countersign/shared/config"
)

// The limits of a file's contents. Texts are in bytes.
const (
	maxInstruction = 32 << 10
	maxDescription = 1 << 10
	maxModel       = 128
	maxTools       = 100
	maxOrigins     = 50
)

// Parse decodes one agent file. The file name must contain the agent's name. Its error joins one [*strictyaml.Problem]
// for each mistake.
func Parse(file string, data []byte, o Options) (registry.Agent, error) {
	d, err := strictyaml.Parse(file, data)
	if err != nil {
		return registry.Agent{}, err
	}
	s, wrong := d.Fields(d.Root, "name", "model", "description", "examples", "instruction", "tools", "temperature",
		"limits", "onReject", "page", "origins", "responseSchema", "thoughts")
	p := &parser{Options: o, doc: d, at: map[string]*yaml.Node{}, wrong: wrong}
	a := p.agent(s, strings.TrimSuffix(file, extension))
	p.check(a)
	if len(p.wrong) > 0 {
		return registry.Agent{}, errors.Join(p.wrong...)
	}
	return a, nil
}

// A parser reads one file and collects its mistakes.
type parser struct {
	Options
	doc   *strictyaml.Document
	at    map[string]*yaml.Node // the file's nodes by the registry's field names
	wrong []error
}

func (p *parser) fail(n *yaml.Node, format string, args ...any) {
	p.add(p.doc.Wrong(n, format, args...))
}

func (p *parser) add(err error) {
	if err != nil {
		p.wrong = append(p.wrong, err)
	}
}

// agent reads the file. An invalid field is reported, and has its default in the result.
func (p *parser) agent(s strictyaml.Section, name string) registry.Agent {
	p.at = map[string]*yaml.Node{"name": s.Values["name"], "examples": s.Values["examples"],
		"model.name": s.Values["model"], "model.temperature": s.Values["temperature"]}
	text := func(key string, most int) string {
		v, err := s.Text(key, most)
		p.add(err)
		return v
	}
	a := registry.Agent{Name: name, History: registry.HistoryWords, Description: text("description", maxDescription)}
	if n, err := s.Required("name"); err != nil {
		p.add(err)
	} else if n.Kind != yaml.ScalarNode || n.Value != name {
		p.fail(n, "name: %s was expected, as the file's name says", strictyaml.Quoted(name))
	}
	if _, err := s.Required("instruction"); err != nil {
		p.add(err)
	}
	p.examples(s, &a)
	instruction := registry.Text(text("instruction", maxInstruction))
	a.Instructions, a.Present = registry.WithExamples(instruction, a.Examples), registry.State.Here
	a.Model.Name = text("model", maxModel)
	thoughts, err := s.Flag("thoughts", false)
	p.add(err)
	a.Model.Thoughts = thoughts
	a.Model.Temperature = p.temperature(s.Values["temperature"])
	p.page(s, &a)
	p.origins(s, &a)
	p.responseSchema(s, &a)
	p.tools(s, &a)
	a.Limits = p.limits(s.Values["limits"])
	onReject, err := s.OneOf("onReject", "", string(registry.RejectCompletes), string(registry.RejectFails),
		string(registry.RejectContinues))
	p.add(err)
	a.OnReject = cmp.Or(registry.OnReject(onReject), p.OnReject)
	return a
}

// examples reads the examples of requests for users.
func (p *parser) examples(s strictyaml.Section, a *registry.Agent) {
	list := s.Values["examples"]
	if list == nil {
		return
	}
	if list.Kind != yaml.SequenceNode || len(list.Content) > registry.MaxExamples {
		p.fail(list, "examples: a list of at most %d requests was expected", registry.MaxExamples)
		return
	}
	for _, n := range list.Content {
		if n.Kind != yaml.ScalarNode || n.ShortTag() != "!!str" {
			p.fail(n, "examples: the words of a request were expected")
			return
		}
		a.Examples = append(a.Examples, n.Value)
	}
}

// page reads whether the agent serves web pages. Such an agent can name only actions, has the tools of the page as
// well, and leaves the history to the page.
func (p *parser) page(s strictyaml.Section, a *registry.Agent) {
	yes, err := s.Flag("page", false)
	p.add(err)
	if a.Page = yes; yes {
		a.History, p.Tools, p.Servers, p.Limits = registry.HistoryNone, p.Actions, nil, p.PageLimits
	}
	p.NoTools = p.NoTools || p.PagesAlone && !yes
}

// origins reads the origins of the web pages that the agent serves.
func (p *parser) origins(s strictyaml.Section, a *registry.Agent) {
	list := s.Values["origins"]
	switch {
	case list == nil:
		return
	case !a.Page:
		p.fail(list, "origins: they are for an agent with page: true")
		return
	case list.Kind != yaml.SequenceNode || len(list.Content) == 0 || len(list.Content) > maxOrigins:
		p.fail(list, "origins: a list of 1 to %d was expected; without it all of ALLOWED_ORIGINS are answered",
			maxOrigins)
		return
	}
	for _, n := range list.Content {
		switch {
		case n.Kind != yaml.ScalarNode || !config.IsOrigin(n.Value):
			p.fail(n, "origins: one as browsers send it was expected, such as https://shop.example.com: https (http "+
				"only on a loopback address), lower-case letters, no path")
		case slices.Contains(a.Origins, n.Value):
			p.fail(n, "origins: %s is duplicated", strictyaml.Quoted(n.Value))
		}
		a.Origins = append(a.Origins, n.Value)
	}
}

// responseSchema reads the schema of the agent's answers, which is JSON Schema written as YAML.
func (p *parser) responseSchema(s strictyaml.Section, a *registry.Agent) {
	n := s.Values["responseSchema"]
	if n == nil {
		return
	}
	var schema map[string]any
	if err := n.Decode(&schema); err != nil || n.Kind != yaml.MappingNode {
		p.fail(n, "responseSchema: the JSON Schema of an object was expected")
		return
	}
	raw, err := json.Marshal(schema)
	if err != nil {
		p.fail(n, "responseSchema: a JSON Schema was expected, with texts as keys")
		return
	}
	p.at["responseSchema"] = n
	a.ResponseSchema = raw
}

// check validates the agent with the registry, and reports the registry's errors at the fields in the file.
func (p *parser) check(a registry.Agent) {
	_, err := registry.New(p.Tools, nil, []registry.Agent{a})
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return
	}
	for _, err := range joined.Unwrap() {
		f := fault.As(err)
		field := strings.TrimPrefix(f.Field, a.Name+".")
		at, _, _ := strings.Cut(field, "/")        // the place in a schema
		name := strings.TrimSuffix(field, ".name") // the registry's model.name is the file's model
		p.fail(cmp.Or(p.at[at], p.doc.Root), "%s: %s", strings.TrimPrefix(name, "model."), f.Message)
	}
}

func (p *parser) temperature(n *yaml.Node) *float32 {
	if n == nil {
		return nil
	}
	v, err := strconv.ParseFloat(n.Value, 32)
	number := n.Kind == yaml.ScalarNode && (n.ShortTag() == "!!float" || n.ShortTag() == "!!int")
	if err != nil || !number || math.IsNaN(v) || math.IsInf(v, 0) {
		p.fail(n, "temperature: a number from 0 to 2 was expected")
		return nil
	}
	t := float32(v)
	return &t
}

// tools reads the names of tools. Each entry is a text or a mapping with the key name.
func (p *parser) tools(s strictyaml.Section, a *registry.Agent) {
	a.Tools = []string{}
	list := s.Values["tools"]
	switch {
	case list == nil:
		return
	case list.Kind != yaml.SequenceNode || len(list.Content) > maxTools:
		p.fail(list, "tools: a list of at most %d names, or of entries {name, approval}, was expected", maxTools)
		return
	}
	var seen []string
	for _, n := range list.Content {
		name, asks := p.tool(n)
		switch {
		case name == "":
			continue
		case slices.Contains(seen, name):
			p.fail(n, "tools: %s is duplicated", strictyaml.Quoted(name))
			continue
		}
		seen = append(seen, name)
		if p.NoTools {
			continue
		}
		if p.served(name) {
			a.Dynamic = append(a.Dynamic, name)
		} else {
			a.Tools = append(a.Tools, name)
		}
		if asks {
			a.Ask = append(a.Ask, name)
		}
	}
}

// tool returns the entry's tool name, and whether the file requires approval for its calls. It returns "" after a
// mistake.
func (p *parser) tool(n *yaml.Node) (name string, asks bool) {
	at, approval := n, ""
	if n.Kind == yaml.MappingNode {
		s, wrong := p.doc.Fields(n, "name", "approval")
		p.wrong = append(p.wrong, wrong...)
		var err error
		approval, err = s.OneOf("approval", "", string(tool.Required), string(tool.NotRequired))
		p.add(err)
		if at, err = s.Required("name"); err != nil {
			p.add(err)
			return "", false
		}
		n = cmp.Or(s.Values["approval"], n)
	}
	if at.Kind != yaml.ScalarNode || at.ShortTag() != "!!str" || at.Value == "" {
		p.fail(at, "tools: the name of a tool was expected")
		return "", false
	}
	if p.NoTools {
		return at.Value, false
	}
	t := p.Tools[at.Value]
	switch {
	case p.served(at.Value):
		if approval == string(tool.NotRequired) {
			p.fail(n, "approval: required was expected, or no approval; what a server's tool needs is said where the "+
				"server is named")
		}
	case t == nil:
		p.fail(at, "tools: there is no tool %s; expected: %s", strictyaml.Quoted(at.Value), p.known())
		return "", false
	case t.UserOnly:
		p.fail(at, "tools: %s is called by users alone; expected: %s", strictyaml.Quoted(at.Value), p.known())
		return "", false
	case approval == string(tool.NotRequired) && t.Approval == tool.Required:
		p.fail(n, "approval: required was expected, or no approval; the tool needs one, and a file may only "+
			"be stricter")
	}
	return at.Value, approval == string(tool.Required)
}

// served reports whether the name is that of a server's tool, or x_* for all tools of server x.
func (p *parser) served(name string) bool {
	return slices.ContainsFunc(p.Servers, func(begin string) bool {
		return strings.HasPrefix(name, begin) && name != begin
	})
}

// known lists the tools that a file can name.
func (p *parser) known() string {
	names := slices.DeleteFunc(p.Tools.Names(), func(name string) bool { return p.Tools[name].UserOnly })
	for _, begin := range p.Servers {
		names = append(names, begin+"*")
	}
	if len(names) == 0 {
		return "none, because this deployment has no tools"
	}
	return strings.Join(names, ", ")
}

// limits reads the limits, with defaults for the missing ones. The timeouts of one step are capped by the time of one
// function call, which differs between functions.
func (p *parser) limits(n *yaml.Node) registry.Limits {
	l := p.Limits
	if n == nil {
		return l
	}
	numbers := map[string]*int{"modelCalls": &l.ModelCalls, "contents": &l.Contents, "maxOpen": &l.MaxOpen,
		"maxPerDay": &l.MaxPerDay}
	spans := map[string]*time.Duration{"deadline": &l.Deadline, "approvalTTL": &l.ApprovalTTL,
		"answerTTL": &l.AnswerTTL, "modelTimeout": &l.ModelTimeout, "toolTimeout": &l.ToolTimeout}
	keys := []string{"modelCalls", "contents", "deadline", "approvalTTL", "answerTTL", "modelTimeout", "toolTimeout",
		"maxOpen", "maxPerDay"}
	s, wrong := p.doc.Fields(n, keys...)
	p.wrong = append(p.wrong, wrong...)
	for _, key := range keys {
		v := s.Values[key]
		if v == nil {
			continue
		}
		p.at["limits."+key] = v
		if to := numbers[key]; to != nil {
			p.number(v, key, to)
		} else {
			p.span(v, key, spans[key])
		}
	}
	p.fits(s, &l)
	if most := l.LongestTool; most > 0 {
		l.ToolTimeout, l.ModelTimeout = min(l.ToolTimeout, most), min(l.ModelTimeout, most)
	}
	return l
}

// fits checks that approvals do not outlast the run. If the file sets only the run's deadline, the approvals' time is
// shortened to it.
func (p *parser) fits(s strictyaml.Section, l *registry.Limits) {
	switch ttl := s.Values["approvalTTL"]; {
	case ttl == nil:
		l.ApprovalTTL = min(l.ApprovalTTL, l.Deadline)
	case l.ApprovalTTL > l.Deadline:
		p.fail(ttl, "limits.approvalTTL: at most the deadline of a run, %s, was expected", l.Deadline)
	}
}

func (p *parser) number(n *yaml.Node, key string, to *int) {
	v, err := strconv.Atoi(n.Value)
	if err != nil || n.ShortTag() != "!!int" {
		p.fail(n, "limits.%s: a whole number was expected", key)
		return
	}
	*to = v
}

func (p *parser) span(n *yaml.Node, key string, to *time.Duration) {
	v, err := config.ParseDuration(n.Value)
	if err != nil || n.Kind != yaml.ScalarNode {
		p.fail(n, "limits.%s: a time was expected, such as 90s, 15m, 24h or 7d", key)
		return
	}
	*to = v
}
