// Package containers is the part of the programs that run containers for agents.
package containers

import (
	"fmt"

	"github.com/countersign-run/countersign/shared/app"
	"github.com/countersign-run/countersign/shared/config"
	"github.com/countersign-run/countersign/shared/docker"
)

// Part asks the engine of DOCKER_HOST, where DOCKER_IMAGES says of what containers are made.
var Part = app.Part{Needs: config.Engine, Link: func(c *app.Clients) { c.Engine = open }}

func open(cfg config.Config) (app.Engine, error) {
	if cfg.DockerHost == "" || len(cfg.DockerImages) == 0 {
		return nil, nil
	}
	e, err := docker.Open(docker.Config{Host: cfg.DockerHost, CertPath: cfg.DockerCertPath,
		Certs: cfg.DockerCerts.Reveal(), Network: cfg.DockerNetwork})
	if err != nil {
		return nil, fmt.Errorf("DOCKER_HOST, DOCKER_CERT_PATH or DOCKER_CERTS: %w", err)
	}
	return e, nil
}
