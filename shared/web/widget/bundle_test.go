package widget_test

import (
	"flag"
	"testing"

	"github.com/evanw/esbuild/pkg/api"

	"github.com/countersign-run/countersign/shared/testkit/bundle"
)

var update = flag.Bool("update", false, "write the bundles of the widget's modules")

// TestTheBundlesAreFresh holds the files in bundle to the modules that they are made of: what pages import, what the
// chat loads when it needs it, and what several of these share.
func TestTheBundlesAreFresh(t *testing.T) {
	entries := []api.EntryPoint{{InputPath: "./site/client.d.ts", OutputPath: "client.d"}}
	for _, name := range []string{"gemini-chat", "automation", "client", "launcher", "examples", "approvals", "card",
		"editor", "request", "dom", "clock"} {
		entries = append(entries, api.EntryPoint{InputPath: "./site/" + name + ".js", OutputPath: name})
	}
	bundle.Hold(t, "bundle", "site", *update, entries...)
}
