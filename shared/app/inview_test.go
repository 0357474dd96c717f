package app_test

import (
	"strings"
	"testing"

	"github.com/countersign-run/countersign/shared/agent/plan"
	"github.com/countersign-run/countersign/shared/testkit/fakedocker"
	"github.com/countersign-run/countersign/shared/testkit/fakegithub"
	"github.com/countersign-run/countersign/shared/testkit/realpart"
)

// TestWriteOfFileSeenInPart makes the model write, within a grant, a file that it has seen only in part. The call is
// refused, and the error names the missing part. If the model has read the whole file, or no part of it, the same call
// runs.
func TestWriteOfFileSeenInPart(t *testing.T) {
	realpart.Unraced(t)
	long, short := strings.Repeat("0123456789 a line\n", 3000), "a line\n"
	type step = func(string) (string, map[string]any)
	call := func(name string, args map[string]any) step {
		return func(string) (string, map[string]any) { return name, args }
	}
	reads := func(path string) step {
		return call("github.readFile", map[string]any{"owner": "acme", "repo": "web", "path": path})
	}
	var engine *fakedocker.Engine
	runs := func(script string) step {
		return func(string) (string, map[string]any) {
			return "docker.executeScript", map[string]any{"containerId": engine.Containers()[0].ID, "script": script}
		}
	}
	for name, c := range map[string]struct {
		readme, file string // the README and a.txt
		path         string // path that is written
		before       []step
		missing      string // the missing part in the refusal; empty if the call runs
	}{
		"the opening had its beginning": {long, short, "README.md", nil, "bytes 6144 to 54000 of 54000"},
		"the opening had all of it":     {short, short, "README.md", nil, ""},
		"it was read after the opening": {long[:18_000], short, "README.md", []step{reads("README.md")}, ""},
		"an earlier task has read it":   {short, short, "a.txt", []step{reads("a.txt"), reflects}, "bytes 0 to 7 of 7"},
		"this task has read it":         {short, short, "a.txt", []step{reflects, reads("a.txt")}, ""},
		"it was never read":             {short, long, "a.txt", nil, ""},
		"a script's output was cut":     {short, long, "a.txt", []step{runs("cat a.txt")}, "the omitted part"},
		"it was read after the script":  {short, long[:18_000], "a.txt", []step{runs("cat a.txt"), reads("a.txt")}, ""},
		"a script prints another file":  {short, long, "a.txt", []step{runs("cat b/b.txt")}, ""},
		"a script printed its beginning": {short, long, "a.txt", []step{runs("head -50 a.txt")},
			"what the script did not print"},
		"a script printed some lines": {short, long, "a.txt", []step{runs("sed -n '1,20p' a.txt")},
			"what the script did not print"},
		"it was read after its beginning": {short, long[:18_000], "a.txt",
			[]step{runs("cat a.txt | head"), reads("a.txt")}, ""},
		"a secret was taken out": {short, short, "a.txt", []step{runs("cat a.txt; echo secrets")},
			"the redacted secrets"},
		"it has more than a megabyte": {short, strings.Repeat(long, 30), "a.txt", []step{reads("a.txt")},
			"to 1620000 of 1620000"},
	} {
		t.Run(name, func(t *testing.T) {
			engine = fakedocker.Open(t, fakedocker.Options{Images: []string{"localhost/go:1"},
				Exec: func(command []string) (stdout, stderr string, exit int) {
					if strings.Contains(command[len(command)-1], "secrets") {
						return "password=hunter22\n", "", 0
					}
					return long, "", 0
				}})
			w := deploy(t, "DOCKER_HOST="+engine.Host, "DOCKER_IMAGES=localhost/go:1")
			w.GitHub.Add(fakegithub.Seed{Owner: "acme", Name: "web", Writers: []string{"ana"},
				Files: map[string]string{"README.md": c.readme, "a.txt": c.file}})
			w.linkGitHub("ana", "ana")
			container := map[string]any{"options": map[string]any{"image": "localhost/go:1"}}
			target := map[string]any{"owner": "acme", "repo": "web", "branch": "main",
				"files": []any{map[string]any{"path": c.path}}}
			s := &steps{tasks: 2, grants: []any{
				map[string]any{"tool": "docker.createContainer", "target": container, "maxCalls": 1},
				map[string]any{"tool": "docker.executeScript", "target": map[string]any{}, "maxCalls": 2},
				map[string]any{"tool": "github.commitFiles", "target": target, "maxCalls": 2}}}
			s.calls = append([]step{call("docker.createContainer", container)}, c.before...)
			s.calls = append(s.calls, call("github.commitFiles", map[string]any{"owner": "acme", "repo": "web",
				"branch": "main", "message": "Mend",
				"files": []any{map[string]any{"path": c.path, "content": "written anew"}}}))
			got := w.carriedOut(s)
			if got.Status != plan.StatusCompleted {
				t.Fatalf("it is %s, told %.500s", got.Status, s.told)
			}
			last := s.told[len(s.told)-1]
			refused := strings.Contains(last, "only in part: ") && strings.Contains(last, c.missing)
			if refused != (c.missing != "") || c.missing == "" && strings.Contains(last, `"error"`) {
				t.Errorf("the commit is answered %.400s", last)
			}
		})
	}
}

// TestWriteByScriptOfFileSeenInPart makes a script in a container write a file that the model has seen only in part.
// The script does not run.
func TestWriteByScriptOfFileSeenInPart(t *testing.T) {
	const image = "localhost/go:1"
	for script, missing := range map[string]string{
		"cat > README.md <<'E'\nnew\nE":           "bytes 6144 to 54000 of 54000",
		"cd /work && printf '%s' new > README.md": "bytes 6144 to 54000 of 54000",
		"echo new | tee ./README.md":              "bytes 6144 to 54000 of 54000",
		"echo more >> README.md":                  "",
		"echo new > other.txt":                    "",
	} {
		ran := []string{}
		engine := fakedocker.Open(t, fakedocker.Options{Images: []string{image},
			Exec: func(command []string) (stdout, stderr string, exit int) {
				ran = append(ran, command[len(command)-1])
				return "", "", 0
			}})
		w := deploy(t, "DOCKER_HOST="+engine.Host, "DOCKER_IMAGES="+image)
		w.GitHub.Add(fakegithub.Seed{Owner: "acme", Name: "web", Writers: []string{"ana"},
			Files: map[string]string{"README.md": strings.Repeat("0123456789 a line\n", 3000)}})
		w.linkGitHub("ana", "ana")
		container := map[string]any{"options": map[string]any{"image": image}}
		s := &steps{grants: []any{map[string]any{"tool": "docker.createContainer", "target": container, "maxCalls": 1},
			map[string]any{"tool": "docker.executeScript", "target": map[string]any{}, "maxCalls": 1}}}
		s.calls = append(s.calls, func(string) (string, map[string]any) { return "docker.createContainer", container },
			func(string) (string, map[string]any) {
				id := engine.Containers()[0].ID
				return "docker.executeScript", map[string]any{"containerId": id, "script": script}
			})
		if got := w.carriedOut(s); got.Status != plan.StatusCompleted {
			t.Fatalf("it is %s, told %.500s", got.Status, s.told)
		}
		last := s.told[len(s.told)-1]
		if strings.Contains(last, "only in part: ") != (missing != "") || !strings.Contains(last, missing) ||
			(len(ran) > 0) != (missing == "") {
			t.Errorf("%s: ran %q, answered %.300s", script, ran, last)
		}
	}
}
