package app

import (
	"cmp"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"

	"github.com/countersign-run/countersign/shared/agent/plan"
	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/config"
	"github.com/countersign-run/countersign/shared/engine/chat"
	"github.com/countersign-run/countersign/shared/engine/toolbox"
	"github.com/countersign-run/countersign/shared/tools/mcpfile"
)

// ownNames are the names of tools that are in no set: those of runs with a result schema, of planner sessions, and of
// the MCP server.
var ownNames = []string{tool.FinalAnswer, toolbox.TakeBackTool, plan.ProposeTool, plan.ReflectTool,
	"approval_status", "wait_for_approval", "countersign_run"}

// readServers returns the servers in the file MCP_SERVERS, or nil if it is not set. A server is skipped with a warning
// if its tools' names would collide with others. It returns an error if no server is left.
func readServers(cfg config.Config, tools tool.Set, log *slog.Logger) ([]mcpfile.Server, error) {
	if cfg.MCPServers == "" {
		return nil, nil
	}
	file, err := mcpfile.Read(cfg.MCPServers)
	if err != nil {
		return nil, InServers(cfg, err)
	}
	taken := append(slices.Concat(ownNames, BuiltIn, tools.Names()), chat.ActionPrefix)
	var free []mcpfile.Server
	for _, s := range file.Servers {
		named := slices.IndexFunc(taken, func(name string) bool {
			return strings.HasPrefix(strings.ToLower(name), strings.ToLower(s.Prefix()))
		})
		if named < 0 {
			free = append(free, s)
			continue
		}
		wrong := fault.Invalid(s.At, "another name was expected: %s is a built-in name, and the names of its tools "+
			"begin with %s", taken[named], s.Prefix())
		log.Warn("an MCP server cannot be used", "server", s.Name, "error", s.LeftOut(wrong))
		err = cmp.Or(err, error(wrong))
	}
	if len(free) == 0 && err != nil {
		return nil, InServers(cfg, err)
	}
	return free, nil
}

// InServers returns the error with the names of the file and the field.
func InServers(cfg config.Config, err error) error {
	f := fault.As(err)
	if f.Code == fault.CodeInternal {
		return fmt.Errorf("MCP_SERVERS: %s: %w", filepath.Base(cfg.MCPServers), err)
	}
	at := filepath.Base(cfg.MCPServers)
	if f.Field != "" {
		at += ": " + f.Field
	}
	return fmt.Errorf("MCP_SERVERS: %s: %s", at, f.Message)
}
