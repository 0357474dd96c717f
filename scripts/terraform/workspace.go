package main

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"

	"github.com/countersign-run/countersign/infra"
)

// workspace is a copy of the configuration in its own directory, because terraform writes lock files and plugins next
// to the files that it reads. It also has substitutes for the archives of scripts/package.
type workspace struct {
	dir   string
	env   []string
	ready map[string]bool // directories that are initialized with their provider
}

// newWorkspace copies the configuration of the repository at root.
func newWorkspace(ctx context.Context, root, dir string) (*workspace, error) {
	w := &workspace{dir: dir, ready: map[string]bool{},
		env: append(os.Environ(), "TF_IN_AUTOMATION=1", "CHECKPOINT_DISABLE=1", "TF_INPUT=0",
			"GOGC=400")} // terraform otherwise spends a quarter of its time on garbage collection
	for _, part := range []string{"terraform", "infra"} {
		if err := os.CopyFS(filepath.Join(dir, part), os.DirFS(filepath.Join(root, part))); err != nil {
			return nil, err
		}
	}
	if err := errors.Join(w.archives(),
		os.WriteFile(filepath.Join(dir, "operator.tfvars"), operator, 0o600)); err != nil {
		return nil, err
	}
	return w, w.provider(ctx)
}

// archives makes dist, and a second set that differs in the archive of run.
func (w *workspace) archives() error {
	list, err := infra.Functions()
	if err != nil {
		return err
	}
	for _, set := range []string{"dist", "dist-run-changed"} {
		dir := filepath.Join(w.dir, set)
		if err := os.Mkdir(dir, 0o755); err != nil {
			return err
		}
		for _, f := range list.Functions {
			text := "not an archive: " + f.Name
			if f.Name == "run" {
				text += " of " + set
			}
			if err := os.WriteFile(filepath.Join(dir, f.Name+".zip"), []byte(text), 0o600); err != nil {
				return err
			}
		}
	}
	return nil
}

// terraform runs the real terraform in a directory of the workspace and returns its standard output.
func (w *workspace) terraform(ctx context.Context, dir string, args ...string) ([]byte, error) {
	var stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, "terraform", append([]string{"-chdir=" + filepath.Join(w.dir, dir)}, args...)...)
	cmd.Env, cmd.Stderr = w.env, &stderr
	out, err := cmd.Output()
	if err != nil {
		return out, fmt.Errorf("terraform %v in %s: %w\n%s%s", args, dir, err, out, stderr.Bytes())
	}
	return out, nil
}

// init initializes a directory with its provider and without a backend, because the checks have no stored state.
func (w *workspace) init(ctx context.Context, dir string) error {
	if w.ready[dir] {
		return nil
	}
	_, err := w.terraform(ctx, dir, "init", "-backend=false", "-no-color")
	w.ready[dir] = err == nil
	return err
}

// The checked directories: each root, and each module with tests. The root's tests run once for each environment.
var (
	roots        = []string{"terraform/bootstrap", root}
	tested       = []string{"terraform/bootstrap", "terraform/modules/function", agentModule}
	environments = []string{"dev", "stage", "prod"}
)

const agentModule = "terraform/modules/agent"

// secondTest is the test of a list of functions with a second resume function.
//
//go:embed testdata/second.tftest.hcl
var secondTest []byte

// addResume adds a resume function for the agent to the list, with its archive and its test, until restore is called.
func (w *workspace) addResume(name, agent string) (restore func() error, err error) {
	file := filepath.Join(w.dir, "infra", "functions.json")
	before, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	list, err := infra.Parse(before)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(list.Functions, infra.Function.Rest)
	second := list.Functions[i]
	second.Name, second.EntryPoint, second.Folder, second.Agents = name, name, "functions/"+name, []string{agent}
	second.Routes = []infra.Route{{Method: "POST", Path: "/api/agent/" + name}}
	list.Functions = append(list.Functions, second)
	after, err := json.Marshal(list)
	if err != nil {
		return nil, err
	}
	test := filepath.Join(w.dir, agentModule, "tests", "second.tftest.hcl")
	return func() error { return errors.Join(os.WriteFile(file, before, 0o600), os.Remove(test)) }, errors.Join(
		os.WriteFile(file, after, 0o600), os.WriteFile(test, secondTest, 0o600),
		os.WriteFile(filepath.Join(w.dir, "dist", name+".zip"), []byte("not an archive"), 0o600))
}
