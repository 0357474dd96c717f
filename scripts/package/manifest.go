package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/countersign-run/countersign/infra"
)

const (
	manifestName = "manifest.json"
	format       = "countersign-archives-1"
)

// manifest describes the output folder.
type manifest struct {
	Format    string  `json:"format"`
	Release   string  `json:"release"`
	Go        string  `json:"go"`
	Functions []entry `json:"functions"`
}

// entry describes one function's archive. The object's name contains the hash, so a function is deployed exactly when
// its archive has changed.
type entry struct {
	Name       string   `json:"name"`
	EntryPoint string   `json:"entryPoint"`
	Archive    string   `json:"archive"`
	Object     string   `json:"object"` // the object's name in Terraform's bucket
	SHA256     string   `json:"sha256"`
	Size       int      `json:"size"`
	Packages   []string `json:"packages"`
	With       []string `json:"with,omitempty"` // the operator's files in the archive
}

// makeAll returns the archives, keyed by file name, and their manifest.
func makeAll(ctx context.Context, o options) (manifest, map[string][]byte, error) {
	fail := func(err error) (manifest, map[string][]byte, error) { return manifest{}, nil, err }
	root, err := filepath.Abs(o.root)
	if err != nil {
		return fail(err)
	}
	data, err := os.ReadFile(filepath.Join(root, "infra", "functions.json"))
	if err != nil {
		return fail(fmt.Errorf("-root %s is not the repository's folder: %w", o.root, err))
	}
	l, err := infra.Parse(data)
	if err != nil {
		return fail(err)
	}
	functions, err := l.Select(o.functions)
	if err != nil {
		return fail(fmt.Errorf("-functions: %w", err))
	}
	if o.release == "" {
		if o.release, err = commit(ctx, root); err != nil {
			return fail(err)
		}
	}
	with, err := operatorFiles(root, o.with)
	if err != nil {
		return fail(err)
	}
	s, err := list(ctx, root, functions)
	if err != nil {
		return fail(err)
	}
	m := manifest{Format: format, Release: o.release, Go: s.goVersion, Functions: make([]entry, len(functions))}
	made := make([][]byte, len(functions))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(runtime.NumCPU())
	for i, f := range functions {
		g.Go(func() (err error) {
			if m.Functions[i], made[i], err = makeOne(ctx, s, f, with); err != nil {
				return fmt.Errorf("function %s: %w", f.Name, err)
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return fail(err)
	}
	archives := map[string][]byte{}
	for i, e := range m.Functions {
		archives[e.Archive] = made[i]
	}
	slices.SortFunc(m.Functions, func(a, b entry) int { return strings.Compare(a.Name, b.Name) })
	return m, archives, nil
}

func makeOne(ctx context.Context, s sources, f infra.Function, with files) (entry, []byte, error) {
	within, err := s.closure(f)
	if err != nil {
		return entry{}, nil, err
	}
	content, err := s.collect(ctx, f, within)
	if err != nil {
		return entry{}, nil, err
	}
	e := entry{Name: f.Name, EntryPoint: f.EntryPoint, Archive: f.Name + ".zip", Packages: within}
	if readsOperatorFiles(f) {
		for name, body := range with {
			if _, there := content[name]; there {
				return entry{}, nil, fmt.Errorf("-with %s would replace a file of the function: rename it",
					name)
			}
			content[name] = body
		}
		e.With = slices.Sorted(maps.Keys(with))
	}
	archive, err := pack(content)
	if err != nil {
		return entry{}, nil, err
	}
	sum := sha256.Sum256(archive)
	e.SHA256, e.Size = hex.EncodeToString(sum[:]), len(archive)
	e.Object = "functions/" + f.Name + "/" + e.SHA256 + ".zip"
	return e, archive, nil
}

// commit returns the name of the checked-out release, marked as changed if the tree has changes.
func commit(ctx context.Context, root string) (string, error) {
	cmd := exec.CommandContext(ctx, "git", "describe", "--always", "--dirty", "--exclude=*", "--abbrev=40")
	cmd.Dir = root
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s is not a git checkout: name the release with -release", root)
	}
	return strings.TrimSpace(string(out)), nil
}

// usable returns an error if the output folder holds anything but the output of an earlier run.
func usable(out string) error {
	found, err := os.ReadDir(out)
	if errors.Is(err, fs.ErrNotExist) || err == nil && len(found) == 0 {
		return nil
	}
	if err != nil {
		return fmt.Errorf("-out %s cannot be used: %w", out, err)
	}
	var earlier manifest
	data, err := os.ReadFile(filepath.Join(out, manifestName))
	if err != nil || json.Unmarshal(data, &earlier) != nil || earlier.Format != format {
		return fmt.Errorf("-out %s is not empty and has no %s from an earlier run: name another folder, or empty "+
			"it yourself", out, manifestName)
	}
	for _, f := range found {
		made := f.Name() == manifestName ||
			slices.ContainsFunc(earlier.Functions, func(e entry) bool { return e.Archive == f.Name() })
		if !made {
			return fmt.Errorf("-out %s has %s, which is not from an earlier run: move it, or name another folder",
				out, f.Name())
		}
	}
	return nil
}

// write replaces the output of an earlier run. The manifest is written last, so that it never names a missing file.
func write(out string, m manifest, archives map[string][]byte) error {
	if err := usable(out); err != nil {
		return err
	}
	if err := os.MkdirAll(out, 0o755); err != nil {
		return err
	}
	old, err := filepath.Glob(filepath.Join(out, "*.zip"))
	if err != nil {
		return err
	}
	for _, file := range old {
		if _, again := archives[filepath.Base(file)]; !again {
			if err := os.Remove(file); err != nil {
				return err
			}
		}
	}
	for name, body := range archives {
		if err := os.WriteFile(filepath.Join(out, name), body, 0o644); err != nil {
			return err
		}
	}
	data, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(out, manifestName), append(data, '\n'), 0o644)
}
