// Package mcp is the part that serves agents of other programs.
package mcp

import (
	"cmp"

	"github.com/countersign-run/countersign/shared/api/mcpserver"
	"github.com/countersign-run/countersign/shared/app"
	"github.com/countersign-run/countersign/shared/telemetry/obs"
)

// Part serves MCP over the loop.
var Part = app.Part{Name: "mcp", Serve: serve}

func serve(b *app.Builder) error {
	cfg := b.Config
	b.API.AgentDoor = &mcpserver.Server{Loop: b.API.Loop, PublicURL: cfg.PublicURL,
		Release: cmp.Or(cfg.Release, obs.BuildRelease()), Budget: cfg.FunctionTimeout, Log: b.Log}
	return nil
}
