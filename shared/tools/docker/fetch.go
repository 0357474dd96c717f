package docker

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/tools/container"
	"github.com/countersign-run/countersign/shared/tools/internal/patch"
)

// FetchArgs are the arguments of docker.fetchDependencies.
type FetchArgs struct {
	Image  string `json:"image" jsonschema:"One of the images that the operator allows, with the lock file's installer."`
	Owner  string `json:"owner" jsonschema:"The account that the repository belongs to."`
	Repo   string `json:"repo" jsonschema:"The repository's name."`
	Commit string `json:"commit" jsonschema:"The commit, in 40 digits, as github.listFiles says it."`
	Path   string `json:"path" jsonschema:"The lock file: a path that ends with go.sum, package-lock.json or requirements.txt."`

	Base *FetchBase `json:"base,omitempty"`
}

// FetchBase lists the packages that the call installs. This program sets it when the call is proposed.
type FetchBase struct {
	Volume  string   `json:"volume"`
	Command string   `json:"command"`
	Hosts   []string `json:"hosts"`
	Files   []Locked `json:"files"` // the lock file comes first
}

// Locked is a file that the installer reads.
type Locked struct {
	Path   string `json:"path"`
	SHA256 string `json:"sha256"`
}

// Fetched is the result of docker.fetchDependencies.
type Fetched struct {
	Volume  string   `json:"volume,omitempty"` // for docker.createContainer; empty: nothing was installed
	Use     string   `json:"use,omitempty"`
	Output  string   `json:"output"`
	Refused []string `json:"refused,omitempty"` // hosts that the installer requested and the operator does not allow
}

const volumePattern = `^countersign-deps-[0-9a-f]{32}$`

func (t *tools) fetch() *tool.Tool {
	return tool.Define(tool.Def[FetchArgs, Fetched]{
		Name: FetchDependencies,
		Description: "Installs the dependencies of a lock file at a commit, from " +
			strings.Join(t.Packages.Names(), ", ") + " and no other host, without running their code. The " +
			"result names a volume, which a container created with it has at " + deps + ", read-only. Nothing else " +
			"can be downloaded.",
		SideEffect: true, Untrusted: true,
		Refine: func(s *jsonschema.Schema) {
			delete(s.Properties, "base")
			p := s.Properties
			p["owner"].Pattern, p["repo"].Pattern, p["commit"].Pattern = ownerPattern, repoPattern, commitPattern
			p["image"].MinLength, p["image"].MaxLength = jsonschema.Ptr(1), jsonschema.Ptr(512)
			p["path"].MinLength, p["path"].MaxLength = jsonschema.Ptr(1), jsonschema.Ptr(maxPath)
		},
		Normalize: t.normalizeFetch,
		Bare: func(a FetchArgs) FetchArgs {
			a.Base = nil
			return a
		},
		Complete: func(ctx context.Context, c tool.Call, a FetchArgs) (FetchArgs, error) {
			_, base, err := t.locked(ctx, c, a)
			a.Base = base
			return a, err
		},
		Changes: func(a FetchArgs) (FetchArgs, []tool.Change) {
			a.Base = nil // not free text: the operator's host names do not come from strangers
			return a, nil
		},
		Pinned: func(a FetchArgs) any {
			a.Base = nil
			return a
		},
		Preview: previewFetch,
		Summary: func(a FetchArgs) string { return fmt.Sprintf("Fetched the dependencies of %s.", a.Path) },
		Execute: t.fetchOnce, Reconcile: t.settleFetch, Dispose: t.removeAllWithVolumes,
		Timeout: MaxLimit + grace,
	})
}

func (t *tools) normalizeFetch(a FetchArgs) (FetchArgs, error) {
	if a.Image == "" {
		return a, fault.Invalid("image", "an image is required")
	}
	if !slices.Contains(t.Images, a.Image) {
		return a, forbidden("image", "Containers are made of these images alone: %s.", strings.Join(t.Images, ", "))
	}
	if strings.Trim(a.Repo, ".") == "" {
		return a, fault.Invalid("repo", "not a repository name")
	}
	_, err := installerOf(a.Path)
	return a, err
}

// locked reads the installer's files at the commit, with the account of the call's user.
func (t *tools) locked(ctx context.Context, c tool.Call, a FetchArgs) (files []container.Entry, b *FetchBase,
	err error) {
	i, err := installerOf(a.Path)
	if err != nil {
		return nil, nil, err
	}
	all, err := t.Checkouts.Snapshot(ctx, c, a.Owner, a.Repo, a.Commit)
	if err != nil {
		return nil, nil, err
	}
	b = &FetchBase{Command: i.command(t.Packages.Registry(i.registry)), Hosts: t.Packages.Names()}
	for n, name := range i.beside(a.Path) {
		at := slices.IndexFunc(all.Entries, func(e container.Entry) bool { return e.Path == name && e.Link == "" })
		if at < 0 {
			return nil, nil, fault.Invalid("path", "the commit has no file %s", name)
		}
		text := all.Entries[at].Content
		files = append(files, container.Entry{Path: "source/" + i.files[n], Content: text})
		b.Files = append(b.Files, Locked{name, patch.Sum(string(text))})
	}
	b.Volume = volumeOf(owner(c), a, b)
	return files, b, nil
}

// volumeOf returns the name of the volume, which is derived from its content and its run.
func volumeOf(o container.Owner, a FetchArgs, b *FetchBase) string {
	h := sha256.New()
	fmt.Fprintf(h, "%q", []string{o.Key(), o.RunID, a.Image, b.Command})
	for _, f := range b.Files {
		fmt.Fprintf(h, "%q", f.SHA256)
	}
	return "countersign-deps-" + hex.EncodeToString(h.Sum(nil)[:16])
}

