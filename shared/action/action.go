// Package action is the operator's own actions, declared in files (seed 001 Q8): a plugin.yaml lists them, and a .jay-action
// file says of one what it takes, what it answers, whether it changes anything, and who does it: an HTTP endpoint of the
// operator or a Go handler. An action that has such a file is a tool of the agent; one without is called by its name alone
// and never shown to the model. Whatever is wrong in a file stops the start, with the file, the line and what was expected.
package action

import (
	"regexp"
	"strings"
	"time"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/countersign-run/countersign/shared/tool"
)

// Prefix is what the model-facing names of actions begin with.
const Prefix = "action_"

var (
	validName  = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_.]{0,54}$`)
	validField = regexp.MustCompile(`^[A-Za-z_$][A-Za-z0-9_$]{0,63}$`)
)

// Action is one entry of a plugin.yaml.
type Action struct {
	Name     string
	Plugin   string
	File     string    // the plugin.yaml that lists it, within the folder
	Line     int       // where in it
	Metadata *Metadata // nil: it is called by its name alone
}

// Metadata is what a .jay-action file says.
type Metadata struct {
	File        string // within the folder
	Description string
	Input       *jsonschema.Schema // of type object
	Output      *jsonschema.Schema // nil: any JSON
	SideEffect  bool
	Approval    tool.Approval
	Preview     []Shown  // how its arguments are shown; those that are not listed follow under their own names
	Binding     *Binding // nil: a Go handler does it
}

// Shown is one argument as people read it.
type Shown struct{ Label, Field string }

// Binding is an HTTP endpoint of the operator.
type Binding struct {
	Method           string
	URL              string // fixed: no argument changes it
	Timeout          time.Duration
	MaxResponseBytes int64
	Idempotent       bool  // whether a request that comes again under its Idempotency-Key is carried out once
	RefusedBy        []int // statuses of 4xx by which the endpoint says that nothing was done, where they would not say so
	DerivedKey       bool  // whether it knows a key of its own (DeriveKey) and not the operator's
}

// GeminiName is the name by which the model knows the action.
func GeminiName(name string) string { return Prefix + strings.ReplaceAll(name, ".", "_") }
