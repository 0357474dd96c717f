// Package shared_test holds the rooms of the house to who may import whom.
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

// may says what each room may import of this module. A room that is not here may import nothing of it.
var may = map[string]string{
	"shared/action": "shared/clip shared/fault shared/netguard shared/outbound shared/schema shared/strictjson " +
		"shared/strictyaml shared/tool shared/visible",
	"shared/address": "shared/fault",
	"shared/run": "shared/audit shared/clip shared/document shared/fault shared/model shared/plan shared/policy " +
		"shared/strictjson shared/timezone shared/tool shared/visible",
	"shared/journal": "shared/agents shared/audit shared/document shared/fault shared/metrics " +
		"shared/model shared/notice " +
		"shared/output " +
		"shared/plan shared/policy shared/queue shared/run shared/store shared/strictjson shared/taint shared/tool " +
		"shared/wait",
	"shared/approval": "shared/audit shared/clip shared/document shared/fault shared/journal shared/model " +
		"shared/plan shared/policy shared/run shared/strictjson shared/taint shared/tool shared/visible",
	"shared/effect": "shared/approval shared/audit shared/clip shared/document shared/fault shared/journal " +
		"shared/output shared/policy shared/run shared/store shared/strictjson shared/tool",
	"shared/conversation": "shared/approval shared/clip shared/effect shared/fault shared/journal shared/model " +
		"shared/plan " +
		"shared/run shared/strictjson shared/tool shared/visible",
	"shared/agents":       "shared/run shared/fault shared/model shared/policy shared/timezone shared/tool",
	"shared/agenttoken":   "shared/document shared/fault shared/run shared/store shared/visible",
	"shared/agents/files": "shared/agents shared/config shared/fault shared/strictyaml shared/tool",
	"shared/api": "shared/address shared/agents shared/agenttoken shared/agui " +
		"shared/approval shared/auth shared/chat shared/clip shared/document shared/effect " +
		"shared/fault " +
		"shared/journal shared/linking shared/loop shared/model shared/notice shared/run shared/webpush " +
		"shared/obs shared/output shared/planner shared/queue shared/receipt shared/records shared/strictjson " +
		"shared/terminal " +
		"shared/tell shared/timezone shared/tool shared/ui shared/visible shared/wait",
	"shared/attach": "shared/document shared/fault shared/keeper shared/run shared/store shared/strictjson " +
		"shared/terminal shared/tool shared/wait",
	"shared/audit": "shared/clip shared/document shared/obs shared/store shared/strictjson",
	"shared/auth":  "shared/fault shared/memo shared/outbound",
	"shared/chat": "shared/agents shared/clip shared/conversation shared/document shared/effect shared/fault " +
		"shared/journal shared/loop shared/model shared/queue shared/run shared/store shared/store/memory " +
		"shared/strictjson shared/tool shared/visible",
	"shared/config": "shared/address shared/fault shared/netguard shared/obs shared/outbound shared/policy",
	"shared/countersign": "shared/address shared/agents shared/approval shared/clip shared/config " +
		"shared/conversation shared/countersign/internal/bridge shared/countersign/internal/files " +
		"shared/countersign/internal/process shared/document shared/fault shared/journal shared/loop " +
		"shared/model shared/model/gemini shared/obs shared/policy shared/queue shared/run shared/shell " +
		"shared/skill shared/store shared/store/memory shared/strictjson shared/subprocess shared/tool " +
		"shared/visible",
	"shared/countersign/internal/process": "shared/shell shared/subprocess",
	"shared/countersign/agenttest": "shared/clip shared/config shared/countersign " +
		"shared/countersign/internal/bridge shared/countersign/offline shared/fault shared/lazyregexp shared/model " +
		"shared/outbound shared/strictjson",
	"shared/countersign/offline": "shared/clip shared/countersign/internal/bridge shared/fault shared/model " +
		"shared/model/gemini shared/testkit/fakegemini",
	"shared/countersign/internal/bridge": "shared/model " +
		"shared/tool",
	"shared/countersign/mcp":   "shared/countersign shared/countersign/internal/bridge shared/mcpclient",
	"shared/docker":            "shared/container shared/fault shared/lazyregexp shared/tool shared/wait",
	"shared/document":          "shared/store shared/strictjson",
	"shared/tokenkey":          "shared/keyfile",
	"shared/fetch":             "shared/clip shared/fault shared/netguard shared/tools/web",
	"shared/github":            "shared/fault shared/linking shared/outbound shared/store shared/tool",
	"shared/google":            "shared/linking shared/store",
	"shared/keeper":            "shared/clip shared/lazyregexp shared/shell",
	"shared/keeper/keepertest": "shared/clip shared/keeper shared/shell",
	"shared/linking": "shared/audit shared/document shared/fault shared/lazyregexp shared/outbound shared/store " +
		"shared/tool shared/wait",
	"shared/loop": "shared/agents shared/approval shared/audit shared/clip shared/conversation shared/document " +
		"shared/effect shared/fault shared/journal shared/metrics " +
		"shared/model shared/output shared/plan shared/queue shared/run " +
		"shared/store shared/strictjson shared/tool",
	"shared/mcpfile":  "shared/fault shared/lazyregexp shared/outbound shared/strictjson",
	"shared/mcptools": "shared/fault shared/mcpclient shared/mcpfile shared/tool",
	"shared/netguard": "shared/outbound",
	"shared/mcpclient": "shared/clip shared/fault shared/lazyregexp shared/outbound shared/schema " +
		"shared/strictjson shared/subprocess shared/tool shared/visible",
	"shared/mcpserver":    "shared/fault shared/loop shared/run shared/strictjson shared/tool shared/visible",
	"shared/model":        "shared/clip shared/fault shared/strictjson shared/tool",
	"shared/model/gemini": "shared/fault shared/memo shared/model shared/outbound shared/wait",
	"shared/notice":       "shared/fault shared/run shared/strictjson",
	"shared/obs":          "shared/clip shared/fault",
	"shared/offboard": "shared/fault shared/github shared/google shared/linking shared/loop shared/queue " +
		"shared/records",
	"shared/output": "shared/document shared/store shared/strictjson",
	"shared/plan": "shared/clip shared/fault shared/lazyregexp shared/strictjson shared/timezone shared/tool " +
		"shared/visible",
	"shared/planner": "shared/approval shared/document shared/fault shared/journal shared/loop shared/model " +
		"shared/plan shared/run shared/tool shared/visible",
	"shared/policy":          "shared/fault shared/tool",
	"shared/queue":           "shared/run shared/fault shared/notice shared/strictjson",
	"shared/queue/embedded":  "shared/document shared/fault shared/queue shared/store",
	"shared/queue/pubsub":    "shared/fault shared/notice shared/queue",
	"shared/queue/queuetest": "shared/fault shared/queue",
	"shared/receipt":         "shared/audit shared/run shared/strictjson shared/tool",
	"shared/receiptkey":      "shared/keyfile shared/receipt",
	"shared/records": "shared/devices shared/run shared/audit shared/document shared/fault shared/output " +
		"shared/policy shared/webpush " +
		"shared/agenttoken shared/store shared/strictjson shared/terminal shared/visible",
	"shared/remote": "shared/fault shared/keeper shared/terminal shared/tool shared/wait",
	"shared/schema": "shared/clip shared/fault shared/strictjson",
	"shared/skill": "shared/clip shared/fault shared/model shared/strictyaml shared/tool " +
		"shared/visible",
	"shared/shell":           "shared/fault shared/visible",
	"shared/store/embedded":  "shared/store shared/store/watch",
	"shared/store/memory":    "shared/store shared/store/watch",
	"shared/store/firestore": "shared/store",
	"shared/store/storetest": "shared/store",
	"shared/store/watch":     "shared/store",
	"shared/strictjson":      "shared/clip shared/fault",
	"shared/strictyaml":      "shared/clip shared/strictjson",
	"shared/terminal": "shared/document shared/fault shared/run shared/shell shared/store shared/strictjson " +
		"shared/tool",
	"shared/terminal/hosts": "shared/audit shared/document shared/fault shared/keeper shared/run " +
		"shared/shell shared/store shared/strictjson shared/terminal shared/visible",
	"shared/taint":        "shared/clip shared/visible",
	"shared/timezone":     "shared/fault",
	"shared/traces":       "shared/obs",
	"shared/metrics/otlp": "shared/clip shared/metrics shared/outbound",
	"shared/tell":         "shared/fault shared/model shared/run shared/strictjson",
	"shared/agui":         "shared/fault shared/run shared/strictjson shared/tell shared/visible",
	"shared/ui":           "shared/fault shared/run shared/strictjson shared/tell shared/visible",
	"shared/tool": "shared/address shared/clip shared/fault shared/schema shared/strictjson shared/timezone " +
		"shared/visible",
	"shared/tools/calendar": "shared/address shared/clip shared/fault shared/timezone shared/tool " +
		"shared/tools/internal/google shared/tools/internal/provider shared/visible",
	"shared/tools/command": "shared/clip shared/fault shared/keeper shared/obs shared/shell shared/store " +
		"shared/terminal " +
		"shared/tool shared/visible",
	"shared/tools/github": "shared/clip shared/container shared/fault shared/tool shared/tools/internal/provider",
	"shared/tools/docker": "shared/clip shared/container shared/fault shared/keeper shared/obs shared/shell " +
		"shared/tool shared/visible shared/wait",
	"shared/tools/gmail": "shared/address shared/clip shared/fault shared/tool shared/tools/internal/google " +
		"shared/tools/internal/provider shared/visible",
	"shared/tools/internal/google":   "shared/fault shared/lazyregexp shared/tool shared/tools/internal/provider",
	"shared/tools/internal/provider": "shared/fault shared/outbound shared/tool",
	"shared/tools/web":               "shared/clip shared/fault shared/model shared/tool shared/visible",
	"shared/web":                     "shared/fault shared/obs",
	"shared/webhook":                 "shared/fault shared/notice shared/outbound shared/strictjson",
	"shared/webpush":                 "shared/fault shared/outbound",
	"shared/mailer":                  "shared/fault shared/outbound",
	"shared/reminder":                "shared/document shared/mailer shared/notice shared/run shared/store",
	"shared/devices": "shared/document shared/fault shared/notice shared/run shared/store shared/strictjson " +
		"shared/webpush",
}

