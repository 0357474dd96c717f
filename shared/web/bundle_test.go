package web_test

import (
	"flag"
	"testing"

	"github.com/evanw/esbuild/pkg/api"

	"github.com/countersign-run/countersign/shared/testkit/bundle"
)

var update = flag.Bool("update", false, "write the bundles of the console's modules and style sheets")

// TestBundlesFresh compares the files in site/bundle with the modules and style sheets that they are built from. The
// receipts page has its own bundle, and so has each part of the console that is loaded when it is first used.
func TestBundlesFresh(t *testing.T) {
	for _, e := range []api.EntryPoint{{InputPath: "./site/app.js", OutputPath: "console"},
		{InputPath: "./site/verify.js", OutputPath: "verify"}, {InputPath: "./site/intake.js", OutputPath: "intake"},
		{InputPath: "./site/notes.js", OutputPath: "notes"}, {InputPath: "./site/several.js", OutputPath: "several"},
		{InputPath: "./site/tokens.js", OutputPath: "tokens"}, {InputPath: "./site/keys.js", OutputPath: "keys"},
		{InputPath: "./site/passkeys.js", OutputPath: "passkeys"},
		{InputPath: "site/all.css", OutputPath: "console"}, {InputPath: "site/several.css", OutputPath: "several"}} {
		bundle.Hold(t, "site/bundle", "widget/site", *update, e)
	}
}
