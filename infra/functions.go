// Package infra reads the list of deployed functions from the file that Terraform reads, too: infra/functions.json.
package infra

import (
	_ "embed"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/countersign-run/countersign/shared/base/strictjson"
)

//go:embed functions.json
var functionsJSON []byte

// List is the list of functions and of their parts, with what the parts need.
type List struct {
	Parts     map[string]Part `json:"parts"`
	Functions []Function      `json:"functions"`
}

// A Part is what every function with that part gets.
type Part struct {
	Environment []string          `json:"environment,omitempty"` // variables that are not secrets
	Secrets     map[string]string `json:"secrets,omitempty"`     // variable: name of the secret
	Roles       []Role            `json:"roles,omitempty"`
}

// A Role is granted to the function's own identity, on one resource.
type Role struct {
	Role string `json:"role"`
	// project, database (a condition on the project's grant), topic, sweeps or events (topics), tokens or receipts (KMS
	// keys)
	On string `json:"on"`
}

// Function is one deployable.
type Function struct {
	Name           string   `json:"name"`
	Folder         string   `json:"folder"`
	EntryPoint     string   `json:"entryPoint"`       // the name that it registers
	Callers        string   `json:"callers"`          // everyone, queue, events or scheduler
	Agents         []string `json:"agents,omitempty"` // whose runs it moves; see Function.Rest
	Routes         []Route  `json:"routes"`
	Parts          []string `json:"parts"`
	TimeoutSeconds int      `json:"timeoutSeconds"`
	Memory         string   `json:"memory"`
	CPU            string   `json:"cpu"`
	Concurrency    int      `json:"concurrency"`
	MinInstances   int      `json:"minInstances"`
	MaxInstances   int      `json:"maxInstances"`
}

// Route is one method and path.
type Route struct {
	Method string `json:"method"`
	Path   string `json:"path"`
}

// Public reports whether any client may send the function a request; the user's token then identifies the caller.
func (f Function) Public() bool { return f.Callers == "everyone" }

// Rest reports whether the function is the one of those that the queue calls which moves the runs of all agents that no
// other function names, and of those that are not known.
func (f Function) Rest() bool { return f.Callers == "queue" && len(f.Agents) == 0 }

// Functions returns the list of this build.
func Functions() (List, error) { return Parse(functionsJSON) }

// Parse decodes and validates a list. The error names the function and the invalid field.
func Parse(data []byte) (List, error) {
	var l List
	if err := strictjson.Decode(data, &l); err != nil {
		return List{}, fmt.Errorf("functions.json: %w", err)
	}
	seen := map[string]string{}
	for _, f := range l.Functions {
		if err := l.check(f, seen); err != nil {
			return List{}, fmt.Errorf("functions.json: function %q: %w", f.Name, err)
		}
	}
	if err := l.checkHomes(); err != nil {
		return List{}, fmt.Errorf("functions.json: %w", err)
	}
	for name, p := range l.Parts {
		if err := p.check(); err != nil {
			return List{}, fmt.Errorf("functions.json: part %q: %w", name, err)
		}
	}
	return l, nil
}

var (
	isName  = regexp.MustCompile(`^[a-z]([a-z0-9-]{0,18}[a-z0-9])?$`)
	isAgent = regexp.MustCompile(`^[a-z][a-z0-9-]{0,31}$`)
	isPath  = regexp.MustCompile(`^(/|(/([a-z.-]+|\{[a-zA-Z]+\}))+)$`)
)

