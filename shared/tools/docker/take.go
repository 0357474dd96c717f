package docker

import (
	"context"
	"strings"

	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/tools/container"
)

// Reader reads the files of a run's containers for tools that use them elsewhere.
type Reader struct {
	Engine Engine // nil in a process that only judges and shows calls
}

// Files returns the texts at the paths in a container of the call's run. The paths are absolute and clean. Files that
// are missing, are not text, or exceed most bytes in total are left out. The container's own user reads the files,
// inside the container.
func (r Reader) Files(ctx context.Context, c tool.Call, id string, paths []string, most int) (map[string]string,
	error) {
	command := []string{"tar", "-chf", "-", "-C", "/", "--"}
	size := most
	for _, p := range paths {
		command = append(command, strings.TrimPrefix(p, "/"))
		size += len(p)
	}
	tree, err := (&tools{Options{Engine: r.Engine}}).archive(ctx, c, id,
		container.Bounds{Files: len(paths), File: most, All: size}, command...)
	if err != nil {
		return nil, err
	}
	texts := map[string]string{}
	for _, f := range tree.Files {
		texts["/"+f.Path] = f.Content
	}
	return texts, nil
}
