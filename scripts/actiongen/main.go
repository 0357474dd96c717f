// Command actiongen writes from the declared actions of a folder what their code is held to:
//
//	go run ./scripts/actiongen DIR          beside each .jay-action its types for TypeScript, in DIR actions.go and actions-index.yaml
//	go run ./scripts/actiongen -check DIR   fails where one of these is not what would be written
//
// The Go file has a struct Does with one function for each action that is bound to no endpoint. Handlers of other types do not
// compile.
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/countersign-run/countersign/shared/action"
)

func main() {
	check := flag.Bool("check", false, "write nothing, and fail where a file is not what would be written")
	flag.Parse()
	if flag.NArg() != 1 {
		fmt.Fprintln(os.Stderr, "actiongen: one folder with a plugin.yaml is needed")
		os.Exit(2)
	}
	if err := run(os.Stdout, flag.Arg(0), *check); err != nil {
		fmt.Fprintln(os.Stderr, "actiongen:", err)
		os.Exit(1)
	}
}

func run(out io.Writer, dir string, check bool) error {
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
			stale = append(stale, fmt.Errorf("%s is not what the actions say; run go run ./scripts/actiongen %s", name, dir))
			continue
		}
		if err := os.WriteFile(path, files[name], 0o644); err != nil {
			return err
		}
		fmt.Fprintln(out, "wrote", path)
	}
	return errors.Join(stale...)
}

// generate gives all files by their names within the folder.
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
	if files["actions.go"], err = golang(filepath.Base(abs), list); err != nil {
		return nil, err
	}
	files["actions-index.yaml"], err = index(list)
	return files, err
}
