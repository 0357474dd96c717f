// Package gemini is the part that calls the model.
package gemini

import (
	"context"

	"github.com/countersign-run/countersign/shared/agent/model/gemini"
	"github.com/countersign-run/countersign/shared/app"
	"github.com/countersign-run/countersign/shared/config"
	"github.com/countersign-run/countersign/shared/engine/quota"
)

// Part calls Gemini, and the other models that the configuration names.
var Part = app.Part{Name: "model", Needs: config.Model, Open: open}

// open opens the model if one is configured. config.Load ensures that a function that needs a model has one.
func open(ctx context.Context, b *app.Builder) error {
	if !b.Config.GeminiAPIKey.IsSet() && b.Config.VertexProject == "" {
		return nil
	}
	m, err := New(ctx, b.Config)
	if err != nil {
		return err
	}
	b.Env.Model, b.Env.Fallbacks, b.Env.Models = m, b.Config.GeminiFallbackModels, b.Config.GeminiModels
	b.Env.Quota = quota.New(quota.Config{Store: b.Store, Log: b.Log, Now: b.Now, Limits: quota.Limits{
		Requests: b.Config.ModelRequestsPerMinute, Tokens: b.Config.ModelTokensPerMinute}})
	return nil
}

// New returns the model that the configuration names.
func New(ctx context.Context, cfg config.Config) (*gemini.Model, error) {
	return gemini.New(ctx, gemini.Config{APIKey: cfg.GeminiAPIKey.Reveal(), Model: cfg.GeminiModel,
		BaseURL:       cfg.GeminiBaseURL,
		VertexProject: cfg.VertexProject, VertexLocation: cfg.VertexLocation, VertexEndpoint: cfg.VertexEndpoint})
}
