// Command package builds the deployment archives: one for each function in infra/functions.json, which Cloud Functions
// can build, and a manifest with their hashes.
//
//	go run ./scripts/package -out dist
//	go run ./scripts/package -out dist -verify
//	go run ./scripts/package -out dist -with actions -with config/.gemini.yaml
//	go run ./scripts/package -out dist -functions page,plans
//
// The same sources give the same bytes on any machine, so a function is deployed again only if its own sources, or
// those of a package that it imports, have changed. With -verify, it builds and starts each archive as the cloud does.
// With -with, it adds an operator's file or folder to the archives of the functions that read such files. The running
// function finds them below serverless_function_source_code/. With -functions, it packages only the functions that
// Terraform deploys for the same names in its variable functions.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "package:", err)
		os.Exit(1)
	}
}

const usage = `usage: go run ./scripts/package [flags]

Makes the archive of each function that Cloud Functions builds, and a manifest that names them by their hashes.

  go run ./scripts/package -out dist             write them
  go run ./scripts/package -out dist -verify     and build and start each as the cloud does
  go run ./scripts/package -out dist -with agents -with config/.gemini.yaml
  go run ./scripts/package -out dist -functions page,plans    only the functions of this choice

`

type options struct {
	root, out, release string
	with, functions    []string
	verify             bool
}

func run(ctx context.Context, args []string, w io.Writer) error {
	o := options{functions: []string{"all"}}
	flags := flag.NewFlagSet("package", flag.ContinueOnError)
	flags.StringVar(&o.root, "root", ".", "the repository's folder")
	flags.StringVar(&o.out, "out", "dist", "the folder for the archives, empty or with the output of an earlier run")
	flags.StringVar(&o.release, "release", "", "the name of the release (default: the commit)")
	flags.BoolVar(&o.verify, "verify", false, "build and start each archive as the cloud does")
	flags.Func("with", "add a file or folder of yours, below the repository's folder, to the functions that read such "+
		"files; can be repeated", func(path string) error {
		o.with = append(o.with, path)
		return nil
	})
	flags.Func("functions", "package only these functions and profiles, with commas between them, and what they need "+
		"(default: all)", func(names string) error {
		o.functions = strings.Split(names, ",")
		return nil
	})
	flags.SetOutput(io.Discard) // errors are returned
	err := flags.Parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprint(w, usage)
		flags.SetOutput(w)
		flags.PrintDefaults()
		return nil
	case err != nil:
		return fmt.Errorf("%w; -h prints the flags", err)
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q: package takes only flags; -h prints them", flags.Arg(0))
	}
	if err := usable(o.out); err != nil {
		return err
	}
	m, archives, err := makeAll(ctx, o)
	if err != nil {
		return err
	}
	if err := write(o.out, m, archives); err != nil {
		return err
	}
	fmt.Fprintf(w, "wrote %d archives of release %s to %s; manifest %s:\n", len(m.Functions), m.Release,
		o.out, filepath.Join(o.out, manifestName))
	for _, f := range m.Functions {
		fmt.Fprintf(w, "%-20s %s %8d bytes %3d packages\n", f.Name, f.SHA256[:12], f.Size, len(f.Packages))
	}
	if !o.verify {
		return nil
	}
	return verifyAll(ctx, w, m, archives)
}

// verifyAll verifies the archives in parallel, one for each CPU at a time.
func verifyAll(ctx context.Context, w io.Writer, m manifest, archives map[string][]byte) error {
	began := time.Now()
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(runtime.NumCPU())
	told := make([]string, len(m.Functions))
	for i, f := range m.Functions {
		g.Go(func() error {
			t, err := verify(ctx, f, archives[f.Archive])
			if err != nil {
				return fmt.Errorf("%s: %w", f.Archive, err)
			}
			told[i] = fmt.Sprintf("%-20s tidied and built in %.1f s, answered /health %.2f s after the start", f.Name,
				t.built.Seconds(), t.answered.Seconds())
			if len(t.unbound) > 0 {
				told[i] += "; actions with neither a handler nor an endpoint: " + strings.Join(t.unbound, ", ")
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	for _, line := range told {
		fmt.Fprintln(w, line)
	}
	fmt.Fprintf(w, "%d archives verified in %.1f s\n", len(told), time.Since(began).Seconds())
	return nil
}
