// Package gemini is the part of the functions that call the model.
package gemini

import (
	"context"

	"github.com/countersign-run/countersign/shared/app"
	"github.com/countersign-run/countersign/shared/config"
	"github.com/countersign-run/countersign/shared/model"
	"github.com/countersign-run/countersign/shared/model/gemini"
)

// Part calls Gemini.
var Part = app.Part{Needs: config.Model, Link: func(c *app.Clients) { c.Model = open }}

// open opens the model, or returns nil where none is configured: config.Load has made sure that a function that needs
// one has one.
func open(ctx context.Context, cfg config.Config) (model.Model, error) {
	if !cfg.GeminiAPIKey.IsSet() && cfg.VertexProject == "" {
		return nil, nil
	}
	return New(ctx, cfg)
}

// New returns the model that the configuration names.
func New(ctx context.Context, cfg config.Config) (*gemini.Model, error) {
	return gemini.New(ctx, gemini.Config{APIKey: cfg.GeminiAPIKey.Reveal(), Model: cfg.GeminiModel,
		BaseURL:       cfg.GeminiBaseURL,
		VertexProject: cfg.VertexProject, VertexLocation: cfg.VertexLocation, VertexEndpoint: cfg.VertexEndpoint})
}
