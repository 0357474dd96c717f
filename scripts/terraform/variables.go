package main

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// root is the configuration that operators apply, with one variable file for each environment.
const root = "terraform"

// operator holds an operator's values, which the variable files leave out.
//
//go:embed testdata/operator.tfvars
var operator []byte

// variableFiles returns terraform's arguments that select an environment.
func (w *workspace) variableFiles(environment string) []string {
	return []string{"-var-file=" + filepath.Join(w.dir, "operator.tfvars"),
		"-var-file=" + filepath.Join(w.dir, root, environment+".tfvars")}
}

// block matches a variable or an output that begins in the first column, with its body.
var block = regexp.MustCompile(`(?ms)^(variable|output) "([a-z_]+)" \{\n(.*?)^\}\n`)

// values is a configuration that reads a variable file twice: as it is, and with the types of the root's variables.
// Terraform ignores unknown attributes of an object, and only warns about unknown variables.
const values = `terraform {
  required_providers {
    terraform = {
      source = "terraform.io/builtin/terraform"
    }
  }
}
locals {
  declared = []
}
output "given" {
  value = provider::terraform::decode_tfvars(file(%q))
}
output "taken" {
  value = { %s }
}
`

// undeclared returns an error that names each value of a variable file that the root does not declare.
func (w *workspace) undeclared(ctx context.Context, environment string) error {
	file := filepath.Join(w.dir, root, environment+".tfvars")
	dir, err := os.MkdirTemp(w.dir, "values-")
	if err != nil {
		return err
	}
	sources, err := filepath.Glob(filepath.Join(w.dir, root, "*.tf"))
	if err != nil {
		return err
	}
	var declarations, taken []string
	for _, source := range sources {
		text, err := os.ReadFile(source)
		if err != nil {
			return err
		}
		for _, b := range block.FindAllStringSubmatch(string(text), -1) {
			if b[1] == "variable" {
				declarations, taken = append(declarations, b[0]), append(taken, b[2]+" = var."+b[2])
			}
		}
	}
	text := fmt.Sprintf(values, file, strings.Join(taken, ", ")) + strings.Join(declarations, "\n")
	if err := os.WriteFile(filepath.Join(dir, "main.tf"), []byte(text), 0o600); err != nil {
		return err
	}
	return w.compare(ctx, filepath.Base(dir), environment)
}

func (w *workspace) compare(ctx context.Context, dir, environment string) error {
	if err := w.init(ctx, dir); err != nil {
		return err
	}
	if _, err := w.terraform(ctx, dir,
		append([]string{"plan", "-no-color", "-out=plan"}, w.variableFiles(environment)...)...); err != nil {
		return err
	}
	out, err := w.terraform(ctx, dir, "show", "-json", "plan")
	if err != nil {
		return err
	}
	var plan struct {
		Values struct {
			Outputs struct{ Given, Taken struct{ Value any } }
		} `json:"planned_values"`
	}
	if err := json.Unmarshal(out, &plan); err != nil {
		return err
	}
	var faults []error
	for _, name := range missing("", plan.Values.Outputs.Given.Value, plan.Values.Outputs.Taken.Value) {
		faults = append(faults, fmt.Errorf("%s/%s.tfvars: %s is not declared in %s/variables.tf",
			root, environment, name, root))
	}
	return errors.Join(faults...)
}

// missing returns the paths of the values that are in given but not in taken.
func missing(at string, given, taken any) (paths []string) {
	g, isObject := given.(map[string]any)
	t, _ := taken.(map[string]any)
	if !isObject {
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(g)) {
		value, declared := t[name]
		if !declared {
			paths = append(paths, at+name)
			continue
		}
		paths = append(paths, missing(at+name+".", g[name], value)...)
	}
	return paths
}
