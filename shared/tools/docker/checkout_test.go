package docker_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/testkit/fakedocker"
	"github.com/countersign-run/countersign/shared/testkit/fakegoogle"
	"github.com/countersign-run/countersign/shared/testkit/podman"
	"github.com/countersign-run/countersign/shared/testkit/toolstest"
	"github.com/countersign-run/countersign/shared/tools/container"
	engine "github.com/countersign-run/countersign/shared/tools/container/docker"
	"github.com/countersign-run/countersign/shared/tools/docker"
)

// repository is a source with one commit.
type repository struct {
	files container.Snapshot
	err   error
	reads int
}

func (r *repository) Snapshot(_ context.Context, c tool.Call, owner, repo, commit string) (container.Snapshot, error) {
	r.reads++
	if r.err != nil {
		return container.Snapshot{}, r.err
	}
	if c.UID != "ana" || owner != "acme" || repo != "web" || commit != aCommit {
		return container.Snapshot{}, fault.NotFound()
	}
	return r.files, nil
}

var aCommit = strings.Repeat("c0", 20)

func checkout(change map[string]any) map[string]any {
	at := map[string]any{"owner": "acme", "repo": "web", "commit": aCommit}
	for name, v := range change {
		at[name] = v
	}
	return map[string]any{"options": map[string]any{"image": image, "memory": 64, "checkout": at}}
}

// TestCheckout checks that the files are in /work, once, before the container's ID is returned, and that an interrupted
// checkout starts again.
func TestCheckout(t *testing.T) {
	host := podman.Start(t)
	e, err := engine.Open(engine.Config{Host: host.Host})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Close() }) // it never fails
	big := []byte(strings.Repeat("0123456789abcdef", 1<<16))
	from := &repository{files: container.Snapshot{LeftOut: 2, Entries: []container.Entry{
		{Path: "README.md", Content: []byte("# Hi\n")}, {Path: "bin/run", Program: true,
			Content: []byte("#!/bin/sh\necho ran\n")},
		{Path: "link", Link: "bin/run"}, {Path: "raw", Content: []byte{0, 0xff}}, {Path: "big", Content: big}}}}
	r := &real{tools: docker.New(docker.Options{Engine: e, Images: []string{image}, Checkouts: from}), host: host}
	c, err := r.prepared(t, docker.Create, checkout(nil))
	if err != nil {
		t.Fatal(err)
	}
	settled := func(want tool.Verdict) string {
		t.Helper()
		out, err := r.tools[docker.Create].Reconcile(t.Context(), c)
		if err != nil || out.Verdict != want {
			t.Fatalf("it is settled as %+v, %v; want %s", out, err, want)
		}
		return string(out.Result)
	}
	settled(tool.NotDone)
	from.err = errors.New("the process dies here")
	if _, err := r.tools[docker.Create].Execute(t.Context(), c); err == nil {
		t.Fatal("it was checked out without a source")
	}
	if n := host.Containers(); n != 0 {
		t.Errorf("%d containers are left of what failed", n)
	}
	settled(tool.NotDone)
	from.err = nil
	result, err := r.tools[docker.Create].Execute(t.Context(), c)
	if err != nil || !strings.Contains(string(result), `"checkout":{"commit":"`+aCommit+`","files":5,"leftOut":2}`) {
		t.Fatalf("it is %s, %v", result, err)
	}
	if got := settled(tool.Done); got != string(result) {
		t.Errorf("it is settled as %s, and was %s", got, result)
	}
	again, err := r.tools[docker.Create].Execute(t.Context(), c)
	if err != nil || string(again) != string(result) || from.reads != 2 || host.Containers() != 1 {
		t.Errorf("again it is %s, %v, after %d reads", again, err, from.reads)
	}
	shown := must[docker.Result](t, r, docker.Shell, map[string]any{
		"command": "./link; cat README.md; wc -c <big; wc -c <raw; ls -l README.md; rm .countersign-checkout"})
	if !strings.HasPrefix(shown.Stdout, "ran\n# Hi\n1048576\n2\n-rw-r--r--") || shown.ExitCode != 0 {
		t.Errorf("in the container: %+v", shown)
	}
	settled(tool.NotDone) // like a call whose process died in the middle
	if got, err := r.tools[docker.Create].Execute(t.Context(), c); err != nil || string(got) != string(result) {
		t.Errorf("taken up again it is %s, %v", got, err)
	}
}

