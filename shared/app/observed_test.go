package app_test

import (
	"archive/tar"
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/countersign-run/countersign/shared/agent/plan"
	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/engine/planner"
	"github.com/countersign-run/countersign/shared/testkit/fakedocker"
	"github.com/countersign-run/countersign/shared/testkit/fakegemini"
	"github.com/countersign-run/countersign/shared/testkit/fakegithub"
)

// steps is a model that plans one task or several, with grants, and then makes one call after the other. Each call gets
// the observations before it.
type steps struct {
	prompt string // empty: do it
	tasks  int    // number of planned tasks; 0 means one
	grants []any
	tools  []string // tools of the task, in addition to those of the grants
	green  int      // tries until the task's checks are green; 0: they need not be
	calls  []func(observed string) (name string, args map[string]any)
	told   []string // the observations of each call
}

func (s *steps) turn(r fakegemini.Request) fakegemini.Turn {
	if r.Has("propose_plan") {
		tasks := []any{map[string]any{"title": "Do it", "goal": "It is done.", "greenWithin": s.green,
			"tools": append(granted(s.grants), s.tools...)}}
		for range s.tasks - 1 {
			tasks = append(tasks, tasks[0])
		}
		return fakegemini.Turn{Calls: []fakegemini.Call{{Name: "propose_plan", Args: map[string]any{"tasks": tasks,
			"grants": s.grants}}}}
	}
	observed := ""
	if all := r.Responses(); len(all) > 0 {
		observed = string(all[len(all)-1].Response)
		s.told = append(s.told, observed)
	}
	name, args := reflects(observed)
	if len(s.calls) > 0 {
		name, args = s.calls[0](observed)
		s.calls = s.calls[1:]
	}
	if name != "reflect" {
		args["reasoning"] = "It is next."
	}
	return fakegemini.Turn{Calls: []fakegemini.Call{{Name: name, Args: args}}}
}

// reflects ends a task.
func reflects(string) (name string, args map[string]any) {
	return "reflect", map[string]any{"is_task_complete": true, "reflection": "Done.", "result": "Done."}
}

func granted(grants []any) (tools []string) {
	for _, g := range grants {
		tools = append(tools, g.(map[string]any)["tool"].(string))
	}
	return tools
}

// planned plans over HTTP, and returns the session with the waiting plan.
func (w *proved) planned(s *steps) (got planner.Session) {
	w.t.Helper()
	w.SetModel(s.turn)
	w.plans(&got, "", fmt.Sprintf(`{"prompt":%q,"repoUrl":"%s/acme/web","deadline":%q}`, cmp.Or(s.prompt, "do it"),
		w.App.Config.GitHubURL, time.Now().Add(time.Hour).Format(time.RFC3339)))
	w.plans(&got, "/"+got.SessionID, "")
	if got.Status != plan.StatusAwaiting {
		w.t.Fatalf("it was planned as %+v", got)
	}
	return got
}

// carriedOut plans, confirms, and returns the ended session.
func (w *proved) carriedOut(s *steps) planner.Session {
	w.t.Helper()
	got := w.planned(s)
	path := "/" + got.SessionID
	w.plans(&got, path+"/execute", `{"planHash":"`+got.PlanHash+`"}`)
	w.plans(&got, path, "")
	return got
}

// ranWithoutSuccess compares a run's record with a command that ran and ended with a non-zero exit code, so what it had
// done remains.
func (w *proved) ranWithoutSuccess(runID, says string) {
	w.t.Helper()
	var view run.View
	w.decode("GET", "/api/agent/runs/"+runID, &view)
	at := slices.IndexFunc(view.Actions, func(a *run.ActionView) bool { return a.Ran })
	if at < 0 || view.Actions[at].ExecutionStatus != run.FailedKnown {
		w.t.Errorf("no action of %s has run without success: %+v", runID, view)
	}
	words := view.Summary + view.Record
	if !strings.Contains(words, says) || !strings.Contains(words, "Its effects until then remain.") ||
		strings.Contains(words, "Not done: Run") || strings.Contains(words, "othing was sent or changed") {
		w.t.Errorf("the run says %q", words)
	}
	var chain struct {
		Entries []struct{ Facts map[string]string }
	}
	w.decode("GET", "/api/agent/audit?runId="+runID, &chain)
	if !slices.ContainsFunc(chain.Entries, func(e struct{ Facts map[string]string }) bool {
		return e.Facts["ran"] == "yes"
	}) {
		w.t.Errorf("the audit does not say that it ran: %+v", chain)
	}
}

