// Package containers is the part that runs containers for agents.
package containers

import (
	"context"
	"fmt"

	"github.com/countersign-run/countersign/shared/app"
	"github.com/countersign-run/countersign/shared/config"
	"github.com/countersign-run/countersign/shared/tools/container/docker"
)

// Part uses the engine at DOCKER_HOST if DOCKER_IMAGES names images.
var Part = app.Part{Name: "engine", Needs: config.Engine, Open: open}

func open(_ context.Context, b *app.Builder) error {
	cfg := b.Config
	if !cfg.HasContainers() {
		return nil
	}
	e, err := docker.Open(docker.Config{Host: cfg.Docker.Host, CertPath: cfg.Docker.CertPath,
		Certs: cfg.Docker.Certs.Reveal(), Network: cfg.Docker.Network})
	if err != nil {
		return fmt.Errorf("DOCKER_HOST, DOCKER_CERT_PATH or DOCKER_CERTS: %w", err)
	}
	b.Engine = e
	b.Closes(e)
	return nil
}