// TestCheckoutFails checks that a failed checkout leaves no container, or reports that it may have left one.
func TestCheckoutFails(t *testing.T) {
	for name, tt := range map[string]struct {
		look      int // exit code of the check for the mark
		exit      int
		fault     error
		breaks    bool
		left      int
		ambiguous bool
	}{
		"no tar":                     {look: 127, exit: 127},
		"too little memory":          {look: 1, exit: 1},
		"no such commit":             {look: 1, fault: fault.NotFound()},
		"and it cannot be taken off": {look: 1, exit: 1, breaks: true, left: 1, ambiguous: true},
	} {
		t.Run(name, func(t *testing.T) {
			fake := fakedocker.Open(t, fakedocker.Options{Images: []string{image},
				Exec: func(command []string) (stdout, stderr string, exit int) {
					if strings.Join(command, " ") == "tar -xf - -C /work" {
						return "", "", tt.exit
					}
					return "", "", tt.look
				}})
			e, err := engine.Open(engine.Config{Host: fake.Host})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = e.Close() }) // it never fails
			r := &real{tools: docker.New(docker.Options{Engine: e, Images: []string{image},
				Checkouts: &repository{err: tt.fault}})}
			if tt.breaks {
				fake.Break(fakedocker.Remove, slices.Repeat([]fakegoogle.Fault{{Kind: fakegoogle.StatusBefore}}, 9)...)
			}
			_, err = r.do(t, docker.Create, checkout(nil))
			if err == nil || tool.IsAmbiguous(err) != tt.ambiguous || len(fake.Containers()) != tt.left {
				t.Errorf("%d containers are left, %v", len(fake.Containers()), err)
			}
		})
	}
}

func TestCheckoutSuite(t *testing.T) {
	set := docker.New(docker.Options{Images: []string{image}, Checkouts: &repository{}})
	bad := func(field string, v any) toolstest.Refused {
		return toolstest.Refused{Change: checkout(map[string]any{field: v}), Field: "options/checkout/" + field}
	}
	command := checkout(nil)
	command["options"].(map[string]any)["command"] = []string{"make"}
	toolstest.Suite{
		Tool:   set[docker.Create],
		Args:   checkout(nil),
		Other:  map[string]map[string]any{"options": checkout(map[string]any{"commit": strings.Repeat("0", 40)})},
		Labels: []string{"Image", "Checkout", "Read by", "Memory", "Stays", "Network"},
		Previews: map[string]toolstest.Shown{"all": {Want: []string{"Checkout: acme/web at " + aCommit,
			"Read by: your GitHub account"}}},
		Refused: map[string]toolstest.Refused{"a branch": bad("commit", "main"), "a path": bad("repo", "a/b"),
			"dots": bad("repo", ".."), "no account": bad("owner", "-a"),
			"a token":        {Change: checkout(map[string]any{"token": "x"}), Field: "options/checkout/token"},
			"with a command": {Change: command, Field: "options/command"}},
	}.Run(t)
	args := `{"options":{"env":["A=1"],"image":"` + image + `","checkout":{"commit":"` + aCommit +
		`","owner":"acme","repo":"web"},"memory":64}}`
	bound, err := set[docker.Create].Pinned([]byte(args))
	var is docker.CreateArgs
	if err != nil || json.Unmarshal(bound, &is) != nil || is.Options.Checkout == nil || is.Options.Image != image ||
		is.Options.Checkout.Commit != aCommit || is.Options.Memory != 64 || len(is.Options.Env) != 0 {
		t.Errorf("bound is %s, %v", bound, err)
	}
	call, err := set[docker.Create].Normalize([]byte(`{"options":{"image":"` + image + `","command":["a"]}}`))
	if err == nil {
		call, err = set[docker.Create].Pinned(call)
	}
	target, other := set[docker.Create].Pinned([]byte(`{"options":{"image":"` + image + `"}}`))
	if err != nil || other != nil || string(target) != string(call) {
		t.Errorf("without its memory the target is %s, its calls %s (%v, %v)", target, call, err, other)
	}
	if _, err := judging[docker.Create].Normalize([]byte(args)); !fault.Is(err, fault.Validation, "invalid") {
		t.Errorf("without repositories: %v", err)
	}
}
