// Package tools is the part of the functions that know the built-in tools: to offer them to the model, to validate and
// show their calls, and to carry them out.
package tools

import (
	"time"

	"github.com/countersign-run/countersign/shared/app"
	"github.com/countersign-run/countersign/shared/config"
	"github.com/countersign-run/countersign/shared/model"
	"github.com/countersign-run/countersign/shared/store"
	"github.com/countersign-run/countersign/shared/tool"
	"github.com/countersign-run/countersign/shared/tools/calendar"
	"github.com/countersign-run/countersign/shared/tools/command"
	"github.com/countersign-run/countersign/shared/tools/docker"
	"github.com/countersign-run/countersign/shared/tools/gmail"
	"github.com/countersign-run/countersign/shared/tools/web"
)

// Part has Gmail and Calendar, where terminals are on the tools that work on them, where the web is on those that read
// it, and where there is an engine for containers those that work in them.
var Part = app.Part{Link: func(c *app.Clients) {
	c.Tools, c.Commands, c.Web, c.Containers = set, commands, reading, containers
}}

// Containers says that calls in containers are judged and shown: it is told of what these are made. Which engine runs
// them the part containers asks.
var Containers = app.Part{}

func set(cfg config.Config, acting app.Accounts, now func() time.Time) tool.Set {
	mail := gmail.Options{Mode: gmail.Mode(cfg.GmailSendMode), Endpoint: cfg.GmailEndpoint}
	days := calendar.Options{Endpoint: cfg.CalendarEndpoint, Now: now}
	tools := tool.NewSet(gmail.New(acting, mail), calendar.New(acting, days), calendar.NewDelete(acting, days),
		calendar.NewList(acting, days))
	if cfg.GmailSearch {
		tools[gmail.Search] = gmail.NewSearch(acting, mail)
	}
	return tools
}

func commands(cfg config.Config, st store.Store, hosts app.Hosts) tool.Set {
	if !cfg.Terminal {
		return nil
	}
	return command.New(command.Options{Store: st, Hosts: hosts, Deny: cfg.TerminalDeny})
}

func reading(cfg config.Config, pages web.Fetcher, mdl model.Model) tool.Set {
	if !cfg.WebTools {
		return nil
	}
	return web.New(pages, mdl)
}

func containers(cfg config.Config, engine app.Engine, checkouts docker.Source) tool.Set {
	if cfg.DockerHost == "" || len(cfg.DockerImages) == 0 {
		return nil
	}
	o := docker.Options{Images: cfg.DockerImages, Network: cfg.DockerNetwork, Checkouts: checkouts}
	if engine != nil {
		o.Engine = engine
	}
	return docker.New(o)
}
