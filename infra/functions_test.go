package infra_test

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/countersign-run/countersign/infra"
	"github.com/countersign-run/countersign/shared/agent/registry"
	"github.com/countersign-run/countersign/shared/api"
	"github.com/countersign-run/countersign/shared/engine/queue"
	"github.com/countersign-run/countersign/shared/testkit"
)

func list(t *testing.T) infra.List {
	t.Helper()
	l, err := infra.Functions()
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// TestFolders checks the list against the folders. Each folder must register its entry point.
func TestFolders(t *testing.T) {
	var want []string
	for _, f := range list(t).Functions {
		want = append(want, f.Folder)
		files, err := filepath.Glob("../" + f.Folder + "/*.go")
		if err != nil || len(files) == 0 {
			t.Errorf("%s: no Go files in %s", f.Name, f.Folder)
			continue
		}
		if !strings.Contains(string(text(t, files[0])), `functions.HTTP("`+f.EntryPoint+`",`) {
			t.Errorf("%s does not register the function %q", files[0], f.EntryPoint)
		}
	}
	sources, err := filepath.Glob("../functions/*/*.go")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, file := range sources {
		got = append(got, strings.TrimPrefix(filepath.Dir(file), "../"))
	}
	slices.Sort(want)
	if got = slices.Compact(got); !slices.Equal(got, want) {
		t.Errorf("folders %v, functions.json %v", got, want)
	}
}

// TestRoutes checks that the list has exactly the served routes. Pages and their files do not belong to the API.
func TestRoutes(t *testing.T) {
	var got, want []string
	for _, f := range list(t).Functions {
		for _, r := range f.Routes {
			if strings.HasPrefix(r.Path, "/api/") || strings.HasPrefix(r.Path, "/.well-known/") ||
				r.Path == "/mcp" {
				got = append(got, f.Name+" "+r.Method+" "+r.Path)
			}
		}
	}
	for _, f := range api.Functions {
		for _, r := range f.Routes {
			want = append(want, f.Name+" "+r.Method+" "+r.Path)
		}
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("functions.json\n%s\nshared/api\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestRights checks that exactly the functions that push have the right to push, that read-only functions have no
// other rights, and that no function both reads text from strangers and signs decisions.
func TestRights(t *testing.T) {
	for _, f := range list(t).Functions {
		if slices.Contains(f.Parts, "push") == f.Public() {
			t.Errorf("%s: callers is %q and its parts are %v", f.Name, f.Callers, f.Parts)
		}
		for _, r := range f.Routes {
			if slices.Contains(f.Parts, "reading") && r.Method != "GET" {
				t.Errorf("%s only reads, and serves %s %s", f.Name, r.Method, r.Path)
			}
		}
		if slices.Contains(f.Parts, "model") && slices.Contains(f.Parts, "decisions") {
			t.Errorf("%s calls a model, which reads text from strangers, and signs decisions", f.Name)
		}
		if f.Callers == "queue" && f.TimeoutSeconds >= 600 {
			t.Errorf("%s runs %d s; Pub/Sub redelivers after 600", f.Name, f.TimeoutSeconds)
		}
	}
}

// chosen lists the optional parts of a deployment.
var chosen = []string{"model-key", "actions", "servers", "github", "engine", "receipts", "webhooks", "devices",
	"mail", "traces-key", "metrics-key"}

// TestTerraformKnows checks that Terraform has a value for every variable of a part, and that the root pins a version
// of every secret that all deployments need.
func TestTerraformKnows(t *testing.T) {
	module := string(text(t, "../terraform/modules/agent/functions.tf"))
	root := string(text(t, "../terraform/main.tf"))
	for name, p := range list(t).Parts {
		for _, variable := range p.Environment {
			if !regexp.MustCompile(`(?m)^ +` + variable + ` += `).MatchString(module) {
				t.Errorf("part %s: terraform/modules/agent/functions.tf has no value for %s", name, variable)
			}
		}
		for _, secret := range p.Secrets {
			if !slices.Contains(chosen, name) && !strings.Contains(root, secret+` = "`) {
				t.Errorf("part %s: terraform/main.tf pins no version of %s", name, secret)
			}
		}
	}
}

// TestRuntime checks that Terraform's default runtime has the Go version of go.mod. With a newer go line, the build
// would download another Go.
func TestRuntime(t *testing.T) {
	mod := find(t, "../go.mod", `(?m)^go 1\.(\d+)\.`)
	if runtime := find(t, "../terraform/modules/agent/variables.tf", `default\s+= "go1(\d+)"`); runtime != mod {
		t.Errorf("go.mod is Go 1.%s, Terraform deploys on go1%s", mod, runtime)
	}
}

func find(t *testing.T, file, pattern string) string {
	t.Helper()
	m := regexp.MustCompile(pattern).FindSubmatch(text(t, file))
	if m == nil {
		t.Fatalf("%s has no %s", file, pattern)
	}
	return string(m[1])
}

// TestHomes checks that the function of each agent in the registry advances the agent's runs.
func TestHomes(t *testing.T) {
	w := testkit.Open(t, testkit.Options{Settings: []string{"TERMINAL=on"}})
	var got, want []string
	for _, f := range list(t).Functions {
		for _, agent := range f.Agents {
			got = append(got, agent+" lives in "+f.Name)
		}
		if f.Rest() && f.Name != registry.DefaultWorker {
			t.Errorf("%s advances the runs of all other agents, want %s", f.Name, registry.DefaultWorker)
		}
	}
	for name, a := range w.App.API.Loop.Agents {
		if a.Worker != "" {
			want = append(want, name+" lives in "+a.Worker)
		}
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("functions.json: %q; the registry of agents: %q", got, want)
	}
}

// TestFilter checks that the filters deliver each message to exactly the function that advances its agent's runs.
func TestFilter(t *testing.T) {
	parse := func(agents ...string) (infra.List, error) {
		text := `{"functions":[`
		for i, list := range append([]string{""}, agents...) {
			if list != "" {
				list = `"agents":` + list + `,`
			}
			text += fmt.Sprintf(`{"name":"resume-%d","folder":"f","entryPoint":"e","callers":"queue",%s"parts":[],`+
				`"routes":[{"method":"POST","path":"/r%c"}],"timeoutSeconds":60,"memory":"256Mi","cpu":"1",`+
				`"concurrency":80,"minInstances":0,"maxInstances":10},`, i, list, 'a'+i)
		}
		return infra.Parse([]byte(strings.TrimSuffix(text, ",") + `]}`))
	}
	for _, c := range []struct {
		agents, want []string
	}{
		{nil, []string{""}},
		{[]string{`["terminal","shell"]`, `["plan"]`}, []string{
			`NOT (attributes.agent = "terminal" OR attributes.agent = "shell" OR attributes.agent = "plan")`,
			`attributes.agent = "terminal" OR attributes.agent = "shell"`, `attributes.agent = "plan"`}},
	} {
		l, err := parse(c.agents...)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, f := range l.Functions {
			got = append(got, l.Filter(f))
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
	if queue.AgentAttribute != "agent" {
		t.Errorf("messages say %q", queue.AgentAttribute)
	}
	long := strings.Repeat("a", 32)
	for says, agents := range map[string][]string{
		`"x" also belongs to "resume-1"`: {`["x"]`, `["x"]`},
		`names "assistant"`:              {`["assistant"]`},
		`names "Plan"`:                   {`["Plan"]`},
		"both advance the runs of all":   {`[]`},
		"its subscription's filter has": {`["` + long + `","b` + long[1:] + `","c` + long[1:] + `","d` + long[1:] +
			`","ee"]`},
	} {
		if _, err := parse(agents...); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%v: %v, want %q", agents, err, says)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	const ok = `{"name":"run","folder":"functions/run","entryPoint":"run","callers":"everyone","routes":[{"method":"POST","path":"/run"}],
		"parts":[],"timeoutSeconds":60,"memory":"256Mi","cpu":"1","concurrency":80,"minInstances":0,"maxInstances":10}`
	if _, err := infra.Parse([]byte(`{"functions":[` + ok + `]}`)); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ from, to, says string }{
		{`"entryPoint":"run"`, `"entryPoint":""`, "entryPoint"},
		{`"callers":"everyone"`, `"callers":"anybody"`, "callers"},
		{`"parts":[]`, `"parts":["moon"]`, "moon"},
		{`"cpu":"1"`, `"cpu":"0.5"`, "whole CPU"},
		{`"timeoutSeconds":60`, `"timeoutSeconds":3601`, "timeoutSeconds"},
		{`"timeoutSeconds":60`, `"timeoutSeconds":29`, "timeoutSeconds"},
		{`"maxInstances":10`, `"maxInstances":0`, "maxInstances"},
		{`"path":"/run"`, `"path":"run"`, "route"},
		{`"memory":`, `"memroy":`, "memroy"},
		{`"name":"run"`, `"name":"Run"`, "name"},
		{`"parts":[]`, `"parts":[],"agents":["plan"]`, "only for functions whose callers are queue"},
		{`"callers":"everyone"`, `"callers":"queue","agents":["plan"]`, "no function advances the runs"},
	} {
		_, err := infra.Parse([]byte(`{"functions":[` + strings.Replace(ok, c.from, c.to, 1) + `]}`))
		if err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v; want an error with %q", c.to, err, c.says)
		}
	}
	if _, err := infra.Parse([]byte(`{"functions":[` + ok + `,` + ok + `]}`)); err == nil ||
		!strings.Contains(err.Error(), "duplicate") {
		t.Errorf("twice: %v", err)
	}
}
