package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/countersign-run/countersign/shared/tools/action"
)

// checkHandlers checks a folder's handlers against the actions' schemas (seed 001 Q10): the compilers of both languages
// compare them with the generated types.
func checkHandlers(ctx context.Context, dir, tsc string, list []action.Action) error {
	return errors.Join(checkGo(ctx, dir), checkTypeScript(ctx, dir, tsc, list))
}

// checkGo compiles the Go code next to the generated file, if any, because Does requires the right types.
func checkGo(ctx context.Context, dir string) error {
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(files, func(f string) bool { return filepath.Base(f) != goFileName }) {
		return nil
	}
	cmd := exec.CommandContext(ctx, "go", "vet", ".")
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("the Go code in %s does not fit its actions: %w\n%s", dir, err, out)
	}
	return nil
}

// module is a file of TypeScript with the handler of an action.
type module struct {
	action action.Action
	file   string // its absolute path
	export string
}

// checkTypeScript makes the compiler assign each handler to the type of the action's schemas.
func checkTypeScript(ctx context.Context, dir, tsc string, list []action.Action) error {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	modules, err := handlersIn(dir, list)
	if err != nil || len(modules) == 0 {
		return err
	}
	if tsc, err = compiler(dir, tsc); err != nil {
		return err
	}
	tmp, err := os.MkdirTemp("", "actiongen")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	args := []string{"--noEmit", "--strict", "--skipLibCheck", "--target", "es2022", "--module", "esnext",
		"--moduleResolution", "bundler", "--allowImportingTsExtensions"}
	for i, m := range modules {
		file := filepath.Join(tmp, fmt.Sprintf("handler%d.ts", i))
		if err := os.WriteFile(file, m.check(dir), 0o600); err != nil {
			return err
		}
		args = append(args, file)
	}
	out, err := exec.CommandContext(ctx, tsc, args...).CombinedOutput()
	if err == nil {
		return nil
	}
	said := string(out)
	for i, m := range modules { // name the handler instead of the temporary file
		at := regexp.MustCompile(fmt.Sprintf(`(?m)^[^(\n]*handler%d\.ts\(\d+,\d+\)`, i))
		rel, relErr := filepath.Rel(dir, m.file)
		if relErr != nil {
			return relErr
		}
		said = at.ReplaceAllLiteralString(said,
			fmt.Sprintf("%s: %s does not fit %s", rel, m.export, m.action.Metadata.File))
	}
	return fmt.Errorf("the TypeScript code in %s does not fit its actions: %w\n%s", dir, err, said)
}

// check returns a program that compiles if the handler accepts every input of the schema and returns only outputs of
// the schema.
func (m module) check(dir string) []byte {
	name := typeName(m.action.Name)
	types := filepath.ToSlash(filepath.Join(dir, filepath.FromSlash(m.action.Metadata.File)))
	return fmt.Appendf(nil, `import type { %sInput, %[1]sOutput } from %[2]q;
import type { %[3]s as handler } from %[4]q;
type Handler = typeof handler extends { handler: infer H } ? H : typeof handler;
export const fits = (given: Handler): ((input: %[1]sInput) => %[1]sOutput | Promise<%[1]sOutput>) => given;
`, name, types, m.export, filepath.ToSlash(m.file))
}

// handlersIn finds the handlers by their exported names: the actions' names after the last dot.
func handlersIn(dir string, list []action.Action) (found []module, err error) {
	err = filepath.WalkDir(dir, func(file string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "node_modules" || d.Name() == "dist" || strings.HasPrefix(d.Name(), ".") &&
			file != dir):
			return filepath.SkipDir
		case d.IsDir() || filepath.Ext(file) != ".ts" || strings.HasSuffix(file, ".d.ts") ||
			strings.HasSuffix(file, ".test.ts"):
			return nil
		}
		body, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		for _, a := range list {
			export := a.Name[strings.LastIndex(a.Name, ".")+1:]
			if a.Metadata != nil && exports(body, export) {
				found = append(found, module{a, file, export})
			}
		}
		return nil
	})
	return found, err
}

func exports(body []byte, name string) bool {
	return regexp.MustCompile(`(?m)^\s*export\s+(?:async\s+)?(?:const|let|var|function)\s+` + regexp.QuoteMeta(name) +
		`\b`).Match(body)
}

// compiler returns the named TypeScript compiler, the project's own, or the one in PATH.
func compiler(dir, named string) (string, error) {
	if named != "" {
		return named, nil
	}
	for at := dir; ; at = filepath.Dir(at) {
		own := filepath.Join(at, "node_modules", ".bin", "tsc")
		if _, err := os.Stat(own); err == nil {
			return own, nil
		}
		if at == filepath.Dir(at) {
			break
		}
	}
	found, err := exec.LookPath("tsc")
	if err != nil {
		return "", errors.New("there are handlers in TypeScript and no compiler to check them: install typescript " +
			"there, or name tsc by -tsc")
	}
	return found, nil
}
