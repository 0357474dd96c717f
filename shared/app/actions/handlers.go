package actions

import "github.com/countersign-run/countersign/shared/tools/action"

// own returns the actions that Go code of the deployment carries out, by their names, in every function that knows the
// declared actions. This is the place to plug it in: scripts/actiongen writes the types of a folder's actions and a
// struct Does of functions, and what that returns here is built into the archives (scripts/cookbook/actions is plugged
// in this way):
//
//	func own() action.Handlers { return example.Handlers() }
//
// An action that is listed in ACTIONS and that neither code nor an endpoint carries out is warned about at the start; a
// handler that no plugin.yaml lists stops it.
func own() action.Handlers { return nil }
