// Package shared_test checks the tree of packages: what imports what, how wide lines are, and where links lead.
package shared_test

import (
	"go/scanner"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

const module = "github.com/countersign-run/countersign/"

// layers are the groups of packages, the lowest first. A package imports the groups of lower layers, and its own group.
var layers = [][]string{
	{"base"},
	{"telemetry"},
	{"store"},
	{"agent"},
	{"accounts", "notify", "receipts", "terminal"},
	{"tools"},
	{"engine"},
	{"api", "config", "web"},
	{"app"},
	{"testkit"},
	{"countersign"},
}

// orders are the packages of a group in the order in which they know each other: each imports only those before it.
var orders = map[string][]string{
	"agent": {"preference", "tool", "decision", "passkey", "policy", "taint", "model", "plan", "run", "provenance",
		"registry"},
	"engine": {"queue", "quota", "observe", "toolbox", "unit", "outbox", "upload", "approval", "effect",
		"conversation", "loop", "planner", "chat", "records", "offboard"},
}

// layer returns the index of a package's group in layers, or -1.
func layer(pkg string) int {
	return slices.IndexFunc(layers, func(groups []string) bool { return slices.Contains(groups, group(pkg)) })
}

// group returns the group of a package such as shared/engine/loop.
func group(pkg string) string {
	name, _, _ := strings.Cut(strings.TrimPrefix(pkg, "shared/"), "/")
	return name
}

// place returns where a package is in the order of its group, or -1 if the order does not matter.
func place(pkg string) int {
	_, rest, _ := strings.Cut(strings.TrimPrefix(pkg, "shared/"), "/")
	name, _, _ := strings.Cut(rest, "/")
	return slices.Index(orders[group(pkg)], name)
}

// allowed reports whether one package of shared may import another one.
func allowed(pkg, imported string) bool {
	if group(pkg) != group(imported) {
		return layer(imported) >= 0 && layer(imported) < layer(pkg)
	}
	return place(pkg) < 0 || place(imported) <= place(pkg)
}

// TestLayers checks the rules themselves: each group of shared has a layer, and each package of an ordered group has a
// place.
func TestLayers(t *testing.T) {
	seen := map[string]bool{}
	for pkg := range rooms(t) {
		if !strings.HasPrefix(pkg, "shared/") {
			continue
		}
		seen[group(pkg)] = true
		if layer(pkg) < 0 {
			t.Errorf("%s is in no layer", pkg)
		}
		if _, ordered := orders[group(pkg)]; ordered && place(pkg) < 0 && pkg != "shared/"+group(pkg) {
			t.Errorf("%s has no place in the order of its group", pkg)
		}
	}
	for _, groups := range layers {
		for _, g := range groups {
			if !seen[g] {
				t.Errorf("the group %s has no packages", g)
			}
		}
	}
}

// cloud are the libraries of backends and protocols: the rooms that may name each.
var cloud = map[string]string{
	"go.opentelemetry.io/otel": "shared/engine/observe shared/countersign shared/app " +
		"shared/telemetry/traces",
	"github.com/modelcontextprotocol/go-sdk": "shared/tools/mcpclient shared/api/mcpserver",
	"cloud.google.com/go/firestore":          "shared/store/firestore",
	"cloud.google.com/go/pubsub":             "shared/engine/queue/pubsub",
	"cloud.google.com/go/kms":                "shared/base/kmskey shared/accounts/tokenkey",
	"google.golang.org/genai":                "shared/agent/model/gemini",
	"modernc.org/sqlite":                     "shared/store/embedded",
	"google.golang.org/api/gmail":            "shared/tools/gmail",
	"google.golang.org/api/calendar":         "shared/tools/calendar",
	"google.golang.org/api/storage":          "shared/store/blob/gcs",
	"github.com/google/go-github":            "shared/tools/github",
	"github.com/tink-crypto": "shared/accounts/github shared/accounts/google shared/accounts/linking shared/terminal " +
		"shared/accounts/tokenkey",
	"code.dny.dev/ssrf":                                     "shared/base/netguard",
	"codeberg.org/readeck/go-readability":                   "shared/tools/fetch",
	"github.com/JohannesKaufmann/html-to-markdown":          "shared/tools/fetch",
	"github.com/coder/websocket":                            "shared/terminal/attach",
	"golang.org/x/crypto/ssh":                               "shared/terminal/remote shared/terminal/hosts",
	"github.com/coreos/go-oidc":                             "shared/accounts/auth",
	"github.com/GoogleCloudPlatform/functions-framework-go": "functions/",
}

func TestImports(t *testing.T) {
	for room, imports := range rooms(t) {
		for _, imp := range imports {
			own, ours := strings.CutPrefix(imp, module)
			switch {
			case ours && under(room, testkit):
				if !strings.HasPrefix(own, "shared/") {
					t.Errorf("%s imports %s; testkit stands on shared alone", room, own)
				}
			case ours && strings.HasPrefix(room, "functions/"):
				if own != "shared/api" && own != "shared/app" && !strings.HasPrefix(own, "shared/app/") {
					t.Errorf("%s imports %s; a function names its routes in shared/api and its parts", room, own)
				}
			case ours && room == "shared/app/actions" &&
				(!strings.HasPrefix(own, "scripts/") || strings.HasPrefix(own, "scripts/cookbook/")):
				// the operator's own code is plugged in there
			case ours && !strings.HasPrefix(room, "shared/"): // which may import only the needs of an action
				if own != "shared/tools/action" && own != "shared/agent/tool" && own != "shared/base/fault" {
					t.Errorf("%s imports %s; the code of an action has no use for it", room, own)
				}
			case ours && (room == "shared/app" || strings.HasPrefix(room, "shared/app/")):
				if !strings.HasPrefix(own, "shared/") || under(own, testkit) {
					t.Errorf("%s imports %s", room, own)
				}
			case ours && !allowed(room, own):
				t.Errorf("%s imports %s, which is in a higher layer or later in its group", room, own)
			case !ours && !under(room, testkit):
				named(t, room, imp)
			}
		}
	}
}

// named checks that a library is used by the rooms that it is for.
func named(t *testing.T, room, imp string) {
	for library, only := range cloud {
		allowed := slices.ContainsFunc(strings.Fields(only),
			func(r string) bool { return room == r || strings.HasSuffix(r, "/") && strings.HasPrefix(room, r) })
		if strings.HasPrefix(imp, library) && !allowed {
			t.Errorf("%s imports %s, which is for %s", room, imp, only)
		}
	}
}

// testkit is the folder of what only tests and the local server use.
const testkit = "shared/testkit"

// under reports whether a package is in a folder.
func under(room, folder string) bool { return room == folder || strings.HasPrefix(room, folder+"/") }

// TestImportsOfTests keeps tests, too, from what stands on shared.
func TestImportsOfTests(t *testing.T) {
	for room, imports := range list(t, `{{.ImportPath}} {{join .TestImports " "}} {{join .XTestImports " "}}`,
		"./...", "../functions/...", "../infra/...") {
		for _, imp := range imports {
			if own, ours := strings.CutPrefix(imp, module); ours && under(own, "scripts") {
				t.Errorf("the tests of %s import %s; what a test needs is in %s", room, own, testkit)
			}
		}
	}
}

// TestLinkedPackages checks that no function links a part of testkit or of scripts.
func TestLinkedPackages(t *testing.T) {
	for room := range list(t, "{{.ImportPath}}", "-deps", "../functions/...") {
		if under(room, testkit) || under(room, "scripts") {
			t.Errorf("the functions contain %s", room)
		}
	}
}

// foreign is what only programs around the functions link: the SDK. The protocol of MCP is linked by the function that
// serves it, and by those that have the tools of the operator's servers; where spans go, by those that ask a model.
var (
	foreign  = regexp.MustCompile(`^shared/countersign(/|$)`)
	spans    = "go.opentelemetry.io/otel/sdk/"
	protocol = "github.com/modelcontextprotocol/"
	speaking = []string{"functions/agui", "functions/mcp", "functions/run", "functions/runs", "functions/stream",
		"functions/ui", "functions/resume", "functions/approvals-resolve"}
)

// TestFunctionsWithoutSDK keeps the functions small: what they are not made of would be loaded at each cold start.
func TestFunctionsWithoutSDK(t *testing.T) {
	for room := range list(t, "{{.ImportPath}}", "-deps", "../functions/...") {
		if foreign.MatchString(room) {
			t.Errorf("the functions contain %s", room)
		}
	}
	for function, deps := range list(t, `{{.ImportPath}} {{join .Deps " "}}`, "../functions/...") {
		has := slices.ContainsFunc(deps, func(room string) bool { return strings.HasPrefix(room, protocol) })
		if strings.HasPrefix(function, "functions/") && has != slices.Contains(speaking, function) {
			t.Errorf("%s contains the protocol of MCP: %t", function, has)
		}
		has = slices.ContainsFunc(deps, func(room string) bool { return strings.HasPrefix(room, spans) })
		if strings.HasPrefix(function, "functions/") && has != slices.Contains(deps, module+"shared/app/gemini") {
			t.Errorf("%s contains what sends spans: %t", function, has)
		}
	}
}

// rooms returns the packages of shared and functions, with what each imports; tests are not among them.
func rooms(t *testing.T) map[string][]string {
	t.Helper()
	return list(t, `{{.ImportPath}} {{join .Imports " "}}`, "./...", "../functions/...")
}

// list returns for each package what go list prints behind its path.
func list(t *testing.T, format string, args ...string) map[string][]string {
	t.Helper()
	out, err := exec.Command("go", append([]string{"list", "-f", format}, args...)...).Output()
	if err != nil {
		t.Fatal(err)
	}
	all := map[string][]string{}
	for line := range strings.Lines(string(out)) {
		f := strings.Fields(line)
		all[strings.TrimPrefix(f[0], module)] = f[1:]
	}
	if len(all) < 20 {
		t.Fatalf("only %d packages", len(all))
	}
	return all
}

// byHand is code that spells out what package document knows: a query, a field's name, the JSON of a document.
var byHand = regexp.MustCompile(`store\.Query\{[A-Z]|\.Fields\["|json\.Unmarshal\([^)]*\.Data,`)

// TestDocumentFieldsInOnePlace keeps queries, field names and decoding in shared/store/document.
func TestDocumentFieldsInOnePlace(t *testing.T) {
	for _, dir := range []string{".", "../scripts"} {
		err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil || strings.HasPrefix(path, "store/") || !strings.HasSuffix(path, ".go") ||
				strings.HasSuffix(path, "_test.go") {
				return err
			}
			text, err := os.ReadFile(path)
			if found := byHand.Find(text); found != nil {
				t.Errorf("%s has %q; package document knows of that", path, found)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// wrapped is a type that stands around a store, or is one.
var wrapped = regexp.MustCompile(
	`(?m)^\tstore\.Store$|struct\{ store\.Store \}|^func \(.*\) Commit\(.*\.\.\.store\.Write\)`)

// TestStoreWrappersOfTests keeps what fails, counts or delays a store's calls in shared/testkit/faulty.
func TestStoreWrappersOfTests(t *testing.T) {
	for _, dir := range []string{".", "../scripts", "../functions", "../infra"} {
		err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".go") || strings.HasPrefix(path, "store/") ||
				strings.HasPrefix(path, "testkit/faulty/") {
				return err
			}
			text, err := os.ReadFile(path)
			if found := wrapped.Find(text); found != nil {
				t.Errorf("%s has %q; testkit/faulty is for that", path, found)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// tempInTree is a temporary file or folder in a folder of the tree.
var tempInTree = regexp.MustCompile(`\b(MkdirTemp|CreateTemp)\("[^"]`)

// TestTempFilesInTree keeps temporary files out of the tree: other packages' tests read the tree at the same time, and
// fail if a file vanishes meanwhile.
func TestTempFilesInTree(t *testing.T) {
	for _, dir := range []string{".", "../scripts", "../functions", "../infra"} {
		err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, "_test.go") {
				return err
			}
			text, err := os.ReadFile(path)
			if found := tempInTree.Find(text); found != nil {
				t.Errorf("%s has %q; use t.TempDir", path, found)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

var othersFolders = []string{"xterm", "openapi-explorer", "usechat"}

// TestLineWidth keeps code and comments within 120 columns, a tab being four. A text that cannot be broken is
// exempt: raw strings of Go; so is generated code, and what others have written (othersFolders).
func TestLineWidth(t *testing.T) {
	for _, dir := range []string{".", "../scripts", "../functions", "../infra"} {
		err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if d != nil && d.IsDir() && slices.Contains(othersFolders, d.Name()) {
				return fs.SkipDir
			}
			kind := filepath.Ext(path)
			if err != nil || !slices.Contains([]string{".go", ".js", ".mjs", ".css"}, kind) {
				return err
			}
			text, err := os.ReadFile(path)
			if err != nil || strings.HasPrefix(string(text), "// Code generated ") {
				return err
			}
			raw := map[int]bool{}
			if kind == ".go" {
				raw = rawLines(text)
			}
			for i, line := range strings.Split(string(text), "\n") {
				if kind != ".go" && strings.TrimRight(line, " \t") != line {
					t.Errorf("%s:%d ends in white space", path, i+1)
				}
				if utf8.RuneCountInString(strings.ReplaceAll(line, "\t", "    ")) > 120 && !raw[i+1] {
					t.Errorf("%s:%d is wider than 120 columns", path, i+1)
				}
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// TestTopLevel holds the repository to its layout. A program that go build has left there is easily committed.
func TestTopLevel(t *testing.T) {
	listed, err := exec.Command("git", "-C", "..", "ls-files").Output()
	if err != nil {
		t.Skip("this is no clone: ", err)
	}
	layout := strings.Fields("functions shared infra terraform scripts go.mod go.sum README.md LICENSE CONTRIBUTING.md")
	for path := range strings.Lines(string(listed)) {
		top, _, _ := strings.Cut(strings.TrimSpace(path), "/")
		if !strings.HasPrefix(top, ".") && !slices.Contains(layout, top) {
			t.Errorf("%s is not part of the layout", top)
		}
	}
}

// rawLines are the lines that raw strings are on.
func rawLines(src []byte) map[int]bool {
	fset := token.NewFileSet()
	file := fset.AddFile("", -1, len(src))
	var s scanner.Scanner
	s.Init(file, src, nil, 0)
	lines := map[int]bool{}
	for {
		pos, tok, lit := s.Scan()
		if tok == token.EOF {
			return lines
		}
		if strings.HasPrefix(lit, "`") {
			first := file.Line(pos)
			for n := range strings.Count(lit, "\n") + 1 {
				lines[first+n] = true
			}
		}
	}
}
