package tools_test

import (
	"slices"
	"testing"
	"time"

	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/app"
	"github.com/countersign-run/countersign/shared/app/repositories"
	"github.com/countersign-run/countersign/shared/app/tools"
	"github.com/countersign-run/countersign/shared/config"
	"github.com/countersign-run/countersign/shared/engine/unit"
)

// TestBuiltInToolNames compares the list of names with the tools, because functions that serve pages have only the
// names.
func TestBuiltInToolNames(t *testing.T) {
	b := &app.Builder{Now: time.Now, Env: unit.Env{Tools: tool.Set{}}, Config: config.Config{GmailSearch: true,
		GmailModify: true, Memory: true, Terminal: true, WebTools: true}}
	b.Config.Docker.Host, b.Config.Docker.Images = "unix:///x", []string{"x"}
	b.Config.Docker.PackageHosts = []string{"proxy.example.com"}
	for _, p := range []app.Part{tools.Part, repositories.Part, tools.Containers} {
		if err := p.Tools(b); err != nil {
			t.Fatal(err)
		}
	}
	if got := b.Env.Tools.Names(); !slices.Equal(got, slices.Sorted(slices.Values(app.BuiltIn))) {
		t.Errorf("app.BuiltIn is %v, and the tools are %v", app.BuiltIn, got)
	}
}