// decode sends a request and decodes the answer.
func (w *proved) decode(method, path string, into any) {
	w.t.Helper()
	a := w.call(method, path, "")
	if err := json.Unmarshal(a.Body, into); err != nil || a.HTTP != 200 {
		w.t.Fatalf("%v %d %s; want a.HTTP 200", err, a.HTTP, a.Body)
	}
}

// packed is an archive of one file.
func packed(t *testing.T, name, text string) string {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	err := w.WriteHeader(&tar.Header{Name: name, Typeflag: tar.TypeReg, Size: int64(len(text)), Mode: 0o644})
	if err == nil {
		_, err = io.WriteString(w, text)
	}
	if err != nil || w.Close() != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestObservationEnds has a script print a thousand lines and fail, and reads a file of 22 KiB. The model gets the
// end of the output, the errors, the exit code, and the file with its checksum.
func TestObservationEnds(t *testing.T) {
	file := strings.Repeat("a line of the file\n", 1200)
	sum := sha256.Sum256([]byte(file))
	engine := fakedocker.Open(t, fakedocker.Options{Images: []string{"localhost/go:1"},
		Exec: func(command []string) (stdout, stderr string, exit int) {
			if command[0] == "tar" {
				return packed(t, "work/a.txt", file), "", 0
			}
			lines := strings.Repeat("ok  a/package/that/is/tested 0.1s\n", 1000)
			return lines + "FAILED: 3 tests\n", "no such flag\n", 7
		}})
	w := deploy(t, "DOCKER_HOST="+engine.Host, "DOCKER_IMAGES=localhost/go:1")
	w.addSite()
	s := &steps{grants: []any{
		map[string]any{"tool": "docker.createContainer", "target": map[string]any{
			"options": map[string]any{"image": "localhost/go:1"}}, "maxCalls": 1},
		map[string]any{"tool": "docker.executeScript", "target": map[string]any{}, "maxCalls": 1}},
		calls: []func(string) (string, map[string]any){
			func(string) (string, map[string]any) {
				return "docker.createContainer", map[string]any{"options": map[string]any{"image": "localhost/go:1"}}
			},
			func(string) (string, map[string]any) {
				return "docker.executeScript", map[string]any{"containerId": engine.Containers()[0].ID,
					"script": "make test"}
			},
			func(string) (string, map[string]any) {
				return "docker.readFileInContainer", map[string]any{"containerId": engine.Containers()[0].ID,
					"path": "a.txt"}
			}}}
	got := w.carriedOut(s)
	if got.Status != plan.StatusCompleted || len(s.told) != 3 {
		t.Fatalf("it ended as %+v, and was told %q", got, s.told)
	}
	for at, wants := range map[int][]string{
		1: {"FAILED: 3 tests", `"stderr":"no such flag\n"`, `"exitCode":7`, "bytes left out", "the exit code 7"},
		2: {`"sha256":"` + hex.EncodeToString(sum[:]), `"size":22800`, `a line of the file\n","`}} {
		for _, want := range wants {
			if !strings.Contains(s.told[at], want) {
				t.Errorf("of call %d %s is not told: %.300s", at, want, s.told[at])
			}
		}
	}
	if e := got.Log[1]; e.Action.Tool != "docker.executeScript" || e.ExecutionStatus != plan.Failed {
		t.Errorf("the script is on record as %+v", e)
	}
	w.ranWithoutSuccess(got.SessionID, "the exit code 7")
}

// TestObservedInPartNotReplaced makes the model read the beginning of a file and write it back as the whole, within a
// grant. It is refused, and told which bytes are missing. Once the rest is read, the same call runs. The same holds for
// a file of the repository and for an issue's body.
func TestObservedInPartNotReplaced(t *testing.T) {
	file := strings.Repeat("0123456789 a line of the file\n", 3000)
	var engine *fakedocker.Engine // each case has its own: Containers()[0] must be its container
	of := func(tool string, more map[string]any) (string, map[string]any) {
		args := map[string]any{"owner": "acme", "repo": "web"}
		maps.Copy(args, more)
		return tool, args
	}
	commit := func(path, content string) (string, map[string]any) {
		return of("github.commitFiles", map[string]any{"branch": "main", "message": "Mend",
			"files": []any{map[string]any{"path": path, "content": content}}})
	}
	update := func(body string) (string, map[string]any) {
		return of("github.updateIssue", map[string]any{"issueNumber": 1, "updates": map[string]any{"body": body}})
	}
	inContainer := func(offset int) (string, map[string]any) {
		return "docker.readFileInContainer", map[string]any{"containerId": engine.Containers()[0].ID, "path": "a.txt",
			"byteOffset": offset}
	}
	for name, c := range map[string]struct {
		read  func(offset int) (string, map[string]any)
		write func(content string) (string, map[string]any)
		rest  string // how to get the rest, in the refusal
	}{
		"a file in a container": {inContainer, func(s string) (string, map[string]any) { return commit("a.txt", s) },
			"by its sha256"},
		"a file of the repository": {func(n int) (string, map[string]any) {
			return of("github.readFile", map[string]any{"path": "b.txt", "byteOffset": n})
		}, func(s string) (string, map[string]any) { return commit("b.txt", s) }, "github.readFile and an offset"},
		"an issue": {func(n int) (string, map[string]any) {
			return of("github.readIssue", map[string]any{"issueNumber": 1, "bodyOffset": n})
		}, update, "github.readIssue and a bodyOffset"},
	} {
		t.Run(name, func(t *testing.T) {
			engine = fakedocker.Open(t, fakedocker.Options{Images: []string{"localhost/go:1"},
				Exec: func([]string) (stdout, stderr string, exit int) { return packed(t, "work/a.txt", file), "", 0 }})
			w := deploy(t, "DOCKER_HOST="+engine.Host, "DOCKER_IMAGES=localhost/go:1")
			w.GitHub.Add(fakegithub.Seed{Owner: "acme", Name: "web", Writers: []string{"ana"},
				Files:  map[string]string{"README.md": "A site.", "a.txt": "old", "b.txt": file},
				Issues: []fakegithub.SeedIssue{{Author: "ana", Title: "Long", Body: file[:40_000]}}})
			w.linkGitHub("ana", "ana")
			_, its := c.write("")
			delete(its, "message")
			target := map[string]any{"owner": "acme", "repo": "web"}
			grant := map[string]any{"tool": "github.updateIssue", "target": target, "maxCalls": 5}
			if its["files"] != nil {
				path := its["files"].([]any)[0].(map[string]any)["path"]
				target["branch"], target["files"] = "main", []any{map[string]any{"path": path}}
				grant["tool"] = "github.commitFiles"
			} else {
				target["issueNumber"], target["updates"] = 1, map[string]any{}
			}
			container := map[string]any{"options": map[string]any{"image": "localhost/go:1"}}
			read := func(observed string) string {
				var got struct {
					Output struct{ Content, Body string }
				}
				if err := json.Unmarshal([]byte(observed), &got); err != nil {
					t.Fatal(err)
				}
				return got.Output.Content + got.Output.Body
			}
			var content string
			s := &steps{grants: []any{grant, map[string]any{"tool": "docker.createContainer", "target": container,
				"maxCalls": 1}},
				calls: []func(string) (string, map[string]any){
					func(string) (string, map[string]any) { return "docker.createContainer", container },
					func(string) (string, map[string]any) { return c.read(0) },
					func(o string) (string, map[string]any) { content = read(o); return c.write("new " + content) },
					func(string) (string, map[string]any) { return c.read(len(content)) },
					func(o string) (string, map[string]any) { content += read(o); return c.write("new " + content) }}}
			got := w.carriedOut(s)
			if len(s.told) < 3 {
				t.Fatalf("it is %s after %d calls", got.Status, len(s.told))
			}
			if why := s.told[2]; !strings.Contains(why, "only in part: bytes ") || !strings.Contains(why, c.rest) {
				t.Errorf("the refusal says %s", why)
			}
			// text copied from a container or an issue needs approval, and is no longer refused
			done := got.Status == plan.StatusCompleted && !strings.Contains(s.told[len(s.told)-1], `"error"`)
			if asked := len(got.Approvals) == 1 && got.Approvals[0].Tool == grant["tool"]; !done && !asked {
				t.Errorf("after all was read it is %s, told %.300s", got.Status, s.told[len(s.told)-1])
			}
		})
	}
}
