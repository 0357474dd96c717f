package app

import (
	"maps"

	"github.com/countersign-run/countersign/shared/agent/model"
	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/api"
	"github.com/countersign-run/countersign/shared/config"
	"github.com/countersign-run/countersign/shared/telemetry/obs"
)

// Health is the body of GET /health.
type Health struct {
	OK      bool     `json:"ok"`
	Release string   `json:"release"`
	Store   string   `json:"store"`
	Queue   string   `json:"queue"`
	Model   string   `json:"model,omitempty"`
	Tools   []string `json:"tools,omitempty"`
}

// executableTools returns the tools without the actions that have no handler or binding.
func executableTools(tools tool.Set, actions api.DeclaredActions) tool.Set {
	if actions == nil {
		return tools
	}
	set := maps.Clone(tools)
	for _, name := range actions.Unbound() {
		delete(set, actions.Tool(name).Name)
	}
	return set
}

func health(cfg config.Config, mdl model.Model, t tool.Set) Health {
	h := Health{true, cfg.Release, cfg.Store, cfg.Queue, "", t.Names()}
	if h.Release == "" {
		h.Release = obs.BuildRelease()
	}
	if mdl != nil {
		h.Model = mdl.Name()
	}
	return h
}
