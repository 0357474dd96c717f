package crash

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/countersign-run/countersign/scripts/prove/proof"
	"github.com/countersign-run/countersign/shared/app"
	"github.com/countersign-run/countersign/shared/testkit/invariants"
	"github.com/countersign-run/countersign/shared/tools/container"
	"github.com/countersign-run/countersign/shared/tools/docker"
	"github.com/countersign-run/countersign/shared/tools/github"
)

// Kinds that run as sessions of the planner, each in a repository of the trial's user.
var (
	issue  = kind{name: "issue of a plan", tool: github.CreateIssue, mode: "draft", plans: true}
	pull   = kind{name: "pull request of a plan", tool: github.CreatePullRequest, mode: "draft", plans: true}
	commit = kind{name: "commit of a plan", tool: github.CommitFiles, mode: "draft", plans: true}
	patch  = kind{name: "patch of a plan", tool: github.CommitFiles, mode: "draft", plans: true, patches: true}
	create = kind{name: "container of a plan", tool: docker.Create, mode: "draft", plans: true, contained: true}
	script = kind{name: "script of a plan", tool: docker.Script, mode: "draft", plans: true, contained: true}
	edit   = kind{name: "edit of a plan", tool: docker.EditFile, mode: "draft", plans: true, contained: true}
	fetch  = kind{name: "dependencies of a plan", tool: docker.FetchDependencies, mode: "draft", plans: true,
		contained: true}
)

var (
	planned  = func(k kind) bool { return k.plans }
	anIssues = func(k kind) bool { return k.tool == issue.tool } // how a session ends does not depend on its tool
)

// branch is the second branch of the repositories, besides main. Both have seeded as README.md, and so has each
// container.
const (
	branch = "fix"
	readme = "README.md"
	seeded = "A site."

	lockFile, manifest = "go.sum", "go.mod"
)

// inside reports whether the kind's tool acts in a container that another tool has made.
func (k kind) inside() bool { return k.tool == script.tool || k.tool == edit.tool }

// bound returns the arguments that a grant pins for a call of this kind; planned returns all.
func (k kind) bound(owner string) map[string]any {
	switch k.tool {
	case create.tool:
		return map[string]any{"options": map[string]any{"image": image, "memory": 512}}
	case script.tool, edit.tool:
		return map[string]any{}
	}
	in := map[string]any{"owner": owner, "repo": "web"}
	switch k.tool {
	case fetch.tool:
		in["image"], in["commit"], in["path"] = image, k.commit, lockFile
	case pull.tool:
		in["head"], in["base"] = branch, "main"
	case commit.tool:
		in["branch"], in["files"] = branch, []any{map[string]any{"path": readme}}
	}
	return in
}

func (k kind) planned(owner, name string) map[string]any {
	in := k.bound(owner)
	switch k.tool {
	case commit.tool:
		in["message"], in["files"] = name, []any{map[string]any{"path": readme, "content": name}}
		if k.patches {
			in["files"] = []any{map[string]any{"path": readme, "edits": []any{map[string]any{"old": seeded,
				"new": name}}}}
		}
	case create.tool, fetch.tool:
	case script.tool:
		in["script"] = "echo " + name
	case edit.tool:
		return edited(seeded, name)
	default:
		in["title"], in["body"] = name, "hello"
	}
	return in
}

// edited returns an edit of a container's file that replaces all of its text.
func edited(was, is string) map[string]any {
	return map[string]any{"path": readme, "sha256": sumOf(was), "edits": []any{map[string]any{"old": was, "new": is}}}
}

func sumOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// committed returns the commits on the trial's branch. GitHub does not report which action made a commit; the handle in
// the action's intent does.
func (t *trial) committed() (all []invariants.Effect) {
	begun, err := invariants.Handles(t.ctx, t.env.store, t.runs[0])
	proof.Must(err)
	for _, c := range t.env.cloud.GitHub.Commits(t.uid, "web", branch) {
		if !strings.HasPrefix(c.Message, t.uid) {
			continue // the commit was part of the initial content
		}
		e := invariants.Effect{UID: t.uid, Agrees: func(args json.RawMessage) error {
			var want github.NewCommit
			if err := json.Unmarshal(args, &want); err != nil {
				return err
			}
			text := want.Files[0].Content
			if edits := want.Files[0].Edits; len(edits) > 0 {
				text = edits[0].New // it replaces all of the file
			}
			if c.Message != want.Message || c.Files[readme] != text {
				return fmt.Errorf("the commit is %q, with %q", c.Message, c.Files)
			}
			return nil
		}}
		for handle, action := range begun {
			if strings.Contains(handle, `"sha":"`+c.SHA+`"`) {
				e.ActionID = action
			}
		}
		all = append(all, e)
	}
	return all
}

// image is the image of the containers.
const image = "localhost/small:1"

