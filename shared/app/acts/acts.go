// Package acts is the bundle for functions that advance runs of the operator's agents and execute their calls.
package acts

import (
	"github.com/countersign-run/countersign/shared/app"
	"github.com/countersign-run/countersign/shared/app/accounts"
	"github.com/countersign-run/countersign/shared/app/agents"
	"github.com/countersign-run/countersign/shared/app/fetch"
	"github.com/countersign-run/countersign/shared/app/files"
	"github.com/countersign-run/countersign/shared/app/moves"
	"github.com/countersign-run/countersign/shared/app/tools"
)

// Parts calls the model, acts in users' Google accounts, and reads uploaded files and the web.
var Parts = app.Part{Of: []app.Part{moves.Parts, tools.Part, agents.Part, accounts.Part, files.Part, fetch.Part}}
