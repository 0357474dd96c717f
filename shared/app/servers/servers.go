// Package servers is the part for the tools of the operator's MCP servers: it offers them to the model, evaluates and
// shows their calls, and executes them.
package servers

import (
	"log/slog"
	"path/filepath"

	"github.com/countersign-run/countersign/shared/app"
	"github.com/countersign-run/countersign/shared/base/netguard"
	"github.com/countersign-run/countersign/shared/config"
	"github.com/countersign-run/countersign/shared/tools/mcpfile"
	"github.com/countersign-run/countersign/shared/tools/mcptools"
)

// Part has the servers in the file MCP_SERVERS that use HTTP.
var Part = part(false)

// Programs is Part for a program on one machine, which can also start servers as programs.
var Programs = part(true)

func part(programs bool) app.Part {
	options := func(cfg config.Config) mcptools.Options {
		return mcptools.Options{Programs: programs, HTTP: netguard.Client(cfg.OnCloudRun), Lookup: cfg.Referenced}
	}
	return app.Part{
		Name: "servers",
		Servers: func(b *app.Builder, file []mcpfile.Server) error {
			if file == nil {
				return nil
			}
			o := options(b.Config)
			o.Now, o.Log = b.Now, b.Log
			s, err := mcptools.Open(file, o)
			if err != nil {
				return app.InServers(b.Config, err)
			}
			b.Env.Dynamic = s
			b.Closes(s)
			return nil
		},
		Check: func(cfg config.Config, log *slog.Logger) error {
			if cfg.MCPServers == "" {
				return nil
			}
			file, err := mcpfile.Read(cfg.MCPServers)
			if err == nil {
				o := options(cfg)
				o.Log = slog.New(slog.DiscardHandler) // the start itself logs the warnings
				err = mcptools.Check(file.Servers, o)
			}
			if err != nil {
				return app.InServers(cfg, err)
			}
			for _, note := range file.Notes {
				log.Warn("MCP_SERVERS", "file", filepath.Base(cfg.MCPServers), "note", note)
			}
			return nil
		},
	}
}
