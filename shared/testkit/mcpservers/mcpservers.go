// Package mcpservers provides the commands of the official servers of the Model Context Protocol, and of popular
// clients, for tests.
package mcpservers

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/countersign-run/countersign/shared/testkit/realpart"
)

// Everything returns the command of the server that uses every feature of the protocol.
func Everything(t testing.TB) []string { return command(t, "server-everything", "stdio") }

// Filesystem returns the command of the server that reads and writes files within a directory.
func Filesystem(t testing.TB, dir string) []string { return command(t, "server-filesystem", dir) }

// EverythingOverHTTP returns the command of the same server over HTTP. It listens on the port in the environment
// variable PORT.
func EverythingOverHTTP(t testing.TB) []string {
	return command(t, "server-everything", "streamableHttp")
}

// Conformance returns the command of the protocol's official conformance runner, which needs Node 22 or later. Append
// its arguments: server --url URL --scenario NAME.
func Conformance(t testing.TB, node string) []string {
	c := command(t, "conformance")
	return append([]string{node}, c[1:]...)
}

// Client returns the command of a script, and the environment variable SDK with the directory of the official client's
// modules, which are installed with the servers.
func Client(t testing.TB, script string) (command []string, env string) {
	c := Everything(t)
	of := filepath.Join(filepath.Dir(c[1]), "..", "..", "sdk", "dist", "esm")
	return []string{c[0], script}, "SDK=" + of
}

// Inspector returns the command of the protocol's inspector without its web page. It needs Node 22 or later. Append its
// arguments: URL --transport http --method METHOD.
func Inspector(t testing.TB, node string) []string {
	c := installed(t, "@modelcontextprotocol/inspector/clients/launcher/build/index.js")
	return []string{node, c[1], "--cli"}
}

// GeminiCLI returns the command of Google's coding agent. It calls Gemini at GOOGLE_GEMINI_BASE_URL.
func GeminiCLI(t testing.TB) []string { return installed(t, "@google/gemini-cli/bundle/gemini.js") }

// command returns the command of a server that npm (see .ci/run) has installed in MCP_SERVERS_DIR. If it is missing,
// the test is skipped, or fails if REQUIRE_ALL is 1.
func command(t testing.TB, name string, args ...string) []string {
	t.Helper()
	return append(installed(t, "@modelcontextprotocol/"+name+"/dist/index.js"), args...)
}

// loads starts a server, which ends when its input ends.
var loads = realpart.MCPServers.Tried(func(t *realpart.Trial) {
	t.Run(exec.Command("node", path(everything), "stdio"))
})

// everything is the script of a server.
const everything = "@modelcontextprotocol/server-everything/dist/index.js"

// path returns the path of a script that npm has installed.
func path(name string) string {
	return filepath.Join(os.Getenv("MCP_SERVERS_DIR"), "node_modules", filepath.FromSlash(name))
}

// installed returns the command of an installed script.
func installed(t testing.TB, name string) []string {
	t.Helper()
	realpart.MCPServers.Take(t)
	script := path(name)
	node, err := exec.LookPath("node")
	if err == nil {
		_, err = os.Stat(script)
	}
	if err == nil && os.Getenv("MCP_SERVERS_DIR") != "" {
		loads(t)
		return []string{node, script}
	}
	realpart.MCPServers.Absent(t, "they are not installed where MCP_SERVERS_DIR says, or Node is missing")
	return nil
}
