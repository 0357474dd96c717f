// Package mcpservers names the official servers of the Model Context Protocol, and clients that people use, for tests
// that run them.
package mcpservers

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/countersign-run/countersign/shared/testkit/realpart"
)

// Everything returns the command of the server that has one of each thing that the protocol knows.
func Everything(t testing.TB) []string { return command(t, "server-everything", "stdio") }

// Filesystem returns the command of the server that reads and writes files within a directory.
func Filesystem(t testing.TB, dir string) []string { return command(t, "server-filesystem", dir) }

// EverythingOverHTTP returns the command of the same server as one of HTTP, which PORT in its environment tells where
// to listen.
func EverythingOverHTTP(t testing.TB) []string {
	return command(t, "server-everything", "streamableHttp")
}

// Conformance returns the command of the protocol's official conformance runner, for the Node of version 22 or later
// that it needs. What follows is its own: server --url URL --scenario NAME.
func Conformance(t testing.TB, node string) []string {
	c := command(t, "conformance")
	return append([]string{node}, c[1:]...)
}

// Client returns the command of a script, and the variable SDK with the directory of the modules of the official
// client, which are installed with the servers.
func Client(t testing.TB, script string) (command []string, env string) {
	c := Everything(t)
	of := filepath.Join(filepath.Dir(c[1]), "..", "..", "sdk", "dist", "esm")
	return []string{c[0], script}, "SDK=" + of
}

// Inspector returns the command of the protocol's inspector without a page, for the Node of version 22 or later that it
// needs. What follows is its own: URL --transport http --method METHOD.
func Inspector(t testing.TB, node string) []string {
	c := installed(t, "@modelcontextprotocol/inspector/clients/launcher/build/index.js")
	return []string{node, c[1], "--cli"}
}

// GeminiCLI returns the command of a coding agent that many have: Google's, which asks a Gemini where
// GOOGLE_GEMINI_BASE_URL says.
func GeminiCLI(t testing.TB) []string { return installed(t, "@google/gemini-cli/bundle/gemini.js") }

// command returns the command of a server that npm has installed, as .ci/run does, in the directory that
// MCP_SERVERS_DIR names. A test on a machine that lacks it is skipped, or fails where REQUIRE_ALL is 1.
func command(t testing.TB, name string, args ...string) []string {
	t.Helper()
	return append(installed(t, "@modelcontextprotocol/"+name+"/dist/index.js"), args...)
}

// loads starts a server, which ends with its input.
var loads = realpart.MCPServers.Tried(func(t *realpart.Trial) {
	t.Run(exec.Command("node", path(everything), "stdio"))
})

// everything is the script of a server.
const everything = "@modelcontextprotocol/server-everything/dist/index.js"

// path returns where npm has installed a script.
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
