package widget_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/countersign-run/countersign/shared/testkit/browsertest"
	"github.com/countersign-run/countersign/shared/testkit/realpart"
	"github.com/countersign-run/countersign/shared/tools/action"
)

// TestPluginFiles reads the jay-stack plugin with this project's loader. Its actions have no handlers here.
func TestPluginFiles(t *testing.T) {
	r, err := action.Open("gemini-agent", action.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(r.Names(), " "); got != "sendMessage submitToolResults askAgent" || len(r.Unbound()) != 3 {
		t.Errorf("the actions are %s", got)
	}
	list, err := action.Load("gemini-agent")
	if err != nil {
		t.Fatal(err)
	}
	for name, args := range map[int]string{
		0: "message history toolDefinitions pageState agent messageId timeZone locale",
		1: "results history toolDefinitions pageState messageId timeZone locale"} {
		if got := strings.Join(list[name].Metadata.Input.PropertyOrder, " "); got != args {
			t.Errorf("%s takes %s", list[name].Name, got)
		}
	}
}

// held makes the framework's own packages read the files, generate their types, and run the actions. Packages that the
// registry does not serve are empty stubs: none of their functions is called.
const held = `
import fs from 'node:fs';
import { register, createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';
const [jay, plugin, endpoint] = process.argv.slice(2);
const stub = 'data:text/javascript,' + encodeURIComponent('export const getLogger = () => console; export const analyzeExportedTypes = () => ({});');
register('data:text/javascript,' + encodeURIComponent(` + "`" + `export async function resolve(specifier, context, next) {
  try { return await next(specifier,
	specifier.startsWith('@jay-framework/') ? { ...context, parentURL: '${pathToFileURL(jay + '/x.js')}' } : context); }
  catch (err) {
    if (specifier.startsWith('@jay-framework/')) return { url: ${JSON.stringify(stub)}, shortCircuit: true };
    throw err;
  }
}` + "`" + `));
const say = (what, value) => console.log(JSON.stringify({ what, value }));
const { parseAction, compileAction, parseContract, compileContract } = await import('@jay-framework/compiler-jay-html');
const read = (name) => fs.readFileSync(plugin + '/' + name, 'utf8');
const same = (name, made) => say(name, made.validations.length ? made.validations.join('; ') :
  made.val === read(name + '.d.ts') ? 'as it is' : 'its types are others:\n' + made.val);
const contract = 'gemini-chat.jay-contract';
const tags = parseContract(read(contract), contract);
same(contract, { validations: tags.validations, val: (await compileContract(tags, contract, {})).val });
for (const name of ['actions/send-message.jay-action', 'actions/submit-tool-results.jay-action']) {
  const parsed = parseAction(read(name), name);
  same(name, { validations: parsed.validations, val: compileAction(parsed).val });
}
const ts = createRequire(jay + '/x.js')('typescript');
const file = process.argv[5] + '/actions.mjs';
fs.writeFileSync(file, ts.transpile(read('actions.ts'),
	{ module: ts.ModuleKind.ESNext, target: ts.ScriptTarget.ES2022 }));
const actions = await import(pathToFileURL(file));
const agent = { endpoint, token: async () => 'anas-token' };
const input = { message: 'hi', history: [], toolDefinitions: [], pageState: {} };
say('sendMessage', await actions.sendMessage.handler(input, agent));
say('submitToolResults', await actions.submitToolResults.handler({ ...input, results: [] },
	agent).catch((err) => err.code + ': ' + err.message));
say('askAgent', await actions.askAgent.handler({ method: 'GET', path: '/api/agent/runs/run-1', body: { x: 1 } },
	agent));
for (const path of ['/api/agent/runs/../threads', '/api/agent/threads', '/api/agent/runs/a/cancel']) {
  try { say(path, await actions.askAgent.handler({ method: 'GET', path }, agent)); }
  catch (err) { say(path, err.code); }
}
say('names', [actions.sendMessage, actions.submitToolResults, actions.askAgent].map((a) => a.actionName).join(' '));
`

func TestPluginInFramework(t *testing.T) {
	node := browsertest.Node(t)
	jay := os.Getenv("JAY_DIR")
	if jay == "" {
		realpart.Jay.Absent(t, "JAY_DIR does not say where compiler-jay-html, compiler-shared, "+
			"fullstack-component and typescript are installed")
	}
	var mu sync.Mutex
	var asked []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		mu.Lock()
		defer mu.Unlock()
		asked = append(asked, r.Method+" "+r.URL.Path+" "+r.Header.Get("Authorization")+" "+string(body))
		if strings.HasSuffix(r.URL.Path, "/results") {
			w.WriteHeader(http.StatusBadRequest)
			_, _ = io.WriteString(w, `{"ok":false,"error":{"code":"invalid","message":"nothing waits"}}`)
			return
		}
		_, _ = io.WriteString(w, `{"type":"response","message":"Hello.","history":[]}`)
	}))
	t.Cleanup(server.Close)
	script := filepath.Join(t.TempDir(), "held.mjs")
	if err := os.WriteFile(script, []byte(held), 0o600); err != nil {
		t.Fatal(err)
	}
	plugin, err := filepath.Abs("gemini-agent")
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), node, script, jay, plugin, server.URL, t.TempDir()).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	got := map[string]string{}
	for line := range strings.Lines(string(out)) {
		var said struct {
			What  string
			Value json.RawMessage
		}
		if json.Unmarshal([]byte(line), &said) == nil {
			got[said.What] = string(said.Value)
		}
	}
	for what, want := range map[string]string{
		"gemini-chat.jay-contract": `"as it is"`, "actions/send-message.jay-action": `"as it is"`, "actions/submit-tool-results.jay-action": `"as it is"`,
		"sendMessage": `{"type":"response","message":"Hello.","history":[]}`, "submitToolResults": `"invalid: nothing waits"`,
		"askAgent": `{"type":"response","message":"Hello.","history":[]}`, "/api/agent/runs/../threads": `"not_found"`, "/api/agent/threads": `"not_found"`,
		"/api/agent/runs/a/cancel": `"not_found"`, "names": `"sendMessage submitToolResults askAgent"`,
	} {
		if got[what] != want {
			t.Errorf("%s: %s, want %s", what, got[what], want)
		}
	}
	mu.Lock()
	defer mu.Unlock()
	const body = `{"message":"hi","history":[],"toolDefinitions":[],"pageState":{}`
	want := "POST /api/agent/chat Bearer anas-token " + body + "}\nPOST /api/agent/chat/results Bearer anas-token " + body + `,"results":[]}` + "\nGET /api/agent/runs/run-1 Bearer anas-token "
	if said := strings.Join(asked, "\n"); said != want {
		t.Errorf("Countersign was asked\n%s\nwant\n%s", said, want)
	}
}

