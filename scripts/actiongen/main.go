// Command actiongen generates types for the code of a folder's declared actions:
//
//	go run ./scripts/actiongen DIR          types beside each .jay-action, in DIR actions.go and actions-index.yaml
//	go run ./scripts/actiongen -check DIR   fails if one of these is out of date, or a handler does not fit
//
// The Go file has a struct Does with one function for each action without an endpoint. Handlers of other types do not
// compile, so -check compiles the Go code of the folder. It also compares each TypeScript handler with the types of its
// action. Such a handler is exported under the action's name, in or below the folder. The index has the schemas, for
// coding agents.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"os/signal"
	"path/filepath"
	"slices"

	"github.com/countersign-run/countersign/shared/tools/action"
)

const usage = `usage: go run ./scripts/actiongen [flags] DIR

Writes the types of a folder's declared actions: beside each .jay-action, and in DIR actions.go and actions-index.yaml.

  go run ./scripts/actiongen actions            write them
  go run ./scripts/actiongen -check actions     fail where one is out of date, or a handler does not fit

`

func main() {
	check := flag.Bool("check", false, "write nothing, and fail where a file is not what would be written")
	tsc := flag.String("tsc", "",
		"with -check: the TypeScript compiler (default: the project's own, or the one of the path)")
	flag.Usage = func() {
		fmt.Fprint(flag.CommandLine.Output(), usage)
		flag.PrintDefaults()
	}
	flag.Parse()
	if flag.NArg() != 1 {
		fmt.Fprintln(os.Stderr, "actiongen: name one folder with a plugin.yaml")
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Stdout, flag.Arg(0), *check, *tsc)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "actiongen:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out io.Writer, dir string, check bool, tsc string) error {
	files, err := generate(dir)
	if err != nil {
		return err
	}
	var stale []error
	for _, name := range slices.Sorted(maps.Keys(files)) {
		path := filepath.Join(dir, filepath.FromSlash(name))
		have, err := os.ReadFile(path)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		switch {
		case err == nil && bytes.Equal(have, files[name]):
			continue
		case check:
			stale = append(stale, fmt.Errorf("%s is out of date; run go run ./scripts/actiongen %s", name,
				dir))
			continue
		}
		if err := os.WriteFile(path, files[name], 0o644); err != nil {
			return err
		}
		fmt.Fprintln(out, "wrote", path)
	}
	if !check {
		return nil
	}
	if len(stale) > 0 { // handlers are checked against current types only
		return errors.Join(stale...)
	}
	list, err := action.Load(dir)
	if err != nil {
		return err
	}
	return checkHandlers(ctx, dir, tsc, list)
}

// goFileName is the generated file of Go.
const goFileName = "actions.go"

// generate returns all files by their names within the folder.
func generate(dir string) (map[string][]byte, error) {
	list, err := action.Load(dir)
	if err != nil {
		return nil, err
	}
	files := map[string][]byte{}
	for _, a := range list {
		if a.Metadata != nil {
			files[a.Metadata.File+".d.ts"] = typescript(a)
		}
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	if files[goFileName], err = golang(filepath.Base(abs), list); err != nil {
		return nil, err
	}
	files["actions-index.yaml"], err = index(list)
	return files, err
}
