// Package infra reads the list of deployed functions from infra/functions.json, which Terraform reads too.
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

// List is the list of functions and their parts, with the requirements of each part.
type List struct {
	Parts     map[string]Part     `json:"parts"`
	Profiles  map[string][]string `json:"profiles"` // names of functions, by profile; see List.Select
	Functions []Function          `json:"functions"`
}

// A Part is a set of variables, secrets and roles. Every function with the part gets them.
type Part struct {
	Environment []string          `json:"environment,omitempty"` // variables without secrets
	Secrets     map[string]string `json:"secrets,omitempty"`     // names of secrets, by variable
	Roles       []Role            `json:"roles,omitempty"`
}

// A Role is granted to the function's identity on one resource.
type Role struct {
	Role string `json:"role"`
	// On is project, database (a condition on the project's grant), topic, sweeps or events (topics), tokens, receipts,
	// decisions, enrolment or log-key (KMS keys), files or log (buckets), or checkpoint (one object of the bucket
	// log).
	On string `json:"on"`
}

// Function is one deployed function.
type Function struct {
	Name           string   `json:"name"`
	Folder         string   `json:"folder"`
	EntryPoint     string   `json:"entryPoint"`       // the name that the function registers
	Callers        string   `json:"callers"`          // everyone, queue, events or scheduler
	Needs          []string `json:"needs,omitempty"`  // the functions besides the core that it needs to be useful
	Agents         []string `json:"agents,omitempty"` // the agents whose runs it advances; see Function.Rest
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

// Public reports whether any client can send the function a request. The user's token then identifies the caller.
func (f Function) Public() bool { return f.Callers == "everyone" }

// Rest reports whether the function is the queue's default: it advances the runs of all agents that no other function
// names, and of unknown agents.
func (f Function) Rest() bool { return f.Callers == "queue" && len(f.Agents) == 0 }

// UpgradeStep returns the step of an upgrade in which the function is deployed. Step 1 has the functions that continue
// runs, which the queue and the scheduler call. Step 2 has those that write other events of runs, and step 3 those that
// write none. Each function that continues runs therefore knows a new type of event before any other function writes
// it.
func (f Function) UpgradeStep() int {
	switch {
	case f.Callers == "queue" || f.Callers == "scheduler":
		return 1
	case slices.Contains(f.Parts, "queue"):
		return 2
	}
	return 3
}

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
	if err := errors.Join(l.checkHomes(), l.checkProfiles()); err != nil {
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

// check validates one function. seen holds the names and routes of the functions before it.
func (l List) check(f Function, seen map[string]string) error {
	switch {
	case !isName.MatchString(f.Name):
		return fmt.Errorf("name must be at most 20 lower-case letters, digits and hyphens")
	case seen[f.Name] != "":
		return fmt.Errorf("duplicate name")
	case f.Folder == "" || f.EntryPoint == "":
		return fmt.Errorf("folder and entryPoint must be set")
	case !slices.Contains([]string{"everyone", "queue", "events", "scheduler"}, f.Callers):
		return fmt.Errorf("callers is %q; it must be everyone, queue, events or scheduler", f.Callers)
	case len(f.Routes) == 0:
		return fmt.Errorf("routes is empty")
	case f.TimeoutSeconds < 30 || f.TimeoutSeconds > 3600: // the minimum of FUNCTION_TIMEOUT
		return fmt.Errorf("timeoutSeconds is %d; it must be 30 to 3600", f.TimeoutSeconds)
	case f.MinInstances < 0 || f.MaxInstances < 1 || f.MinInstances > f.MaxInstances:
		return fmt.Errorf("minInstances and maxInstances are %d and %d; maxInstances must be at least 1 and not "+
			"below minInstances", f.MinInstances, f.MaxInstances)
	}
	if cpu, err := strconv.ParseFloat(f.CPU, 64); err != nil || f.Concurrency < 1 || f.Concurrency > 1000 ||
		f.Concurrency > 1 && cpu < 1 {
		return fmt.Errorf("cpu is %q and concurrency is %d: a concurrency above 1 needs "+
			"a whole CPU", f.CPU, f.Concurrency)
	}
	seen[f.Name] = f.Name
	if err := f.checkRoutes(seen); err != nil {
		return err
	}
	for _, p := range f.Parts {
		if _, ok := l.Parts[p]; !ok {
			return fmt.Errorf("parts names %q, which is not defined", p)
		}
	}
	return nil
}

// checkRoutes validates the routes of the function, and adds them to seen.
func (f Function) checkRoutes(seen map[string]string) error {
	for _, r := range f.Routes {
		if !isPath.MatchString(r.Path) || !slices.Contains([]string{"GET", "POST", "PATCH", "DELETE"}, r.Method) {
			return fmt.Errorf("route %q %q must be GET, POST, PATCH or DELETE and a path", r.Method, r.Path)
		}
		if other := seen[r.Method+" "+r.Path]; other != "" {
			return fmt.Errorf("route %s %s also belongs to %q", r.Method, r.Path, other)
		}
		seen[r.Method+" "+r.Path] = f.Name
	}
	return nil
}

// maxFilter is the maximum length in bytes of a subscription's filter
// (https://cloud.google.com/pubsub/docs/subscription-message-filter).
const maxFilter = 256

// checkHomes checks that exactly one function advances the runs of each agent. Terraform builds the subscriptions'
// filters from these lists (terraform/modules/agent/queue.tf).
func (l List) checkHomes() error {
	home, rest := map[string]string{}, ""
	for _, f := range l.Functions {
		if f.Rest() {
			if rest != "" {
				return fmt.Errorf("functions %q and %q both advance the runs of all other agents: agents must list "+
					"those of %[2]q", rest, f.Name)
			}
			rest = f.Name
		}
		for _, agent := range f.Agents {
			switch {
			case f.Callers != "queue":
				return fmt.Errorf("function %q: agents is only for functions whose callers are queue", f.Name)
			case !isAgent.MatchString(agent) || agent == "assistant": // its messages may name no agent
				return fmt.Errorf("function %q: agents names %q, which cannot have a separate function",
					f.Name, agent)
			case home[agent] != "":
				return fmt.Errorf("function %q: the agent %q also belongs to %q", f.Name, agent, home[agent])
			}
			home[agent] = f.Name
		}
		if filter := l.Filter(f); len(filter) > maxFilter {
			return fmt.Errorf("function %q: its subscription's filter has %d bytes; the limit is %d: fewer agents "+
				"can have separate functions", f.Name, len(filter), maxFilter)
		}
	}
	if len(home) > 0 && rest == "" {
		return errors.New("no function advances the runs of all other agents: one queue function must name no agents")
	}
	return nil
}

// Filter returns the filter of the function's subscription in Pub/Sub's language. It selects messages about the agents
// of the function by their attribute. It is empty if the function gets every message.
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
	return "NOT (" + anyOf(others) + ")" // this includes messages without the attribute
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
				"receipts", "decisions", "enrolment", "files", "log", "checkpoint", "log-key"}, r.On) {
			return fmt.Errorf("role %q on %q: Terraform does not grant it", r.Role, r.On)
		}
	}
	return nil
}
