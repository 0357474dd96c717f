package countersign

import (
	"context"
	"os"
	"sync"

	"github.com/countersign-run/countersign/shared/agent/model"
	"github.com/countersign-run/countersign/shared/agent/model/gemini"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/config"
	"github.com/countersign-run/countersign/shared/countersign/internal/bridge"
)

// Provider is the model's service: [Gemini], or a script of package offline or agenttest.
type Provider interface{ bridge.Provider }

// GeminiConfig names the service. Either APIKey or VertexProject is required; VertexProject takes precedence.
type GeminiConfig struct {
	APIKey  string // for the Gemini Developer API
	BaseURL string // the URL of another server with the Gemini protocol; empty: Google's

	VertexProject  string // the ID of a Google Cloud project, used with Application Default Credentials
	VertexLocation string // empty: global
	VertexEndpoint string // a host or a URL; empty: the location's default
}

type geminiProvider struct{ bridge.Asked }

// Gemini returns the provider for Gemini. Without a provider, the environment configures the agent in the same way as
// the functions: GEMINI_API_KEY, the file config/.gemini.yaml, or VERTEX_AI_PROJECT_ID and VERTEX_AI_LOCATION.
func Gemini(c GeminiConfig) Provider {
	check := func() error {
		if c.APIKey == "" && c.VertexProject == "" {
			return noKey("Provider")
		}
		return nil
	}
	open := func(ctx context.Context, name string) (model.Model, error) {
		return gemini.New(ctx, gemini.Config{APIKey: c.APIKey, Model: name, BaseURL: c.BaseURL,
			VertexProject: c.VertexProject, VertexLocation: c.VertexLocation, VertexEndpoint: c.VertexEndpoint})
	}
	return geminiProvider{bridge.Asked{Check: check, Open: open}}
}

// noKey returns the error of an agent without a model.
func noKey(field string) error {
	return fault.Invalid(field, "a key is required: set GEMINI_API_KEY, or apiKey in %s, or VERTEX_AI_PROJECT_ID and "+
		"VERTEX_AI_LOCATION", config.FilePath)
}

// environment returns the provider that the environment configures.
func environment() (bridge.Asked, error) {
	c, err := config.LoadModel(os.Getenv)
	if err != nil {
		return bridge.Asked{}, err
	}
	p := bridge.Of(Gemini(GeminiConfig{APIKey: c.GeminiAPIKey.Reveal(), BaseURL: c.GeminiBaseURL,
		VertexProject: c.VertexProject, VertexLocation: c.VertexLocation, VertexEndpoint: c.VertexEndpoint}))
	open := p.Open
	p.Fallbacks, p.Models = c.GeminiFallbackModels, c.GeminiModels
	p.Open = func(ctx context.Context, name string) (model.Model, error) {
		if name == "" {
			name = c.GeminiModel
		}
		return open(ctx, name)
	}
	return p, nil
}

// lazyModel opens the provider's model for the first request. After an error the next request tries again.
type lazyModel struct {
	provider bridge.Asked
	name     string // Options.Model

	mu   sync.Mutex
	open model.Model
}

// Name implements [model.Model]. The name of the provider's default model is known once the model is open.
func (m *lazyModel) Name() string {
	if m.name != "" {
		return m.name
	}
	if open, err := m.opened(context.Background()); err == nil {
		return open.Name()
	}
	return ""
}

// Service returns the service of the provider's model (model.SignedBy). It opens the model.
func (m *lazyModel) Service() string {
	if open, err := m.opened(context.Background()); err == nil {
		return model.Wrapped{Model: open}.Service()
	}
	return ""
}

// Generate implements [model.Model].
func (m *lazyModel) Generate(ctx context.Context, req model.Request, delta func(string)) (*model.Reply, error) {
	if err := awaitReader(ctx); err != nil {
		return nil, err
	}
	open, err := m.opened(ctx)
	if err != nil {
		return nil, err
	}
	return open.Generate(ctx, req, delta)
}

func (m *lazyModel) opened(ctx context.Context) (model.Model, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.open != nil {
		return m.open, nil
	}
	open, err := m.provider.Open(context.WithoutCancel(ctx), m.name) // the client outlives the request
	if err == nil {
		m.open = open
	}
	return open, err
}
