package github

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	gopath "path"
	"slices"
	"strings"
	"unicode"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/fault"
)

// Containers reads files of a run's containers (docker.Reader): the texts at absolute paths. Files that are missing,
// are not text, or exceed most octets in total are left out.
type Containers interface {
	Files(ctx context.Context, c tool.Call, id string, paths []string, most int) (map[string]string, error)
}

const (
	work        = "/work" // of a container: where the files of a repository are
	containerID = `^[0-9a-f]{64}$`
	sum         = `^[0-9a-f]{64}$`
)

// refineContained describes the fields about files in containers, or removes these fields if there are no containers.
func (h *hub) refineContained(s *jsonschema.Schema) {
	file := s.Properties["files"].Items.Properties
	if h.containers == nil {
		delete(s.Properties, "containerId")
		delete(file, "source")
		delete(file, "sha256")
		return
	}
	s.Properties["containerId"].Pattern, file["sha256"].Pattern = containerID, sum
	file["source"].MaxLength = jsonschema.Ptr(maxSource)
}

const maxSource = 1024 // octets of a path in a container

// normalSource checks the fields of a file in a container, and brings its path into canonical form.
func normalSource(f FileChange, at func(name string) string, container string) (FileChange, error) {
	switch {
	case f.SHA256 == "" && f.Source != "":
		return f, fault.Invalid(at("sha256"), "the sum of the file in the container is required")
	case f.SHA256 == "":
		return f, nil
	case container == "":
		return f, fault.Invalid("containerId", "the container of the files with a sum is required")
	case f.Content != "" || f.Delete:
		return f, fault.Invalid(at("sha256"), "set exactly one: the sum in the container, content, or delete")
	case len(f.Source) > maxSource || strings.ContainsFunc(f.Source, unicode.IsControl):
		return f, fault.Invalid(at("source"), "not the path of a file in a container")
	case f.Source == "":
		f.Source = f.Path
	}
	if !gopath.IsAbs(f.Source) {
		f.Source = work + "/" + f.Source
	}
	f.Source = gopath.Clean(f.Source)
	return f, nil
}

// checkContainer refuses a container from which no file is committed.
func checkContainer(in NewCommit) error {
	if in.ContainerID == "" || slices.ContainsFunc(in.Files, func(f FileChange) bool { return f.SHA256 != "" }) {
		return nil
	}
	return fault.Invalid("containerId", "no file comes from this container: set the sum of each file that does")
}

// fill returns the files, with the contents of those that are in a container. If a content's SHA-256 differs from the
// one on the card, the error is PolicyError stale_view.
func (h *hub) fill(ctx context.Context, c tool.Call, in NewCommit) ([]FileChange, error) {
	var paths []string
	for _, f := range in.Files {
		if f.SHA256 != "" && !slices.Contains(paths, f.Source) {
			paths = append(paths, f.Source)
		}
	}
	if len(paths) == 0 {
		return in.Files, nil
	}
	if h.containers == nil {
		return nil, fault.New(fault.Tool, fault.CodeInternal, "This process has no container engine.")
	}
	texts, err := h.containers.Files(ctx, c, in.ContainerID, paths, MaxCommit)
	if err != nil {
		return nil, err
	}
	files, size := slices.Clone(in.Files), 0
	for i, f := range files {
		if f.SHA256 != "" {
			text, ok := texts[f.Source]
			if !ok {
				return nil, changed(f, "no longer exists, is not a text, or is too long")
			}
			if got := sha256.Sum256([]byte(text)); hex.EncodeToString(got[:]) != f.SHA256 {
				return nil, changed(f, "is another one by now")
			}
			files[i].Content = text
		}
		if size += len(files[i].Content); size > MaxCommit {
			return nil, fault.Invalid("files", "the limit of all files together is %d octets", MaxCommit)
		}
	}
	return files, nil
}

func changed(f FileChange, how string) error {
	err := fault.New(fault.Policy, fault.CodeStaleView, "The file for %s in the container %s. Nothing was committed: "+
		"read it, and propose the commit again.", f.Path, how)
	err.Field = "files"
	return err
}

// addSource shows a file that comes from a container.
func addSource(p *tool.Preview, f FileChange) {
	p.AddLine("Write "+f.Path, fmt.Sprintf("%s in the container, with the SHA-256 %s", f.Source, f.SHA256))
}