// cloud are the libraries of backends and protocols: the rooms that may name each.
var cloud = map[string]string{
	"go.opentelemetry.io/otel":               "shared/journal shared/countersign shared/app shared/traces",
	"github.com/modelcontextprotocol/go-sdk": "shared/mcpclient shared/mcpserver",
	"cloud.google.com/go/firestore":          "shared/store/firestore",
	"cloud.google.com/go/pubsub":             "shared/queue/pubsub",
	"cloud.google.com/go/kms":                "shared/receiptkey shared/tokenkey",
	"google.golang.org/genai":                "shared/model/gemini",
	"modernc.org/sqlite":                     "shared/store/embedded",
	"google.golang.org/api/gmail":            "shared/tools/gmail",
	"google.golang.org/api/calendar":         "shared/tools/calendar",
	"github.com/google/go-github":            "shared/tools/github",
	"github.com/tink-crypto": "shared/github shared/google shared/linking shared/terminal " +
		"shared/tokenkey",
	"code.dny.dev/ssrf":                                     "shared/netguard",
	"codeberg.org/readeck/go-readability":                   "shared/fetch",
	"github.com/JohannesKaufmann/html-to-markdown":          "shared/fetch",
	"github.com/coder/websocket":                            "shared/attach",
	"golang.org/x/crypto/ssh":                               "shared/remote shared/terminal/hosts",
	"github.com/coreos/go-oidc":                             "shared/auth",
	"github.com/GoogleCloudPlatform/functions-framework-go": "functions/",
}

