package main

import (
	"bytes"
	"encoding/json"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/countersign-run/countersign/infra"
	"github.com/countersign-run/countersign/shared/testkit"
	"github.com/countersign-run/countersign/shared/testkit/emulators"
	"github.com/countersign-run/countersign/shared/testkit/realpart"
)

// checkout copies the packaged sources into a new folder, with other modification times.
func checkout(t *testing.T, age time.Duration) string {
	t.Helper()
	root := t.TempDir()
	for _, name := range []string{"go.mod", "go.sum", "LICENSE"} {
		copyFile(t, filepath.Join("../..", name), filepath.Join(root, name), age)
	}
	for _, dir := range []string{"functions", "shared", "infra", "scripts/cookbook"} {
		err := filepath.WalkDir(filepath.Join("../..", dir), func(file string, d fs.DirEntry, err error) error {
			if err == nil && d.Type().IsRegular() {
				copyFile(t, file, filepath.Join(root, strings.TrimPrefix(filepath.ToSlash(file), "../../")), age)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func copyFile(t *testing.T, from, to string, age time.Duration) {
	t.Helper()
	body, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	put(t, to, string(body))
	when := time.Unix(1_700_000_000, 0).Add(-age)
	if err := os.Chtimes(to, when, when); err != nil {
		t.Fatal(err)
	}
}

func put(t *testing.T, file, body string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(body), 0o600); err != nil {
		t.Fatal(err)
	}
}

func archivesOf(t *testing.T, root string, with ...string) (manifest, map[string][]byte) {
	t.Helper()
	m, archives, err := makeAll(t.Context(), options{root: root, release: "v1", with: with, functions: []string{"all"}})
	if err != nil {
		t.Fatal(err)
	}
	return m, archives
}

func TestPackageReproducible(t *testing.T) {
	realpart.Long(t, "builds the archives four times")
	first, second := checkout(t, 0), checkout(t, 1000*time.Hour)
	if realpart.Trials(true, false) {
		fewer(t, first)
		fewer(t, second)
	}
	_, a := archivesOf(t, first)
	m, b := archivesOf(t, second)
	if len(a) != len(m.Functions) || len(a) < realpart.Trials(4, 13) || !maps.EqualFunc(a, b, bytes.Equal) {
		t.Fatalf("%d and %d archives of two folders differ", len(a), len(b))
	}
	fewer(t, first) // each kind of change below affects some of these, but not all
	fewer(t, second)
	t.Run("and a change reaches the archives that contain it", func(t *testing.T) {
		file := filepath.Join(second, "functions/run/run.go")
		body, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		put(t, file, string(body)+"\n// Changed.\n")
		if _, c := archivesOf(t, second); !slices.Equal(changed(b, c), []string{"run.zip"}) {
			t.Errorf("a change of only the function run changes %v", changed(b, c))
		}
		put(t, filepath.Join(second, "shared/tools/gmail/changed.go"), "package gmail\n")
		put(t, filepath.Join(second, "shared/tools/gmail/more_test.go"), "package gmail\n")
		put(t, file, string(body))
		fewer, d := archivesOf(t, second)
		var want []string
		for _, e := range fewer.Functions {
			if slices.ContainsFunc(e.Packages,
				func(p string) bool { return strings.HasSuffix(p, "/shared/tools/gmail") }) {
				want = append(want, e.Archive)
			}
		}
		slices.Sort(want)
		if got := changed(b, d); len(want) == 0 || len(want) == len(d) || !slices.Equal(got, want) {
			t.Errorf("a change of shared/tools/gmail changes %v, want %v", got, want)
		}
	})
	t.Run("and nothing foreign is inside", func(t *testing.T) {
		for _, e := range m.Functions {
			content, err := unpack(a[e.Archive])
			if err != nil {
				t.Fatal(err)
			}
			if _, err := layout(content); err != nil {
				t.Errorf("%s: %v", e.Archive, err)
			}
			for name := range content {
				if !ofPackages(name, e) {
					t.Errorf("%s has %s, which belongs to none of its packages", e.Archive, name)
				}
			}
		}
	})
	t.Run("and an operator's agents are where they are read", func(t *testing.T) {
		put(t, filepath.Join(first, "agents/x.agent.yaml"), "name: x\ndescription: Helps.\ninstruction: Help.\n"+
			"tools: [calendar_event_create]\n")
		with, archives := archivesOf(t, first, "agents")
		for _, name := range readAgents {
			if got := with.function(name).With; !slices.Equal(got, []string{"agents/x.agent.yaml"}) {
				t.Errorf("%s has %v", name, got)
			}
		}
		t.Run("and are listed", func(t *testing.T) { listsAgents(t, with.function("runs"), archives["runs.zip"]) })
	})
	t.Run("and an operator's files are where they are read", func(t *testing.T) {
		put(t, filepath.Join(first, "actions/plugin.yaml"), "name: crm\n")
		with, c := archivesOf(t, first, "actions")
		var want []string
		for _, e := range with.Functions {
			if len(e.With) > 0 {
				want = append(want, e.Archive)
			}
		}
		slices.Sort(want)
		if got := changed(a, c); !slices.Contains(got, "run.zip") || slices.Contains(got, "web.zip") ||
			!slices.Equal(got, want) {
			t.Errorf("the files changed %v, the manifest says %v", got, want)
		}
	})
}

// readAgents lists the functions that read an operator's agents.
var readAgents = []string{"approvals-resolve", "resume", "run", "runs", "stream", "sweep"}

// fewer reduces the list of functions of a checkout to the functions that read agents and one other.
func fewer(t *testing.T, root string) {
	t.Helper()
	file := filepath.Join(root, "infra", "functions.json")
	body, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var list map[string]any
	if err := json.Unmarshal(body, &list); err != nil {
		t.Fatal(err)
	}
	kept := append([]string{"web"}, readAgents...)
	list["functions"] = slices.DeleteFunc(list["functions"].([]any), func(f any) bool {
		return !slices.Contains(kept, f.(map[string]any)["name"].(string))
	})
	list["profiles"] = map[string][]string{"core": kept}
	if body, err = json.Marshal(list); err != nil {
		t.Fatal(err)
	}
	put(t, file, string(body))
}

// listsAgents builds and starts the function runs as the cloud does. GET /agents must list the operator's agent.
func listsAgents(t *testing.T, e entry, archive []byte) {
	realpart.Long(t, "builds and starts a function")
	firestore := emulators.Firestore(t)
	cloud, err := testkit.NewCloud()
	if err != nil {
		t.Fatal(err)
	}
	defer cloud.Close()
	p, err := build(t.Context(), e, archive)
	if err != nil {
		t.Fatal(err)
	}
	defer p.remove()
	f, err := p.start(t.Context(), "FIRESTORE_EMULATOR_HOST="+firestore, "AUTH_ISSUER="+cloud.Issuer.URL(),
		"AUTH_AUDIENCE="+testkit.Audience)
	if err != nil {
		t.Fatal(err)
	}
	defer f.stop()
	a, err := (&testkit.Deployment{Cloud: cloud, Base: f.base, Unlinked: true}).Call(t.Context(), "ana", "GET",
		"/api/agent/agents", "")
	const want = `{"name":"x","description":"Helps.","tools":["calendar_event_create"]}`
	if err != nil || a.HTTP != http.StatusOK || !strings.Contains(string(a.Body), want) {
		t.Errorf("%v, %d %s, want %s in it", err, a.HTTP, a.Body, want)
	}
}

func (m manifest) function(name string) entry {
	return m.Functions[slices.IndexFunc(m.Functions, func(e entry) bool { return e.Name == name })]
}

func changed(before, after map[string][]byte) []string {
	var names []string
	for name := range after {
		if !bytes.Equal(before[name], after[name]) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// ofPackages reports whether a file is in the folder of one of the packages, or in the root.
func ofPackages(name string, e entry) bool {
	if slices.Contains([]string{"go.mod", "go.sum", "LICENSE", "function.go"}, name) {
		return true
	}
	return slices.ContainsFunc(e.Packages, func(p string) bool {
		return strings.HasPrefix(name, strings.TrimPrefix(p, "github.com/countersign-run/countersign/")+"/")
	})
}

func TestVerify(t *testing.T) {
	realpart.Long(t, "builds and starts functions")
	names := []string{"web", "resume"}
	m, archives, err := makeAll(t.Context(), options{root: "../..", release: "v1", functions: names})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		e := m.function(name)
		if _, err := verify(t.Context(), e, archives[e.Archive]); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if name == "web" {
			e.EntryPoint = "no-such-function"
			if _, err := verify(t.Context(), e, archives[e.Archive]); err == nil ||
				!strings.Contains(err.Error(), "exited without an answer") {
				t.Errorf("a wrong entry point: %v", err)
			}
		}
	}
}

// TestPackageGoHandlers registers Go handlers as shared/app/actions describes. The function's archive must contain
// their code, and the started function must be able to run their actions.
func TestPackageGoHandlers(t *testing.T) {
	realpart.Long(t, "builds and starts functions")
	root := checkout(t, 0)
	plug := filepath.Join(root, "shared/app/actions/handlers.go")
	before, err := os.ReadFile(plug)
	if err != nil {
		t.Fatal(err)
	}
	line := regexp.MustCompile(`(?m)^//\t(func own\(\).*)$`).FindSubmatch(before) // see the file's comment
	if line == nil {
		t.Fatal("the file does not say how to register handlers")
	}
	for _, plugged := range []bool{false, true} {
		unbound := []string{"shippingQuote"}
		if plugged {
			unbound = nil
			put(t, plug, "package actions\n\nimport (\n\texample "+
				"\"github.com/countersign-run/countersign/scripts/cookbook/actions\"\n"+
				"\t\"github.com/countersign-run/countersign/shared/tools/action\"\n"+
				")\n\n"+string(line[1])+"\n")
		}
		f := infra.Function{Name: "actions", Folder: "functions/actions", EntryPoint: "actions",
			Parts: []string{"actions"}}
		s, err := list(t.Context(), root, []infra.Function{f})
		if err != nil {
			t.Fatal(err)
		}
		with, err := operatorFiles(root, []string{"scripts/cookbook/actions"})
		if err != nil {
			t.Fatal(err)
		}
		e, archive, err := makeOne(t.Context(), s, f, with)
		if err != nil {
			t.Fatal(err)
		}
		got, err := verify(t.Context(), e, archive)
		if err != nil || !slices.Equal(got.unbound, unbound) {
			t.Errorf("registered: %v: actions without a handler: %v, %v", plugged, got.unbound, err)
		}
		if has := slices.Contains(e.Packages,
			"github.com/countersign-run/countersign/scripts/cookbook/actions"); has != plugged {
			t.Errorf("registered: %v: the archive holds the code: %v", plugged, has)
		}
	}
}

func TestDeclaredIn(t *testing.T) {
	d, err := declaredIn(t.TempDir(), []string{"config/.gemini.yaml", "own/agents/x.agent.yaml"})
	if err != nil || !slices.Equal(d.settings(), []string{"AGENTS=" + sourceFolder + "/own/agents"}) {
		t.Errorf("%v %v; want d.settings() %v", d.settings(), err, []string{"AGENTS=" + sourceFolder + "/own/agents"})
	}
}

func TestRefusals(t *testing.T) {
	sound := func() files {
		return files{"go.mod": []byte("module example.com/x\n"), "go.sum": []byte("x"), "LICENSE": []byte("x"),
			"function.go": []byte("package function\nimport _ \"" + framework + "/functions\"\n")}
	}
	if _, err := layout(sound()); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ file, body, want string }{
		"second package": {"x_test2.go", "package other", "the build requires one"},
		"framework":      {"function.go", "package function", "does not import"},
		"toolchain":      {"go.mod", "module example.com/x\ntoolchain go1.26.8\n", "toolchain"},
		"no dot":         {"go.mod", "module agent\n", "requires a dot"},
		"no license":     {"LICENSE", "", "LICENSE is missing"},
		"test":           {"shared/x_test.go", "package x", "is a test"},
		"testkit":        {"shared/testkit/issuer/key.go", "package issuer", "is for tests"},
		"environment":    {"config/.env", "A=1", "must not be in an archive"},
		"key":            {"deploy.pem", "x", "must not be in an archive"},
		"history":        {".git/config", "x", "must not be in an archive"},
		"leaves":         {"../x", "x", "leaves the archive"},
		"API key": {"config/.gemini.yaml", "apiKey: AIzaSyCANARYCANARYCANARYCANARYCANARY123\n",
			"seems to contain a secret"},
		"private key":    {"a.json", "-----BEGIN PRIVATE KEY-----", "seems to contain a secret"},
		"client secret":  {"a.yaml", "  client_secret: CANARY-something\n", "seems to contain a secret"},
		"secret in code": {"site/a.js", "const all = { apiKey: 'CANARY-something' };\n", "seems to contain a secret"},
	} {
		content := sound()
		content[c.file] = []byte(c.body)
		if _, err := layout(content); err == nil || !strings.Contains(err.Error(), c.want) ||
			strings.Contains(err.Error(), "CANARY") {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
	content := sound()
	content["site/bundle/a.js"] = []byte("return {\n  privateKey: key.box.value,\n  password: 'A password' };\n")
	content["config/.gemini.yaml"] = []byte("apiKey: $GEMINI_API_KEY\nsystemPrompt: Be brief.\n")
	if _, err := layout(content); err != nil {
		t.Errorf("a variable's name is reported as a secret: %v", err)
	}
}

func TestOperatorFilesRefused(t *testing.T) {
	root := t.TempDir()
	put(t, filepath.Join(root, "code/x.go"), "package x")
	put(t, filepath.Join(root, "big/x.bin"), strings.Repeat("x", maxOperatorBytes+1))
	put(t, filepath.Join(root, "keys/id_rsa"), "x")
	if err := os.MkdirAll(filepath.Join(root, "links"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/etc/passwd", filepath.Join(root, "links/x")); err != nil {
		t.Fatal(err)
	}
	for given, want := range map[string]string{"code": "only data", "big": "more than 1048576 bytes",
		"keys": "Secret Manager", "links": "is a link",
		"../x": "must be a path below", "/etc": "must be a path below", "absent": "no such file"} {
		if _, err := operatorFiles(root, []string{given}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", given, err, want)
		}
	}
}

func TestOutputFolder(t *testing.T) {
	out := filepath.Join(t.TempDir(), "dist")
	for _, archive := range []string{"a.zip", "b.zip"} {
		m := manifest{Format: format, Functions: []entry{{Archive: archive}}}
		if err := write(out, m, map[string][]byte{archive: []byte("x")}); err != nil {
			t.Fatal(err)
		}
	}
	if found, err := filepath.Glob(filepath.Join(out, "*.zip")); err != nil || len(found) != 1 ||
		filepath.Base(found[0]) != "b.zip" {
		t.Errorf("%v, %v: an archive from an earlier run is left", found, err)
	}
	put(t, filepath.Join(out, "notes.txt"), "mine")
	if err := usable(out); err == nil || !strings.Contains(err.Error(), "notes.txt") {
		t.Errorf("a foreign file: %v", err)
	}
	if err := run(t.Context(), []string{"-out", t.TempDir() + "/..", "-release", "v1"}, io.Discard); err == nil ||
		!strings.Contains(err.Error(), "name another folder") {
		t.Errorf("a foreign folder: %v", err)
	}
}

// TestHelp checks that help is printed, and that no file is written.
func TestHelp(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, help := range []string{"-h", "--help"} {
		var out strings.Builder
		if err := run(t.Context(), []string{help}, &out); err != nil || !strings.HasPrefix(out.String(), "usage: ") ||
			!strings.Contains(out.String(), "-verify") {
			t.Errorf("%s: %v, output\n%s", help, err, out.String())
		}
	}
	if written, err := os.ReadDir("."); err != nil || len(written) > 0 {
		t.Errorf("help wrote files: %v (%v)", written, err)
	}
}
