// Package all has every part, for programs that serve more than one function.
package all

import (
	"github.com/countersign-run/countersign/shared/app"
	"github.com/countersign-run/countersign/shared/app/acts"
	"github.com/countersign-run/countersign/shared/app/containers"
	"github.com/countersign-run/countersign/shared/app/devices"
	_ "github.com/countersign-run/countersign/shared/app/embedded"
	"github.com/countersign-run/countersign/shared/app/enrols"
	"github.com/countersign-run/countersign/shared/app/github"
	"github.com/countersign-run/countersign/shared/app/mcp"
	"github.com/countersign-run/countersign/shared/app/receipts"
	"github.com/countersign-run/countersign/shared/app/reminders"
	"github.com/countersign-run/countersign/shared/app/repositories"
	"github.com/countersign-run/countersign/shared/app/servers"
	"github.com/countersign-run/countersign/shared/app/signs"
	"github.com/countersign-run/countersign/shared/app/terminals"
	"github.com/countersign-run/countersign/shared/app/translog"
	"github.com/countersign-run/countersign/shared/app/webhooks"
)

// Parts are all parts. Telemetry opens first, so it closes last.
var Parts = app.With(acts.Parts, app.Chat, containers.Part, github.Part, github.Token, repositories.Parts,
	terminals.Connect, terminals.Hosts, terminals.Attach, receipts.Part, mcp.Part, webhooks.Part, webhooks.Direct,
	devices.Part, devices.Direct, reminders.Part, servers.Programs, signs.Part, enrols.Part, translog.Part)