// contained returns the containers that were started for the trial's run, and the scripts that were started in them or
// the writes to their files.
func (t *trial) contained() (all []invariants.Effect) {
	begun, err := invariants.Handles(t.ctx, t.env.store, t.runs[0])
	proof.Must(err)
	for _, d := range t.env.engine.Deeds() {
		if d.Container.Labels["run.countersign.run"] != t.runs[0] {
			continue
		}
		e := invariants.Effect{UID: t.uid, ActionID: d.Container.Labels["run.countersign.action"]}
		if t.kind.tool == fetch.tool {
			if e.Agrees = filled(d.Filled); d.Filled != "" {
				all = append(all, e)
			}
			continue
		}
		if d.Process != "" && t.kind.tool == edit.tool {
			for name, text := range d.Wrote {
				all = append(all, invariants.Effect{UID: t.uid, ActionID: begun[sumOf(text)],
					Agrees: wroteTo(name, text)})
			}
			continue
		}
		if d.Process != "" {
			e.ActionID = begun[d.Container.ID+"/"+d.Process]
			e.Agrees = func(args json.RawMessage) error {
				var want docker.ScriptArgs
				if err := json.Unmarshal(args, &want); err != nil {
					return err
				}
				if d.Command[len(d.Command)-1] != want.Script || d.Container.ID != want.ContainerID {
					return fmt.Errorf("%q was run in %s", d.Command, d.Container.ID)
				}
				return nil
			}
		}
		all = append(all, e)
	}
	return all
}

// wroteTo returns the comparison of a written file with the approved edit.
func wroteTo(name, text string) func(json.RawMessage) error {
	return func(args json.RawMessage) error {
		var want docker.EditArgs
		if err := json.Unmarshal(args, &want); err != nil {
			return err
		}
		if want.Path != container.Work+"/"+name || text != want.Edits[0].New {
			return fmt.Errorf("%s has %q", name, text)
		}
		return nil
	}
}

// filled returns the comparison of a filled volume with the approved one.
func filled(volume string) func(json.RawMessage) error {
	return func(args json.RawMessage) error {
		var want docker.FetchArgs
		if err := json.Unmarshal(args, &want); err != nil {
			return err
		}
		if want.Base == nil || want.Base.Volume != volume {
			return fmt.Errorf("the volume %s was filled", volume)
		}
		return nil
	}
}

// count returns the number of effects of the kind's tool. The container of a script or an edit does not count.
func (t *trial) count() (n int) {
	all := t.effects()
	if !t.kind.inside() {
		return len(all)
	}
	for _, e := range all {
		if e.Agrees != nil {
			n++
		}
	}
	return n
}

// checkContainers reports containers and volumes that an ended run has left.
func (t *trial) checkContainers() {
	for _, c := range t.env.engine.Containers() {
		if c.Labels["run.countersign.run"] == t.runs[0] && len(t.view(0).Approvals) == 0 {
			t.problem("a container was not removed: %s; %s", c.Name, t.ends())
		}
	}
	for _, v := range t.env.engine.AllVolumes() {
		if v.Labels["run.countersign.run"] == t.runs[0] && len(t.view(0).Approvals) == 0 {
			t.problem("a volume was not removed: %s; %s", v.Name, t.ends())
		}
	}
}

// struckEngine puts points around the calls to a container engine.
type struckEngine struct {
	app.Engine
	*points
}

// Find implements [docker.Engine].
func (e struckEngine) Find(ctx context.Context, o container.Owner, ref string) (container.Container, error) {
	defer e.around("engine's find")()
	return e.Engine.Find(ctx, o, ref)
}

// Create implements [docker.Engine].
func (e struckEngine) Create(ctx context.Context, o container.Owner, s container.Spec) (string, error) {
	defer e.around("engine's create")()
	return e.Engine.Create(ctx, o, s)
}

// Start implements [docker.Engine].
func (e struckEngine) Start(ctx context.Context, id string) error {
	defer e.around("engine's start")()
	return e.Engine.Start(ctx, id)
}

// Remove implements [docker.Engine].
func (e struckEngine) Remove(ctx context.Context, id string) error {
	defer e.around("engine's remove")()
	return e.Engine.Remove(ctx, id)
}

// NewProcess implements [docker.Engine].
func (e struckEngine) NewProcess(ctx context.Context, id string, command []string) (string, error) {
	defer e.around("engine's new process")()
	return e.Engine.NewProcess(ctx, id, command)
}

// Feed implements [docker.Engine].
func (e struckEngine) Feed(ctx context.Context, id string, command []string, in []byte) (int, error) {
	defer e.around("engine's feed")()
	return e.Engine.Feed(ctx, id, command, in)
}

// Run implements [docker.Engine].
func (e struckEngine) Run(ctx context.Context, process string, to container.Streams) error {
	defer e.around("engine's run")()
	return e.Engine.Run(ctx, process, to)
}

// Converse implements [docker.Engine].
func (e struckEngine) Converse(ctx context.Context, id string, command []string, in io.Reader,
	to container.Streams) (int, error) {
	defer e.around("engine's installer")()
	return e.Engine.Converse(ctx, id, command, in, to)
}

// MakeVolume implements [docker.Engine].
func (e struckEngine) MakeVolume(ctx context.Context, o container.Owner, v container.Volume) error {
	defer e.around("engine's new volume")()
	return e.Engine.MakeVolume(ctx, o, v)
}

// RemoveVolume implements [docker.Engine].
func (e struckEngine) RemoveVolume(ctx context.Context, name string) error {
	defer e.around("engine's removal of a volume")()
	return e.Engine.RemoveVolume(ctx, name)
}

// Look implements [docker.Engine].
func (e struckEngine) Look(ctx context.Context, process string) (container.Process, error) {
	defer e.around("engine's look")()
	return e.Engine.Look(ctx, process)
}
