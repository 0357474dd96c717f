package actions

import "github.com/countersign-run/countersign/shared/tools/action"

// own returns the deployment's Go handlers for actions, by name, for every function that knows the declared actions.
// Change it to add your own: scripts/actiongen generates the types of a folder's actions and a struct Does of
// functions. The handlers that own returns are built into the archives (scripts/cookbook/actions does this):
//
//	func own() action.Handlers { return example.Handlers() }
//
// An action in ACTIONS with neither a handler nor an endpoint causes a warning at the start. A handler that no
// plugin.yaml lists stops the start.
func own() action.Handlers { return nil }