// TestPluginTypes checks that the component and the actions have the types that the framework and the contract require.
func TestPluginTypes(t *testing.T) {
	node := browsertest.Node(t)
	jay := os.Getenv("JAY_DIR")
	if jay == "" {
		realpart.Jay.Absent(t, "JAY_DIR does not say where they are")
	}
	here, err := filepath.Abs(".")
	if err != nil {
		t.Fatal(err)
	}
	project, err := json.Marshal(map[string]any{
		"compilerOptions": map[string]any{"noEmit": true, "strict": true, "skipLibCheck": true, "allowJs": true,
			"target": "ES2023", "module": "ES2022", "moduleResolution": "bundler",
			"lib": []string{"ES2024", "DOM", "DOM.Iterable"}, "types": []string{},
			"paths": map[string]any{"@jay-framework/*": []string{filepath.Join(jay, "node_modules/@jay-framework/*")}}},
		"files": []string{filepath.Join(here, "gemini-agent/index.ts"), filepath.Join(here, "site/types.d.ts")},
	})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "tsconfig.json")
	if err := os.WriteFile(file, project, 0o600); err != nil {
		t.Fatal(err)
	}
	tsc := filepath.Join(jay, "node_modules/typescript/bin/tsc")
	if out, err := exec.CommandContext(t.Context(), node, tsc, "-p", file).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
