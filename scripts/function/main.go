// Command function starts one function as its own process, by the functions framework as the cloud does:
//
//	FUNCTION_TARGET=run PORT=9001 go run ./scripts/function
//
// It listens on 127.0.0.1; PORT 0 takes a free port. In the cloud each function is an archive of its own,
// without the embedded store.
package main

import (
	"fmt"
	"os"

	"github.com/GoogleCloudPlatform/functions-framework-go/funcframework"

	_ "github.com/countersign-run/countersign/functions/actions"
	_ "github.com/countersign-run/countersign/functions/agui"
	_ "github.com/countersign-run/countersign/functions/allowlist"
	_ "github.com/countersign-run/countersign/functions/approvals-pending"
	_ "github.com/countersign-run/countersign/functions/approvals-resolve"
	_ "github.com/countersign-run/countersign/functions/audit"
	_ "github.com/countersign-run/countersign/functions/chat"
	_ "github.com/countersign-run/countersign/functions/chat-results"
	_ "github.com/countersign-run/countersign/functions/connections"
	_ "github.com/countersign-run/countersign/functions/files"
	_ "github.com/countersign-run/countersign/functions/gemini-agent"
	_ "github.com/countersign-run/countersign/functions/mcp"
	_ "github.com/countersign-run/countersign/functions/notify"
	_ "github.com/countersign-run/countersign/functions/passkeys"
	_ "github.com/countersign-run/countersign/functions/plans"
	_ "github.com/countersign-run/countersign/functions/resume"
	_ "github.com/countersign-run/countersign/functions/resume-plan"
	_ "github.com/countersign-run/countersign/functions/resume-terminal"
	_ "github.com/countersign-run/countersign/functions/run"
	_ "github.com/countersign-run/countersign/functions/runs"
	_ "github.com/countersign-run/countersign/functions/stream"
	_ "github.com/countersign-run/countersign/functions/sweep"
	_ "github.com/countersign-run/countersign/functions/terminal-attach"
	_ "github.com/countersign-run/countersign/functions/terminals"
	_ "github.com/countersign-run/countersign/functions/threads"
	_ "github.com/countersign-run/countersign/functions/ui"
	_ "github.com/countersign-run/countersign/functions/web"
	_ "github.com/countersign-run/countersign/shared/app/embedded"
)

const usage = `usage: FUNCTION_TARGET=NAME go run ./scripts/function

Starts one function as the cloud does, on 127.0.0.1. It has no flags: the environment says all.

  FUNCTION_TARGET=run PORT=9001 go run ./scripts/function
`

func main() {
	if len(os.Args) > 1 {
		fmt.Print(usage)
		if help := os.Args[1]; help != "-h" && help != "-help" && help != "--help" {
			os.Exit(2)
		}
		return
	}
	port := os.Getenv("PORT")
	if port == "" {
		port = "8080"
	}
	if os.Getenv("FUNCTION_TARGET") == "" {
		fmt.Fprintln(os.Stderr, "function: FUNCTION_TARGET is not set; it names the function to start, such as run")
		os.Exit(2)
	}
	if err := funcframework.StartHostPort("127.0.0.1", port); err != nil {
		fmt.Fprintln(os.Stderr, "function:", err)
		os.Exit(1)
	}
}
