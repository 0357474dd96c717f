package github_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/testkit/await"
	"github.com/countersign-run/countersign/shared/testkit/podman"
	engine "github.com/countersign-run/countersign/shared/tools/container/docker"
	"github.com/countersign-run/countersign/shared/tools/docker"
	"github.com/countersign-run/countersign/shared/tools/github"
)

// box is a container with files.
type box map[string]string

const boxID = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

func (b box) Files(_ context.Context, _ tool.Call, id string, paths []string, most int) (map[string]string, error) {
	if id != boxID {
		return nil, fault.NotFound()
	}
	out := map[string]string{}
	for _, p := range paths {
		if text, ok := b[p]; ok && len(text) <= most {
			most -= len(text)
			out[p] = text
		}
	}
	return out, nil
}

func sumOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// taken returns a file of a commit whose content is in a container.
func taken(path, source, text string) map[string]any {
	f := map[string]any{"path": path, "sha256": sumOf(text)}
	if source != "" {
		f["source"] = source
	}
	return f
}

// from returns a commit of files in the box to main of good/site.
func from(t *testing.T, b github.Containers, id string, files ...any) *env {
	t.Helper()
	w := open(t, github.CommitFiles, in(map[string]any{"branch": "main", "message": "Mend it", "containerId": id,
		"files": files}), "git/update-ref")
	w.Tool = github.New(accounts{}, github.Options{Endpoint: "http://github.test/", Timeout: await.Most,
		Containers: b})[github.CommitFiles]
	return w
}

// TestCommitFromContainerAsShown checks that only the shown contents are committed. A file that has changed or
// disappeared is refused.
func TestCommitFromContainerAsShown(t *testing.T) {
	b := box{"/work/a.txt": "A\n", "/tmp/out/b.txt": "B\n"}
	list := []any{taken("a.txt", "", "A\n"), taken("docs/b.txt", "/tmp/x/../out/b.txt", "B\n"),
		taken("copy.txt", "a.txt", "A\n"), files("c.txt", "C\n")[0]}
	w := from(t, b, boxID, list...)
	w.prepare(t)
	b["/work/a.txt"] = "after the commit was made"
	w.execute(t)
	w.wants(t, tool.Done)
	got := w.View()[0].Files
	if got["a.txt"] != "A\n" || got["copy.txt"] != "A\n" || got["docs/b.txt"] != "B\n" || got["c.txt"] != "C\n" {
		t.Errorf("the files are %q", got)
	}
	for name, change := range map[string]func(box){
		"another":  func(b box) { b["/tmp/out/b.txt"] = "b\n" },
		"gone":     func(b box) { delete(b, "/tmp/out/b.txt") },
		"too long": func(b box) { b["/tmp/out/b.txt"] = strings.Repeat("B", github.MaxCommit+1) },
	} {
		b := box{"/work/a.txt": "A\n", "/tmp/out/b.txt": "B\n"}
		w := from(t, b, boxID, list...)
		change(b)
		if _, err := w.Tool.Prepare(t.Context(), w.Call); !fault.Is(err, fault.Policy, fault.CodeStaleView) ||
			!strings.Contains(err.Error(), "docs/b.txt") {
			t.Errorf("%s: %v; want error %v %v, the error with “docs/b.txt”",
				name, err, fault.Policy, fault.CodeStaleView)
		}
		if n := w.Calls("git/create-tree"); n != 0 {
			t.Errorf("%s: %d trees were made", name, n)
		}
	}
	foreign := from(t, b, strings.Repeat("f", 64), list...)
	if _, err := foreign.Tool.Prepare(t.Context(), foreign.Call); !fault.Is(err, fault.Auth, fault.CodeNotFound) {
		t.Errorf("another's container: %v", err)
	}
	half := strings.Repeat("x", github.MaxCommit/2+1)
	both := from(t, box{"/work/a": half}, boxID, taken("a", "", half), files("b", half)[0])
	if _, err := both.Tool.Prepare(t.Context(), both.Call); !fault.Is(err, fault.Validation, "invalid") {
		t.Errorf("too much in all: %v", err)
	}
}

// TestCommitFromContainer commits the output of a script from a container on a real engine.
func TestCommitFromContainer(t *testing.T) {
	host := podman.Start(t)
	e, err := engine.Open(engine.Config{Host: host.Host})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Close() }) // it never fails
	reader := docker.Reader{Engine: e}
	w := from(t, reader, boxID, taken("x", "", "x"))
	in := docker.New(docker.Options{Engine: e, Images: []string{podman.Image}})
	do := func(id, name string, args map[string]any, out any) {
		t.Helper()
		raw, err := json.Marshal(args)
		if err != nil {
			t.Fatal(err)
		}
		c := tool.Call{UID: w.Call.UID, RunID: w.Call.RunID, ActionID: id, Output: io.Discard}
		if c.Args, err = in[name].Normalize(raw); err != nil {
			t.Fatal(err)
		}
		if in[name].Prepares() {
			if c.Handle, err = in[name].Prepare(t.Context(), c); err != nil {
				t.Fatal(err)
			}
		}
		result, err := in[name].Execute(t.Context(), c)
		if err != nil || json.Unmarshal(result, out) != nil {
			t.Fatalf("%s: %s, %v; want no error from json.Unmarshal", name, result, err)
		}
	}
	var made docker.Created
	do("a1", docker.Create, map[string]any{"options": map[string]any{"image": podman.Image, "memory": 64}}, &made)
	var ran docker.Result
	do("a2", docker.Script, map[string]any{"containerId": made.ID, "script": `mkdir src; printf 'new\n' >src/x.txt
ln -s src/x.txt link; printf '\377' >bin; sha256sum src/x.txt`}, &ran)
	var read docker.FileText
	do("a3", docker.ReadFile, map[string]any{"containerId": made.ID, "path": "src/x.txt"}, &read)
	if read.SHA256 != sumOf("new\n") || !strings.HasPrefix(ran.Stdout, read.SHA256) {
		t.Fatalf("it is read as %+v, and the container says %q", read, ran.Stdout)
	}
	got, err := reader.Files(t.Context(), w.Call, made.ID, []string{"/work/src/x.txt", "/work/link", "/work/bin",
		"/work/none", "/work/src"}, 100)
	if want := "map[/work/link:new\n /work/src/x.txt:new\n]"; err != nil || fmt.Sprint(got) != want {
		t.Errorf("read are %q, %v", fmt.Sprint(got), err)
	}
	w.Call.Args = json.RawMessage(strings.NewReplacer(boxID, made.ID, sumOf("x"), read.SHA256, "/work/x",
		"/work/src/x.txt").Replace(string(w.Call.Args)))
	w.prepare(t)
	w.execute(t)
	if got := w.View()[0].Files["x"]; got != "new\n" {
		t.Errorf("the file is %q", got)
	}
}
