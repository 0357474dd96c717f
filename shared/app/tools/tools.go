// Package tools is the part for the built-in tools: it offers them to the model, validates and shows their calls, and
// executes them.
package tools

import (
	"errors"
	"fmt"
	"time"

	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/app"
	"github.com/countersign-run/countersign/shared/config"
	"github.com/countersign-run/countersign/shared/engine/observe"
	"github.com/countersign-run/countersign/shared/engine/quota"
	"github.com/countersign-run/countersign/shared/store/document"
	"github.com/countersign-run/countersign/shared/tools/calendar"
	"github.com/countersign-run/countersign/shared/tools/command"
	"github.com/countersign-run/countersign/shared/tools/container/outlet"
	"github.com/countersign-run/countersign/shared/tools/docker"
	"github.com/countersign-run/countersign/shared/tools/given"
	"github.com/countersign-run/countersign/shared/tools/gmail"
	"github.com/countersign-run/countersign/shared/tools/memory"
	"github.com/countersign-run/countersign/shared/tools/web"
)

// Part has Gmail and Calendar, the terminal tools if TERMINAL is on, the web tools if WEB_TOOLS is on, and the user's
// notes unless MEMORY is off. Containers has the tools that work in containers, if an engine is configured.
var (
	Part       = app.Part{Name: "tools", Tools: add}
	Containers = app.Part{Name: "containers", Uses: []string{"repositories"}, Tools: addContainers}
)

func add(b *app.Builder) error {
	if units := b.Config.GmailUnitsPerMinute; units > 0 {
		b.Env.Services = map[string]*quota.Budget{gmail.Service: quota.New(quota.Config{Store: b.Store, Log: b.Log,
			Now: b.Now, Path: document.ServiceQuotaPath,
			Limits: quota.Limits{Requests: units / gmail.LeastUnits, Tokens: units}})}
	}
	return errors.Join(b.Add(ofGoogle(b.Config, b.Google, b.Now, mailOptions(b))), b.Add(commands(b)),
		b.Add(reading(b)), b.Add(remembering(b)))
}

// Scopes returns the OAuth scopes of Google's tools.
func Scopes(cfg config.Config) (scopes []string) {
	for _, t := range ofGoogle(cfg, nil, nil, gmail.Options{}) {
		scopes = append(scopes, t.Scopes...)
	}
	return scopes
}

// mailOptions returns the options that depend on other parts.
func mailOptions(b *app.Builder) gmail.Options {
	return gmail.Options{Markdown: b.Markdown, Files: &given.Files{Store: b.Store, Objects: b.Env.Files}}
}

func ofGoogle(cfg config.Config, acting app.Accounts, now func() time.Time, mail gmail.Options) tool.Set {
	mail.Mode, mail.Endpoint, mail.Reads = gmail.Mode(cfg.GmailSendMode), cfg.GmailEndpoint, cfg.GmailSearch
	days := calendar.Options{Endpoint: cfg.CalendarEndpoint, Now: now}
	tools := tool.NewSet(gmail.New(acting, mail), calendar.New(acting, days), calendar.NewDelete(acting, days),
		calendar.NewUpdate(acting, days), calendar.NewList(acting, days), calendar.NewFreeBusy(acting, days),
		calendar.NewRespond(acting, days))
	if mail.Mode != gmail.Direct { // direct mode asks for no right to write drafts
		tools[gmail.LeaveDraft] = gmail.NewDraft(acting, mail)
	}
	if cfg.GmailSearch {
		tools[gmail.Search], tools[gmail.Read] = gmail.NewSearch(acting, mail), gmail.NewRead(acting, mail)
	}
	if cfg.GmailModify {
		tools[gmail.Modify] = gmail.NewModify(acting, mail)
		tools[gmail.Modify].Named = true // most users of other agents should not be asked for its scope
	}
	return tools
}

func commands(b *app.Builder) tool.Set {
	if !b.Config.Terminal {
		return nil
	}
	return command.New(command.Options{Store: b.Store, Files: b.Env.Files, Hosts: b.Hosts, Deny: b.Config.TerminalDeny})
}

func reading(b *app.Builder) tool.Set {
	if !b.Config.WebTools {
		return nil
	}
	return web.New(b.Pages, observe.MeasuredModel(b.Env.Model, b.Env.Metrics, b.Now))
}

func remembering(b *app.Builder) tool.Set {
	if !b.Config.Memory {
		return nil
	}
	return memory.New(b.Store)
}

func addContainers(b *app.Builder) error {
	cfg := b.Config
	if !cfg.HasContainers() {
		return nil
	}
	packages, err := outlet.Parse(cfg.Docker.PackageHosts)
	if err != nil {
		return fmt.Errorf("DOCKER_PACKAGE_HOSTS: %w", err)
	}
	o := docker.Options{Images: cfg.Docker.Images, Network: cfg.Docker.Network, Checkouts: b.Checkouts,
		Packages: packages}
	if b.Engine != nil {
		o.Engine = b.Engine
	}
	return b.Add(docker.New(o))
}
