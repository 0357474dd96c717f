// Package chatclients names third-party chat clients, and a verifier of webhooks, for tests that run them.
package chatclients

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/countersign-run/countersign/shared/testkit/emulate"
	"github.com/countersign-run/countersign/shared/testkit/realpart"
)

// The releases of the AI SDK, as files that a script imports.
const (
	AI7 = "ai/dist/index.js"
	AI6 = "ai-6/dist/index.mjs"
)

// AGUI is the client of AG-UI, as a file that a script imports.
const AGUI = "@ag-ui/client/dist/index.mjs"

// CopilotKit is CopilotKit's UI for React, as a file that a script imports.
const CopilotKit = "@copilotkit/react-core/dist/v2/index.mjs"

// StandardWebhooks is the file of the library that receivers use to verify webhooks.
const StandardWebhooks = "standardwebhooks/dist/index.js"

// loads imports the clients.
var loads = realpart.ChatClients.Tried(func(t *realpart.Trial) {
	dir := filepath.Join(os.Getenv("CHAT_CLIENTS_DIR"), "node_modules")
	for _, module := range []string{AI7, AI6, AGUI, StandardWebhooks} {
		t.Run(exec.Command(emulate.NodePath(), "--input-type=module", "--eval",
			fmt.Sprintf("await import(%q)", filepath.Join(dir, module))))
	}
})

// bundles runs the bundler for pages.
var bundles = realpart.ChatClients.Tried(func(t *realpart.Trial) {
	t.Run(exec.Command(bundler(filepath.Join(os.Getenv("CHAT_CLIENTS_DIR"), "node_modules")), "--version"))
})

// bundler returns the path of esbuild.
func bundler(modules string) string {
	return filepath.Join(modules, "@esbuild", "linux-x64", "bin", "esbuild")
}

// Modules returns the directory of the installed npm modules, which CHAT_CLIENTS_DIR names and .ci/run installs. If
// they are missing, the test is skipped, or fails if REQUIRE_ALL is 1.
func Modules(t testing.TB) string {
	t.Helper()
	realpart.ChatClients.Take(t)
	dir := filepath.Join(os.Getenv("CHAT_CLIENTS_DIR"), "node_modules")
	_, err := os.Stat(filepath.Join(dir, CopilotKit)) // this module was installed last
	if err == nil && os.Getenv("CHAT_CLIENTS_DIR") != "" {
		return dir
	}
	realpart.ChatClients.Absent(t, "they are not installed where CHAT_CLIENTS_DIR says")
	return ""
}

// Bundle writes the page's script with all of its imports to a file for browsers, and its styles to a file next to
// it, without fonts. more are additional flags of esbuild, such as aliases of modules.
func Bundle(t testing.TB, script, out string, more ...string) {
	t.Helper()
	modules := Modules(t)
	bundles(t)
	args := append(more, script, "--bundle", "--format=esm", "--jsx=automatic", "--outfile="+out, "--log-level=error",
		`--define:process.env.NODE_ENV="production"`, "--loader:.ttf=empty", "--loader:.woff=empty", "--loader:.woff2=empty")
	cmd := exec.CommandContext(t.Context(), bundler(modules), args...)
	cmd.Env = append(os.Environ(), "NODE_PATH="+modules)
	if said, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
}
