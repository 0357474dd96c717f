// Package mcp is the part of the function that serves the agents of other programs.
package mcp

import (
	"cmp"
	"log/slog"

	"github.com/countersign-run/countersign/shared/api"
	"github.com/countersign-run/countersign/shared/app"
	"github.com/countersign-run/countersign/shared/config"
	"github.com/countersign-run/countersign/shared/loop"
	"github.com/countersign-run/countersign/shared/mcpserver"
	"github.com/countersign-run/countersign/shared/obs"
)

// Part serves MCP over the loop.
var Part = app.Part{Link: func(c *app.Clients) { c.AgentDoor = open }}

func open(cfg config.Config, l *loop.Loop, log *slog.Logger) api.AgentDoor {
	return &mcpserver.Server{Loop: l, PublicURL: cfg.PublicURL, Release: cmp.Or(cfg.Release, obs.BuildRelease()),
		Budget: cfg.FunctionTimeout, Log: log}
}
