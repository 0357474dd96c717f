// Package all is Countersign with every part, for programs that are not one function.
package all

import (
	"github.com/countersign-run/countersign/shared/app"
	"github.com/countersign-run/countersign/shared/app/accounts"
	"github.com/countersign-run/countersign/shared/app/actions"
	"github.com/countersign-run/countersign/shared/app/agents"
	"github.com/countersign-run/countersign/shared/app/containers"
	"github.com/countersign-run/countersign/shared/app/devices"
	_ "github.com/countersign-run/countersign/shared/app/embedded"
	"github.com/countersign-run/countersign/shared/app/fetch"
	"github.com/countersign-run/countersign/shared/app/gemini"
	"github.com/countersign-run/countersign/shared/app/github"
	"github.com/countersign-run/countersign/shared/app/mcp"
	"github.com/countersign-run/countersign/shared/app/metrics"
	"github.com/countersign-run/countersign/shared/app/pubsub"
	"github.com/countersign-run/countersign/shared/app/receipts"
	"github.com/countersign-run/countersign/shared/app/reminders"
	"github.com/countersign-run/countersign/shared/app/repositories"
	"github.com/countersign-run/countersign/shared/app/servers"
	"github.com/countersign-run/countersign/shared/app/terminals"
	"github.com/countersign-run/countersign/shared/app/tools"
	"github.com/countersign-run/countersign/shared/app/traces"
	"github.com/countersign-run/countersign/shared/app/webhooks"
)

// Parts are all of them.
var Parts = app.With(app.Chat, pubsub.Part, gemini.Part, tools.Part, actions.Part, agents.Part, accounts.Part,
	containers.Part, github.Part, github.Token, repositories.Part, fetch.Part, terminals.Hosts, terminals.Commands,
	terminals.Attach, receipts.Part, mcp.Part, webhooks.Part, webhooks.Direct,
	devices.Part, devices.Direct, reminders.Part, servers.Programs, traces.Part, metrics.Part)