func previewFetch(a FetchArgs) tool.Preview {
	p := tool.Preview{Title: "Fetch dependencies"}
	p.AddLine("Lock file", a.Path)
	p.AddField("Of", fmt.Sprintf("%s/%s at %s", a.Owner, a.Repo, a.Commit))
	b := cmp.Or(a.Base, &FetchBase{})
	for _, f := range b.Files {
		p.AddLine("SHA-256 of "+f.Path, f.SHA256)
	}
	p.AddLine("Image", a.Image)
	p.AddText("Command", b.Command)
	p.AddText("Reaches these hosts alone", strings.Join(b.Hosts, "\n"))
	p.AddLine("Volume", b.Volume)
	p.AddField("Stays", "until the task has ended, read-only at "+deps+" in containers that are created with it")
	return p
}

// fetchOnce fills the volume. After an interruption it starts again, and keeps what the earlier attempt has completed.
func (t *tools) fetchOnce(ctx context.Context, c tool.Call, a FetchArgs) (Fetched, error) {
	e, err := t.engine()
	if err != nil {
		return Fetched{}, err
	}
	files, b, err := t.locked(ctx, c, a)
	if err != nil {
		return Fetched{}, err
	}
	if a.Base != nil && !reflect.DeepEqual(a.Base, b) {
		return Fetched{}, fault.New(fault.Policy, fault.CodeIntegrity, "The lock file, the command or the hosts are "+
			"not those that were approved. Nothing was fetched.")
	}
	id, err := t.filler(ctx, e, c, a, b)
	if err != nil {
		return Fetched{}, err
	}
	got, failed := t.fill(ctx, e, id, files, b)
	gone := e.Remove(ctx, id)
	switch {
	case gone != nil && !errors.Is(gone, container.ErrMissing):
		return Fetched{}, tool.Ambiguous(cmp.Or(failed, gone))
	case failed != nil && (gone != nil || tool.IsAmbiguous(failed)):
		// Another process may have replaced the container, and may be filling the volume or have filled it.
		return Fetched{}, tool.Ambiguous(failed)
	case failed != nil:
		if err := e.RemoveVolume(ctx, b.Volume); err != nil && !errors.Is(err, container.ErrMissing) {
			return Fetched{}, tool.Ambiguous(failed)
		}
		return Fetched{}, failed
	}
	got.Volume, got.Use = b.Volume, installers[lastOf(a.Path)].use
	return got, nil
}

func lastOf(file string) string { return file[strings.LastIndexByte(file, '/')+1:] }

// filler returns a running container that can write to the volume and has no network. It first removes the container of
// an earlier attempt.
func (t *tools) filler(ctx context.Context, e Engine, c tool.Call, a FetchArgs, b *FetchBase) (string, error) {
	old, err := e.Find(ctx, owner(c), nameOf(c))
	if err == nil {
		err = e.Remove(ctx, old.ID)
	}
	if err != nil && !errors.Is(err, container.ErrMissing) {
		return "", nothingDone(err)
	}
	has, err := e.All(ctx, owner(c))
	if err == nil {
		err = checkRoom(has, c.RunID)
	}
	if err == nil {
		err = t.roomFor(ctx, e, c, b.Volume)
	}
	if err != nil {
		return "", nothingDone(err)
	}
	kind := installers[lastOf(a.Path)].registry
	if err := e.MakeVolume(ctx, owner(c), container.Volume{Name: b.Volume, Kind: kind}); err != nil {
		return "", tool.Ambiguous(err)
	}
	id, err := e.Create(ctx, owner(c), container.Spec{Name: nameOf(c), ActionID: c.ActionID, Image: a.Image,
		Memory: container.MaxMemory, Volume: b.Volume, Fills: true, Offline: true})
	if errors.Is(err, container.ErrMissing) {
		return "", fault.New(fault.Tool, CodeNoImage, "The container engine does not have this image.")
	}
	if err == nil {
		err = e.Start(ctx, id)
	}
	if err != nil {
		return "", tool.Ambiguous(err)
	}
	return id, nil
}

// roomFor refuses a volume above the limit of a run.
func (t *tools) roomFor(ctx context.Context, e Engine, c tool.Call, name string) error {
	has, err := e.Volumes(ctx, owner(c))
	if err != nil || slices.ContainsFunc(has, func(v container.Volume) bool { return v.Name == name }) {
		return err
	}
	if len(has) >= container.Volumes {
		return fault.New(fault.Policy, CodeTooMany, "This task has fetched dependencies %d times; that is the limit.",
			len(has))
	}
	return nil
}

// settleFetch lets an interrupted call start again. The next attempt keeps what that call has completed.
func (t *tools) settleFetch(ctx context.Context, c tool.Call, _ FetchArgs) (tool.Verdict, Fetched, string, error) {
	e, err := t.engine()
	if err == nil {
		_, err = e.Volumes(ctx, owner(c))
	}
	if err != nil {
		return "", Fetched{}, "", fault.As(err)
	}
	return tool.NotDone, Fetched{}, "", nil
}

// removeAllWithVolumes removes the containers and the volumes of an ended run.
func (t *tools) removeAllWithVolumes(ctx context.Context, c tool.Call) (int, error) {
	n, err := t.removeAll(ctx, c)
	if err != nil {
		return n, err
	}
	has, err := t.Engine.Volumes(ctx, owner(c))
	for _, v := range has {
		switch err := t.Engine.RemoveVolume(ctx, v.Name); {
		case errors.Is(err, container.ErrMissing):
		case err != nil:
			return n, fault.New(fault.Tool, fault.CodeBusy, "A volume is still in use.")
		default:
			n++
		}
	}
	return n, err
}
