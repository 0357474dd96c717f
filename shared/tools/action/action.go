// Package action implements the operator's own actions, declared in files (seed 001 Q8). A plugin.yaml lists them, and
// a .jay-action file describes one: its input, its output, whether it has a side effect, and the HTTP endpoint of the
// operator or the Go handler that runs it. An action with a file is a tool of the agent. An action without a file is
// called only by its name; the model never sees it. A mistake in a file is an error at the start, with the file, the
// line and the expected form.
package action

import (
	"strings"
	"time"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/lazyregexp"
)

// Prefix is the start of each action's name for the model.
const Prefix = "action_"

var (
	validName  = lazyregexp.New(`^[A-Za-z][A-Za-z0-9_.-]{0,54}$`)
	validField = lazyregexp.New(`^[\p{L}_$][\p{L}\p{M}\p{N}_$.-]*$`) // of at most maxField characters
)

// An Action is one entry of a plugin.yaml.
type Action struct {
	Name     string
	Plugin   string
	File     string    // the plugin.yaml that lists it, within the folder
	Line     int       // line of the entry
	Named    bool      // the plugin offers it only to agents whose files name it
	Metadata *Metadata // nil: the action can be called only by its name
}

// Metadata is the content of a .jay-action file.
type Metadata struct {
	File        string // within the folder
	Description string
	Input       *jsonschema.Schema // of type object
	Output      *jsonschema.Schema // nil: any JSON
	SideEffect  bool
	Class       tool.Class
	Approval    tool.Approval
	Timeout     time.Duration // of one call; 0: the agent's timeout
	Final       bool          // a successful call ends the run
	Untrusted   bool          // its results are text from strangers
	Targets     []Reached     // the arguments that name the recipients or things that a call reaches
	Pinned      []string      // the arguments that are not free text; nil: all
	Title       []Piece       // the parts of a preview's title; empty: the first sentence of the description
	Preview     []Shown       // the arguments to show first; the others follow under their titles or names
	Binding     *Binding      // nil: a Go handler runs the action

	notes []string // keys of the file that this package ignores
}

// Reached names an argument that contains targets of one kind. Its value, or each element of its list, is a target.
type Reached struct {
	Kind  tool.TargetKind
	Field string
}

// Shown is an argument in a preview, with its label, and with display names for its values if the file has some.
type Shown struct {
	Label, Field string
	Names        map[string]string // display names by value; nil: the values themselves are shown
}

// A Piece of a preview's title is fixed text, or the value of a required argument.
type Piece struct{ Text, Field string }

// A Binding is the operator's HTTP endpoint that runs an action.
type Binding struct {
	Method           string
	URL              string // fixed; no argument changes it
	Timeout          time.Duration
	MaxResponseBytes int64
	Idempotent       bool  // whether the endpoint runs a repeated Idempotency-Key only once
	RefusedBy        []int // additional 4xx statuses that mean that nothing was done
	DerivedKey       bool  // whether it has its own key (DeriveKey) instead of the operator's
}

// GeminiName returns the action's name for the model.
func GeminiName(name string) string {
	return Prefix + strings.NewReplacer(".", "_", "-", "_").Replace(name)
}