func TestImports(t *testing.T) {
	for room, imports := range rooms(t) {
		for _, imp := range imports {
			own, ours := strings.CutPrefix(imp, module)
			switch {
			case own == "shared/lazyregexp": // as regexp
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
			case ours && !strings.HasPrefix(room, "shared/"): // which is held to what an action needs
				if own != "shared/action" && own != "shared/tool" && own != "shared/fault" {
					t.Errorf("%s imports %s; the code of an action has no use for it", room, own)
				}
			case ours && (room == "shared/app" || strings.HasPrefix(room, "shared/app/")):
				if !strings.HasPrefix(own, "shared/") || under(own, testkit) {
					t.Errorf("%s imports %s", room, own)
				}
			case ours && !slices.Contains(strings.Fields(may[room]), own):
				t.Errorf("%s imports %s; may it?", room, own)
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

// TestTestsImportNothingOfScripts keeps tests, too, from what stands on shared.
func TestTestsImportNothingOfScripts(t *testing.T) {
	for room, imports := range list(t, `{{.ImportPath}} {{join .TestImports " "}} {{join .XTestImports " "}}`,
		"./...", "../functions/...", "../infra/...") {
		for _, imp := range imports {
			if own, ours := strings.CutPrefix(imp, module); ours && under(own, "scripts") {
				t.Errorf("the tests of %s import %s; what a test needs is in %s", room, own, testkit)
			}
		}
	}
}

// TestOnlyTheProductIsDeployed checks that no function links a part of testkit or of scripts.
func TestOnlyTheProductIsDeployed(t *testing.T) {
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

// TestNoFunctionLinksTheSDK keeps the functions small: what they are not made of would be loaded at each cold start.
func TestNoFunctionLinksTheSDK(t *testing.T) {
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

// TestDocumentsAreKnownInOnePlace keeps queries, field names and decoding in shared/document.
func TestDocumentsAreKnownInOnePlace(t *testing.T) {
	for _, dir := range []string{".", "../scripts"} {
		err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			own := strings.HasPrefix(path, "store/") || strings.HasPrefix(path, "document/")
			if err != nil || own || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
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

// TestTestsWrapStoresInOneWay keeps what fails, counts or delays a store's calls in shared/testkit/faulty.
func TestTestsWrapStoresInOneWay(t *testing.T) {
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

var othersFolders = []string{"xterm", "openapi-explorer", "usechat"}

// TestLinesFitOnAScreen keeps code and comments within 120 columns, a tab being four. A text that cannot be broken is
// exempt: raw strings of Go; so is generated code, and what others have written (othersFolders).
func TestLinesFitOnAScreen(t *testing.T) {
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
