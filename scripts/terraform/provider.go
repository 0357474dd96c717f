package main

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
)

const (
	google  = "registry.terraform.io/hashicorp/google"
	version = "6.50.0" // the version of the provider whose schema the stand-in serves
)

// provider selects the Google provider. With TERRAFORM_CHECK_DIR it is the schema-only stand-in in that directory,
// which needs no network and cannot deploy anything: tfstub is its source code, and google-VERSION.subset.schema.json
// its schema. Otherwise it is the real provider, which terraform init downloads from HashiCorp's registry.
func (w *workspace) provider(ctx context.Context) error {
	from := os.Getenv("TERRAFORM_CHECK_DIR")
	if from == "" {
		return nil
	}
	platform := runtime.GOOS + "_" + runtime.GOARCH
	dir := filepath.Join(w.dir, "mirror", google, version, platform)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-o",
		filepath.Join(dir, "terraform-provider-google_v"+version), ".")
	build.Dir = filepath.Join(from, "tfstub")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("the schema-only provider of TERRAFORM_CHECK_DIR does not build: %w\n%s", err, out)
	}
	schema, err := os.ReadFile(filepath.Join(from, "google-"+version+".subset.schema.json"))
	if err != nil {
		return err
	}
	if schema, err = withMore(schema); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "schema.json"), schema, 0o600); err != nil {
		return err
	}
	return w.only(filepath.Join(w.dir, "mirror"))
}

// more holds the schemas that are missing from the schema-only provider. They have the same version and source.
//
//go:embed testdata/more-schemas.json
var more []byte

func withMore(schema []byte) ([]byte, error) {
	var doc struct {
		Providers map[string]struct {
			Provider    json.RawMessage            `json:"provider"`
			Resources   map[string]json.RawMessage `json:"resource_schemas"`
			DataSources map[string]json.RawMessage `json:"data_source_schemas"`
		} `json:"provider_schemas"`
	}
	if err := json.Unmarshal(schema, &doc); err != nil {
		return nil, fmt.Errorf("the schema of the stand-in: %w", err)
	}
	resources := doc.Providers[google].Resources
	if len(resources) == 0 {
		return nil, fmt.Errorf("the schema of the stand-in has no resources of %s", google)
	}
	if err := json.Unmarshal(more, &resources); err != nil {
		return nil, err
	}
	return json.Marshal(doc)
}

// only makes terraform use the providers in the mirror and no others. It removes the lock files, which have the real
// provider's hashes.
func (w *workspace) only(mirror string) error {
	rc := filepath.Join(w.dir, "terraform.rc")
	text := fmt.Sprintf("provider_installation {\n  filesystem_mirror {\n    path = %q\n  "+
		"}\n}\ndisable_checkpoint = true\n", mirror)
	if err := os.WriteFile(rc, []byte(text), 0o600); err != nil {
		return err
	}
	w.env = append(w.env, "TF_CLI_CONFIG_FILE="+rc)
	return filepath.WalkDir(filepath.Join(w.dir, "terraform"), func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.Name() != ".terraform.lock.hcl" {
			return err
		}
		return os.Remove(path)
	})
}
