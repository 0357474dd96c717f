package unit

import (
	"slices"
	"strings"

	"github.com/countersign-run/countersign/shared/agent/registry"
	"github.com/countersign-run/countersign/shared/base/fault"
)

// CheckModel checks that a request to the agent may choose the model: the agent's own, or one that the operator offers.
func (env *Env) CheckModel(agent *registry.Agent, name string) error {
	own := agent.Model.Name
	if own == "" && env.Model != nil {
		own = env.Model.Name()
	}
	offered := slices.Clone(env.Models)
	if !slices.Contains(offered, own) {
		offered = append([]string{own}, offered...)
	}
	switch {
	case slices.Contains(offered, name):
		return nil
	case len(offered) == 1:
		return fault.Invalid("model", "must be %s; no other model is offered", own)
	}
	return fault.Invalid("model", "must be one of %s", strings.Join(offered, ", "))
}

// ModelFor returns the name of the model that a run of the agent asks first: the chosen one, while the operator offers
// it, or else the agent's own. It is empty for the default of the model's client.
func (env *Env) ModelFor(agent *registry.Agent, chosen string) string {
	own := ""
	if agent != nil {
		own = agent.Model.Name
	}
	if chosen != "" && slices.Contains(env.Models, chosen) {
		return chosen
	}
	return own
}
