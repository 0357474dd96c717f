package tools

import (
	"slices"
	"testing"
	"time"

	"github.com/countersign-run/countersign/shared/app"
	"github.com/countersign-run/countersign/shared/app/repositories"
	"github.com/countersign-run/countersign/shared/config"
)

// The functions that answer pages know the built-in tools by their names alone.
func TestBuiltInToolsAreNamed(t *testing.T) {
	names := slices.Concat(set(config.Config{GmailSearch: true}, nil, time.Now).Names(),
		commands(config.Config{Terminal: true}, nil, nil).Names(),
		reading(config.Config{WebTools: true}, nil, nil).Names(),
		containers(config.Config{DockerHost: "unix:///x", DockerImages: []string{"x"}}, nil, nil).Names(),
		repositories.Tools(config.Config{}, nil, nil, time.Now).Names())
	slices.Sort(names)
	if !slices.Equal(names, slices.Sorted(slices.Values(app.BuiltIn))) {
		t.Errorf("app.BuiltIn is %v, and the tools are %v", app.BuiltIn, names)
	}
}
