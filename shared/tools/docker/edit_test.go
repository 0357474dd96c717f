package docker_test

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"testing"

	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/testkit/fakedocker"
	"github.com/countersign-run/countersign/shared/testkit/fakegoogle"
	"github.com/countersign-run/countersign/shared/testkit/toolstest"
	engine "github.com/countersign-run/countersign/shared/tools/container/docker"
	"github.com/countersign-run/countersign/shared/tools/docker"
)

func sumOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

func edit(id, path, sum, old, with string) map[string]any {
	return map[string]any{"containerId": id, "path": path, "sha256": sum,
		"edits": []any{map[string]any{"old": old, "new": with}}}
}

func TestEditSuite(t *testing.T) {
	sum := strings.Repeat("0b", 32)
	toolstest.Suite{
		Tool: judging[docker.EditFile],
		Args: edit(anID, "a.go", sum, "x", "y"),
		Other: map[string]map[string]any{"containerId": {"containerId": sum}, "path": {"path": "b.go"},
			"sha256": {"sha256": anID}, "edits": {"edits": []any{map[string]any{"old": "x", "new": "z"}}},
			"content": {"edits": []any{}, "content": "z"}},
		Free:   []string{"containerId", "path", "sha256", "edits", "content"},
		Labels: []string{"File", "Container", "Only if its SHA-256 is", "Replace, 1", "With, 1", "The whole file"},
		Previews: map[string]toolstest.Shown{
			"edits": {Want: []string{"File: /work/a.go", "Replace, 1: x", "With, 1: y"}},
			"a new file": {Change: map[string]any{"edits": nil, "sha256": nil, "content": "new\n"},
				Want: []string{"The whole file: new"}}},
		Refused: map[string]toolstest.Refused{
			"edits without a sum": {Change: map[string]any{"sha256": nil}, Field: "sha256"},
			"edits and content":   {Change: map[string]any{"content": "x"}, Field: "edits"},
			"an edit of nothing": {Change: map[string]any{"edits": []any{map[string]any{"old": "", "new": "z"}}},
				Field: "edits/0/old"},
			"a path of two lines": {Change: map[string]any{"path": "a\nb"}, Field: "path"},
			"a short id":          {Change: map[string]any{"containerId": "0a"}, Field: "containerId"},
			"NUL":                 {Change: map[string]any{"edits": nil, "content": "a\x00"}, Field: "content"},
			"too much": {Change: map[string]any{"edits": nil, "content": strings.Repeat("x", 256<<10+1)},
				Field: "content"},
		},
	}.Run(t)
}

