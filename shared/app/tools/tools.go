// Package tools is the part of the functions that know the built-in tools: to offer them to the model, to validate and
// show their calls, and to carry them out.
package tools

import (
	"time"

	"github.com/countersign-run/countersign/shared/app"
	"github.com/countersign-run/countersign/shared/config"
	"github.com/countersign-run/countersign/shared/store"
	"github.com/countersign-run/countersign/shared/tool"
	"github.com/countersign-run/countersign/shared/tools/calendar"
	"github.com/countersign-run/countersign/shared/tools/command"
	"github.com/countersign-run/countersign/shared/tools/gmail"
)

// Part has Gmail and Calendar, and where terminals are on the tools that work on them.
var Part = app.Part{Link: func(c *app.Clients) { c.Tools, c.Commands = set, commands }}

func set(cfg config.Config, acting app.Accounts, now func() time.Time) tool.Set {
	return tool.NewSet(
		gmail.New(acting, gmail.Options{Mode: gmail.Mode(cfg.GmailSendMode), Endpoint: cfg.GmailEndpoint}),
		calendar.New(acting, calendar.Options{Endpoint: cfg.CalendarEndpoint, Now: now}),
	)
}

func commands(cfg config.Config, st store.Store, hosts app.Hosts) tool.Set {
	if !cfg.Terminal {
		return nil
	}
	return command.New(command.Options{Store: st, Hosts: hosts, Deny: cfg.TerminalDeny})
}
