// Command terraform checks the configuration in terraform/ with the real terraform: its format, each root, and the
// tests of each module. No test needs an account or applies anything. It does not change the tree.
//
//	go run ./scripts/terraform
//
// With TERRAFORM_CHECK_DIR a schema-only stand-in replaces the Google provider, and no network is needed. Without it,
// terraform init downloads the real provider.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
)

const usage = `usage: go run ./scripts/terraform

Checks terraform/ with the real terraform: form, roots and the modules' tests. It applies nothing, and has no flags.

  TERRAFORM_CHECK_DIR=DIR go run ./scripts/terraform     with a stand-in for the Google provider, without a network
`

func main() {
	if len(os.Args) > 1 {
		fmt.Print(usage)
		if help := os.Args[1]; help != "-h" && help != "-help" && help != "--help" {
			os.Exit(2)
		}
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := check(ctx); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func check(ctx context.Context) error {
	dir, err := os.MkdirTemp("", "terraform-check-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	w, err := newWorkspace(ctx, ".", dir)
	if err != nil {
		return err
	}
	if err := w.format(ctx); err != nil {
		return err
	}
	for _, root := range roots {
		if err := w.validate(ctx, root); err != nil {
			return err
		}
		fmt.Println("valid   ", root)
	}
	for _, dir := range tested {
		if err := w.report(ctx, dir, dir); err != nil {
			return err
		}
	}
	for _, environment := range environments {
		if err := w.undeclared(ctx, environment); err != nil {
			return err
		}
		if err := w.report(ctx, environment, root, w.variableFiles(environment)...); err != nil {
			return err
		}
	}
	return nil
}

// report runs the tests of a directory, and prints each run under a title.
func (w *workspace) report(ctx context.Context, title, dir string, more ...string) error {
	runs, err := w.test(ctx, dir, more...)
	for _, r := range runs {
		fmt.Printf("%-8s %s %s\n", r.Status, title, r.Name)
	}
	return err
}
