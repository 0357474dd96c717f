package widget_test

import (
	"flag"
	"testing"

	"github.com/evanw/esbuild/pkg/api"

	"github.com/countersign-run/countersign/shared/testkit/bundle"
)

var update = flag.Bool("update", false, "write the bundles of the widget's modules")

// TestBundlesFresh compares the files in bundle with the modules that they are built from: the modules that pages
// import, those that the chat loads on demand, and those that several of them share.
func TestBundlesFresh(t *testing.T) {
	entries := []api.EntryPoint{{InputPath: "./site/client.d.ts", OutputPath: "client.d"}}
	for _, name := range []string{"gemini-chat", "automation", "client", "launcher", "examples", "approvals", "card",
		"editor", "files", "request", "dom", "clock"} {
		entries = append(entries, api.EntryPoint{InputPath: "./site/" + name + ".js", OutputPath: name})
	}
	bundle.Hold(t, "bundle", "site", *update, entries...)
}