// TestEdit changes and creates files in a container. Changes that were not approved are refused.
func TestEdit(t *testing.T) {
	r := onPodman(t)
	id := r.create(t, "build")
	long := strings.Repeat("a line that makes the file long\n", 12_000)
	was := "#!/bin/sh\necho one\n"
	must[docker.Result](t, r, docker.Script, script(id, `printf '#!/bin/sh\necho one\n' >run.sh; chmod 755 run.sh
yes 'a line that makes the file long' | head -n 12000 >long; ln -s run.sh link`))

	c, err := r.prepared(t, docker.EditFile, edit(id, "run.sh", sumOf(was), "one", "two"))
	if err == nil {
		c.Args, err = r.tools[docker.EditFile].Complete(t.Context(), c)
	}
	if err != nil {
		t.Fatal(err)
	}
	p, err := r.tools[docker.EditFile].Preview(c.Args)
	if last := p.Fields[len(p.Fields)-1]; err != nil || !last.Diff || last.Label != "Change, +1 −1" ||
		last.Value != "@@ -1,2 +1,2 @@\n #!/bin/sh\n-echo one\n+echo two\n" {
		t.Errorf("the card shows %+v, %v", p, err)
	}
	wants := func(want tool.Verdict) {
		t.Helper()
		if out, err := r.tools[docker.EditFile].Reconcile(t.Context(), c); err != nil || out.Verdict != want {
			t.Errorf("it is settled as %+v, %v; want %s", out, err, want)
		}
	}
	wants(tool.NotDone)
	for range 2 { // the second attempt changes nothing
		if _, err := r.tools[docker.EditFile].Execute(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
	wants(tool.Done)
	ran := must[docker.Result](t, r, docker.Script, script(id, "./run.sh; ls"))
	if ran.Stdout != "two\nlink\nlong\nrun.sh\n" {
		t.Errorf("the script prints %+v", ran)
	}
	for name, args := range map[string]map[string]any{"another version": edit(id, "run.sh", sumOf(was), "one", "two"),
		"a missing file":     edit(id, "none", sumOf(was), "one", "two"),
		"a file that exists": {"containerId": id, "path": "run.sh", "content": "x"}} {
		if _, err := r.do(t, docker.EditFile, args); !fault.Is(err, fault.Policy, fault.CodeStaleView) {
			t.Errorf("%s: %v; want error %v %v", name, err, fault.Policy, fault.CodeStaleView)
		}
	}
	must[docker.Edited](t, r, docker.EditFile, map[string]any{"containerId": id, "path": "new/deep/a.txt",
		"content": "ü\n"})
	must[docker.Edited](t, r, docker.EditFile, edit(id, "link", sumOf("#!/bin/sh\necho two\n"), "two", "three"))
	must[docker.Edited](t, r, docker.EditFile, map[string]any{"containerId": id, "path": "long", "sha256": sumOf(long),
		"content": "short\n"})
	got := must[docker.Result](t, r, docker.Script, script(id, "cat new/deep/a.txt run.sh long; readlink link"))
	if got.Stdout != "ü\n#!/bin/sh\necho three\nshort\nrun.sh\n" {
		t.Errorf("the files are %q", got.Stdout)
	}
	must[docker.Result](t, r, docker.Script, script(id, "echo other >run.sh"))
	wants(tool.Unknown)
	if _, err := r.do(t, docker.EditFile, edit(id, "/etc/passwd", sumOf(""), "a", "b")); err == nil {
		t.Error("another file than the one that was read was changed")
	}
	_, changes, err := r.tools[docker.EditFile].Changes(c.Args)
	if err != nil || len(changes) != 1 || changes[0].Added != "echo two\n" {
		t.Errorf("the changes are %+v, %v", changes, err)
	}
}

// TestEditTooLate stops an edit between its check of the file and its writing, as a paused process does. In the
// meantime another process makes the same edit, or a script changes the file. Neither is overwritten.
func TestEditTooLate(t *testing.T) {
	r := onPodman(t)
	e, err := engine.Open(engine.Config{Host: r.host.Host})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Close() }) // it never fails
	paused := &slow{Engine: e}
	late := docker.New(docker.Options{Engine: paused, Images: []string{image}})[docker.EditFile]
	id := r.create(t, "build")
	now := func(want string) {
		t.Helper()
		got := must[docker.Result](t, r, docker.Script, script(id, "cat a new 2>/dev/null; ls -A"))
		if got.Stdout != want {
			t.Errorf("the container has %q; want %q", got.Stdout, want)
		}
	}
	must[docker.Result](t, r, docker.Script, script(id, "echo one >a"))
	c, err := r.prepared(t, docker.EditFile, edit(id, "a", sumOf("one\n"), "one", "two"))
	if err != nil {
		t.Fatal(err)
	}
	paused.meanwhile = func() {
		if _, err := r.tools[docker.EditFile].Execute(t.Context(), c); err != nil {
			t.Error(err)
		}
		must[docker.Result](t, r, docker.Script, script(id, "echo three >>a"))
	}
	if out, err := late.Execute(t.Context(), c); !fault.Is(err, fault.Policy, fault.CodeStaleView) {
		t.Errorf("the late edit ends with %s, %v", out, err)
	}
	now("two\nthree\na\n")
	c, err = r.prepared(t, docker.EditFile, map[string]any{"containerId": id, "path": "new", "content": "x\n"})
	if err != nil {
		t.Fatal(err)
	}
	paused.meanwhile = func() { must[docker.Result](t, r, docker.Script, script(id, "echo mine >new")) }
	if out, err := late.Execute(t.Context(), c); !fault.Is(err, fault.Policy, fault.CodeStaleView) {
		t.Errorf("a late new file ends with %s, %v", out, err)
	}
	now("two\nthree\nmine\na\nnew\n")
}

// TestEditReconciledByOneRead settles an edit while the engine answers one request and then fails. The file has not
// changed, so the verdict must not depend on a second request.
func TestEditReconciledByOneRead(t *testing.T) {
	const was = "echo one\n"
	var packed bytes.Buffer
	w := tar.NewWriter(&packed)
	if err := w.WriteHeader(&tar.Header{Name: "work/run.sh", Mode: 0o644, Size: int64(len(was))}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write([]byte(was)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	run := func([]string) (string, string, int) { return packed.String(), "", 0 }
	fake := newWorld(t, fakedocker.Options{Exec: run})
	id := fake.made(t, "build")
	c := fake.provider(t, docker.EditFile, edit(id, "run.sh", sumOf(was), "one", "two"), nil).Call
	c.Handle = sumOf("echo two\n")
	fake.Break(fakedocker.ExecCreate, fakegoogle.Fault{}, status(500, ""))
	out, err := fake.tools[docker.EditFile].Reconcile(t.Context(), c)
	if err != nil || out.Verdict != tool.NotDone {
		t.Errorf("it is settled as %+v, %v", out, err)
	}
	out, err = fake.tools[docker.EditFile].Reconcile(t.Context(), c)
	if err == nil {
		t.Errorf("without an answer of the engine, it is settled as %+v", out)
	}
}