// check validates one function; seen holds the names and routes of those before it.
func (l List) check(f Function, seen map[string]string) error {
	switch {
	case !isName.MatchString(f.Name):
		return fmt.Errorf("name must be small letters, digits and hyphens, at most 20")
	case seen[f.Name] != "":
		return fmt.Errorf("name is there twice")
	case f.Folder == "" || f.EntryPoint == "":
		return fmt.Errorf("folder and entryPoint must be set")
	case !slices.Contains([]string{"everyone", "queue", "events", "scheduler"}, f.Callers):
		return fmt.Errorf("callers is %q, not everyone, queue, events or scheduler", f.Callers)
	case len(f.Routes) == 0:
		return fmt.Errorf("routes is empty")
	case f.TimeoutSeconds < 30 || f.TimeoutSeconds > 3600: // the minimum of FUNCTION_TIMEOUT
		return fmt.Errorf("timeoutSeconds is %d, not 30 to 3600", f.TimeoutSeconds)
	case f.MinInstances < 0 || f.MaxInstances < 1 || f.MinInstances > f.MaxInstances:
		return fmt.Errorf("minInstances and maxInstances are %d and %d; the most must be at least 1 and not "+
			"below the least", f.MinInstances, f.MaxInstances)
	}
	if cpu, err := strconv.ParseFloat(f.CPU, 64); err != nil || f.Concurrency < 1 || f.Concurrency > 1000 ||
		f.Concurrency > 1 && cpu < 1 {
		return fmt.Errorf("cpu %q and concurrency %d do not go together: more than one request at a time needs "+
			"a whole CPU", f.CPU, f.Concurrency)
	}
	seen[f.Name] = f.Name
	for _, r := range f.Routes {
		if !isPath.MatchString(r.Path) || !slices.Contains([]string{"GET", "POST", "PATCH", "DELETE"}, r.Method) {
			return fmt.Errorf("route %q %q is not GET, POST, PATCH or DELETE with a path", r.Method, r.Path)
		}
		if other := seen[r.Method+" "+r.Path]; other != "" {
			return fmt.Errorf("route %s %s is %q's too", r.Method, r.Path, other)
		}
		seen[r.Method+" "+r.Path] = f.Name
	}
	for _, p := range f.Parts {
		if _, ok := l.Parts[p]; !ok {
			return fmt.Errorf("parts names %q, which is not defined", p)
		}
	}
	return nil
}

// maxFilter is the length of a subscription's filter in bytes
// (https://cloud.google.com/pubsub/docs/subscription-message-filter).
const maxFilter = 256

// checkHomes checks that each agent's runs are moved by one function. Terraform makes the subscriptions' filters of the
// lists (terraform/modules/agent/queue.tf).
func (l List) checkHomes() error {
	home, rest := map[string]string{}, ""
	for _, f := range l.Functions {
		if f.Rest() {
			if rest != "" {
				return fmt.Errorf("functions %q and %q both move the runs of all other agents: agents must say "+
					"which ones the queue calls %[2]q for", rest, f.Name)
			}
			rest = f.Name
		}
		for _, agent := range f.Agents {
			switch {
			case f.Callers != "queue":
				return fmt.Errorf("function %q: agents is for functions that the queue calls", f.Name)
			case !isAgent.MatchString(agent) || agent == "assistant": // whose messages may name no agent
				return fmt.Errorf("function %q: agents names %q, which is no agent that may have a function of its own",
					f.Name, agent)
			case home[agent] != "":
				return fmt.Errorf("function %q: the agent %q is %q's too", f.Name, agent, home[agent])
			}
			home[agent] = f.Name
		}
		if filter := l.Filter(f); len(filter) > maxFilter {
			return fmt.Errorf("function %q: its subscription's filter has %d bytes, and %d are the most: fewer agents "+
				"can have functions of their own", f.Name, len(filter), maxFilter)
		}
	}
	if len(home) > 0 && rest == "" {
		return errors.New("no function moves the runs of the agents that no function names")
	}
	return nil
}

// Filter returns the filter of the function's subscription in Pub/Sub's language: the messages about the agents whose
// runs it moves, by their attribute. It is empty where every message is the function's.
func (l List) Filter(f Function) string {
	if !f.Rest() {
		return anyOf(f.Agents)
	}
	var others []string
	for _, other := range l.Functions {
		others = append(others, other.Agents...)
	}
	if len(others) == 0 {
		return ""
	}
	return "NOT (" + anyOf(others) + ")" // and those without the attribute
}

func anyOf(agents []string) string {
	var is []string
	for _, a := range agents {
		is = append(is, fmt.Sprintf("attributes.agent = %q", a)) // queue.AgentAttribute
	}
	return strings.Join(is, " OR ")
}

func (p Part) check() error {
	for _, r := range p.Roles {
		if !strings.HasPrefix(r.Role, "roles/") ||
			!slices.Contains([]string{"project", "database", "topic", "sweeps", "events", "tokens",
				"receipts"}, r.On) {
			return fmt.Errorf("role %q on %q is not one that Terraform grants", r.Role, r.On)
		}
	}
	return nil
}
