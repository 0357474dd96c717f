package mcpfile_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/tools/mcpfile"
)

const whole = `{"mcpServers": {
	"tickets": {"type": "http", "url": "https://mcp.example.com/mcp", "headers": {"Authorization": "Bearer ${TICKETS}",
		"X-Region": "eu"}, "readOnly": ["search"], "only": ["search", "create"], "deny": ["drop"], "approval": "required"},
	"files": {"command": "npx", "args": ["-y", "server"], "env": {"API_TOKEN": "${TICKETS}-${B}", "MODE": "$5"},
		"named": true},
	"plain": {"url": "http://127.0.0.1:8931/mcp"}}}`

func variables(name string) string {
	return map[string]string{"TICKETS": "t", "B": "b", "MY_PAT": "p", "302AI_API_KEY": "p", "HOME": "/home/ana"}[name]
}

// TestReadWithoutServers reads files as clients write them before their user adds a server.
func TestReadWithoutServers(t *testing.T) {
	for _, text := range []string{`{"mcpServers":{}}`, `{"servers":{},"inputs":[]}`, `{"theme":"dark","mcpServers":{}}`} {
		if file, err := mcpfile.Parse([]byte(text)); err != nil || len(file.Servers) != 0 {
			t.Errorf("%s: %+v, %v; want len(file.Servers) 0", text, file, err)
		}
	}
	for _, text := range []string{`{}`, `{"mcpServers":null}`, `{"mcpServers":"x"}`} {
		if _, err := mcpfile.Parse([]byte(text)); err == nil {
			t.Errorf("%s is taken", text)
		}
	}
}

func TestRead(t *testing.T) {
	file, err := mcpfile.Parse([]byte(whole))
	if err != nil || len(file.Servers) != 3 || len(file.Notes) != 0 {
		t.Fatalf("%+v %v; want len(file.Servers) 3, len(file.Notes) 0", file, err)
	}
	files, plain, tickets := file.Servers[0], file.Servers[1], file.Servers[2]
	if files.Type != mcpfile.Stdio || !files.Named || plain.Type != mcpfile.HTTP || tickets.Prefix() != "tickets_" ||
		tickets.Approval != mcpfile.Required || len(tickets.Only) != 2 || tickets.Line != 2 {
		t.Errorf("%+v", file)
	}
	filled, err := tickets.Fill(variables)
	if err != nil || filled.Headers["Authorization"] != "Bearer t" || filled.Headers["X-Region"] != "eu" {
		t.Errorf("%v %v; want filled.Headers[\"Authorization\"] “Bearer t”, filled.Headers[\"X-Region\"] “eu”",
			filled.Headers, err)
	}
	filled, err = files.Fill(variables)
	if err != nil || filled.Env["API_TOKEN"] != "t-b" || filled.Env["MODE"] != "$5" {
		t.Errorf("%v %v; want filled.Env[\"API_TOKEN\"] “t-b”, filled.Env[\"MODE\"] “$5”", filled.Env, err)
	}
	for what, lookup := range map[string]func(string) string{
		"is not set": func(string) string { return "" },
		"two lines":  func(string) string { return "a\nX-Other: b" }} {
		_, err := tickets.Fill(lookup)
		if err == nil || !strings.Contains(err.Error(), "TICKETS is not set, or") ||
			fault.As(err).Field != "mcpServers/tickets/headers/Authorization" {
			t.Errorf("%s: %v; want an error with “TICKETS is not set, or”, fault.As(err).Field "+
				"“mcpServers/tickets/headers/Authorization”",
				what, err)
		}
	}
}

// TestClientsForms reads one server in the format of each client from which people copy files.
func TestClientsForms(t *testing.T) {
	at := func(url string) mcpfile.Server { return mcpfile.Server{Type: mcpfile.HTTP, URL: url} }
	const url = "https://mcp.example.com/mcp"
	program := mcpfile.Server{Type: mcpfile.Stdio, Command: "npx", Args: []string{"-y", "server"}}
	with := func(s mcpfile.Server, change func(*mcpfile.Server)) mcpfile.Server { change(&s); return s }
	bearer := with(at(url), func(s *mcpfile.Server) { s.Headers = map[string]string{"Authorization": "Bearer p"} })
	for what, c := range map[string]struct {
		text string
		want mcpfile.Server
	}{
		"Claude Code": {`{"mcpServers":{"a":{"type":"http","url":"${BASE:-https://mcp.example.com}/mcp"}}}`, at(url)},
		"Claude Desktop": {"\ufeff" + `{"globalShortcut":"","mcpServers":{"a":{"command":"npx","args":["-y","server"]}}}`,
			program},
		"a program with a token": {`{"mcpServers":{"a":{"command":"npx","args":["--key=${env:MY_PAT}","$MY_PAT","$1 $HOME"]}}}`,
			with(program, func(s *mcpfile.Server) { s.Args = []string{"--key=p", "p", "$1 $HOME"} })},
		"VS Code": {`{"servers":{"a":{"type":"http","url":"https://mcp.example.com/mcp",
			"headers":{"Authorization":"Bearer ${input:my-pat}"},},},
			"inputs":[{"id":"my-pat","type":"promptString","password":true}] /* asked once */ }`, bearer},
		"Anthropic's API": {`{"mcp_servers":[{"type":"url","name":"a","url":"https://mcp.example.com/mcp",
			"authorization_token":"${MY_PAT}","tool_configuration":{"enabled":true,"allowed_tools":["x"]}}]}`,
			with(bearer, func(s *mcpfile.Server) { s.Only = []string{"x"} })},
		"Mastra": {`{"a":{"url":"https://mcp.example.com/mcp","requestInit":
			{"headers":{"Authorization":"Bearer ${MY_PAT}"}}}}`, bearer},
		"MCPM": {`{"mcpServers":{"a":{"type":"npm","command":"npx","args":["-y","server"],"env":
			{"302AI_API_KEY":"${302AI_API_KEY}"},"description":"Run with npx","recommended":true}}}`,
			with(program, func(s *mcpfile.Server) { s.Env = map[string]string{"302AI_API_KEY": "p"} })},
		"one line": {`{"mcpServers":{"a":{"command":"npx -y  server"}}}`, program},
		"a path with spaces": {`{"mcpServers":{"a":{"command":"/opt/My App/run"}}}`,
			mcpfile.Server{Type: mcpfile.Stdio, Command: "/opt/My App/run"}},
		"Goose": {`{"mcpServers":{"a":{"type":"stdio","cmd":"npx","args":["-y","server"],"envs":{"K":"${MY_PAT}"}}}}`,
			with(program, func(s *mcpfile.Server) { s.Env = map[string]string{"K": "p"} })},
		"VS Code's settings": {`{"mcp":{"servers":{"a":{"command":"npx","args":["-y","server"]}}}}`, program},
		"Zed": {"// settings\n" + `{"context_servers":{"a":{"source":"custom","command":{"path":"npx",
			"args":["-y","server"],"env":null},"settings":{}}}}`, program},
		"Cursor": {`{"mcpServers":{"a":{"url":"https://mcp.example.com/mcp?project_ref=abc&read_only=true"}}}`,
			at(url + "?project_ref=abc&read_only=true")},
		"a query's token": {`{"mcpServers":{"a":{"url":"https://mcp.example.com/mcp?key=${MY_PAT}"}}}`, at(url + "?key=p")},
		"Windsurf": {`{"mcpServers":{"a":{"serverUrl":"https://mcp.example.com/mcp","headers":{"Authorization":
			"Bearer ${env:MY_PAT}"},"disabledTools":["drop"]}}}`, with(bearer, func(s *mcpfile.Server) {
			s.Deny = []string{"drop"}
		})},
		"Antigravity": {`{"mcpServers":{"a":{"serverURL":"https://mcp.example.com/mcp","disabled":false}}}`, at(url)},
		"Cline": {`{"mcpServers":{"a":{"type":"streamableHttp","url":"https://mcp.example.com/mcp","disabled":false,
			"autoApprove":["drop"],"timeout":60}}}`, at(url)},
		"Roo Code": {`{"mcpServers":{"a":{"type":"streamable-http","url":"https://mcp.example.com/mcp",
			"alwaysAllow":["drop"]}}}`, at(url)},
		"Gemini CLI": {`{"mcp":{"allowed":["a"]},"mcpServers":{"a":{"httpUrl":"https://mcp.example.com/mcp","url":
			"https://old.example.com/sse","headers":{"Authorization":"Bearer $MY_PAT"},"trust":true,"includeTools":["x","y"],
			"excludeTools":["y"]},"b":{"command":"npx"}}}`, with(bearer, func(s *mcpfile.Server) {
			s.Only, s.Deny = []string{"x"}, []string{"y"}
		})},
		"Continue": {`{"mcpServers":[{"name":"a","type":"sse","url":"https://mcp.example.com/mcp",
			"requestOptions":{"headers":{"Authorization":"Bearer ${{ secrets.MY_PAT }}"}}}]}`, bearer},
		"opencode": {`{"mcp":{"a":{"type":"local","command":["npx","-y","server"],"environment":{"PORT":8080,"A_TOKEN":
			"{env:MY_PAT}"},"enabled":true}}}`, with(program, func(s *mcpfile.Server) {
			s.Env = map[string]string{"PORT": "8080", "A_TOKEN": "p"}
		})},
		"Copilot": {`{"mcpServers":{"a":{"type":"local","command":"npx","args":["-y","server"],"tools":["*"],
			"cwd":"${userHome}/x"}}}`, with(program, func(s *mcpfile.Server) { s.Dir = "/home/ana/x" })},
		"Amp": {`{"amp.mcpServers":{"a":{"command":"npx","args":["-y","server"]}}}`, program},
		"a plugin of Claude Code": {`{"a":{"command":"npx","args":["-y","server"],"description":"Does it."}}`,
			program},
		"usual headers": {`{"$schema":"https://x.example","mcpServers":{"a":{"url":"https://mcp.example.com/mcp","headers":
			{"Content-Type":"application/json","Accept":"text/event-stream"},"env":{"X":"y"}}}}`, at(url)},
	} {
		file, err := mcpfile.Parse([]byte(c.text))
		if err != nil || len(file.Servers) != 1 {
			t.Errorf("%s: %+v %v; want len(file.Servers) 1", what, file, err)
			continue
		}
		got, err := file.Servers[0].Fill(variables)
		c.want.Name, c.want.At, c.want.Line = "a", got.At, got.Line
		for _, m := range []*map[string]string{&c.want.Headers, &c.want.Env} {
			if *m == nil {
				*m = map[string]string{}
			}
		}
		if err != nil || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %+v, not %+v: %v", what, got, c.want, err)
		}
	}
}

// TestReadInvalidEntry checks that a wrong entry is reported by its name and line, and that a client's field for
// automatic approval has no effect.
func TestReadInvalidEntry(t *testing.T) {
	file, err := mcpfile.Parse([]byte(`{"mcpServers": {
		"good": {"url": "https://mcp.example.com/mcp", "autoApprove": ["drop"], "timeout": 5},
		"insecure": {"url": "http://mcp.example.com/mcp"},
		"both": {"url": "https://x.example", "command": "x", "args": ["y"]},
		"off": {"command": "x", "disabled": true},
		"secret": {"url": "https://x.example/mcp?api_key=CANARY"},
		"shell": {"command": "sh", "args": ["-c", "echo ${x%y}"]},
		"typo": {"command": "x", "readonly": ["drop"]},
		"number": 7,
		"文件": {"command": "x"},
		"github.com/Acme/Good": {"command": "x"},
		"my_files v2": {"command": "x", "trust": true}
	}}`))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, s := range file.Servers {
		names = append(names, s.Name)
	}
	if got := strings.Join(names, " "); got != "good my-files-v2" {
		t.Errorf("these are used: %s", got)
	}
	const notes = `line 3: mcpServers/insecure is skipped: url: must be an https address
line 4: mcpServers/both is skipped: url: not allowed for a server of type stdio
line 5: mcpServers/off is skipped: the file disables it
line 6: mcpServers/secret is skipped: url: must contain ${NAME}
line 7: mcpServers/shell is skipped: args: $ must begin ${NAME}, ${NAME:-default}
line 8: mcpServers/typo is skipped: readonly: readOnly was expected
line 9: mcpServers/number is skipped: must be a JSON object
line 10: mcpServers/文件 is skipped: must be a letter
line 11: mcpServers/github.com/Acme/Good is skipped: another server is also called Good
line 12: mcpServers/my_files v2: the names of its tools begin with my-files-v2_
these fields allow nothing here, and effects are asked for: autoApprove (good), trust (my_files v2)
these fields have no effect: timeout (good)`
	want := strings.Split(notes, "\n")
	for i, note := range file.Notes {
		if i >= len(want) || !strings.HasPrefix(note, want[i]) || strings.Contains(note, "CANARY") {
			t.Errorf("note %d: %s", i, note)
		}
	}
	if len(file.Notes) != len(want) {
		t.Errorf("%d notes, not %d", len(file.Notes), len(want))
	}
}

// TestReadDuplicateKey checks that a duplicate key takes away its own entry alone.
func TestReadDuplicateKey(t *testing.T) {
	file, err := mcpfile.Parse([]byte(`{"theme": 1, "theme": 2, "mcpServers": {
		"a": {"command": "x", "args": [], "args": ["y"]},
		"b": {"command": "x"},
		"b": {"url": "https://mcp.example.com/mcp"},
		"c": {"url": "https://mcp.example.com/mcp"}}}`))
	if err != nil || len(file.Servers) != 2 || file.Servers[0].Command != "x" || file.Servers[1].Name != "c" {
		t.Fatalf("%+v %v; want len(file.Servers) 2, file.Servers[0].Command “x”, file.Servers[1].Name “c”", file, err)
	}
	notes := strings.Join(file.Notes, "\n")
	for _, want := range []string{"line 2: mcpServers/a is skipped: args: duplicate key",
		"mcpServers/b is skipped: another server is also called b"} {
		if !strings.Contains(notes, want) {
			t.Errorf("the notes are %s", notes)
		}
	}
}

// TestWorkspaceFolder checks the folder that clients call the workspace: the folder of the file, or the folder that
// contains .vscode.
func TestWorkspaceFolder(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, ".vscode", "mcp.json")
	text := `{"servers":{"a":{"command":"x","args":["${workspaceFolder}${/}src"],"cwd":"${workspaceFolder}"}}}`
	if err := errors.Join(os.Mkdir(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
		t.Fatal(err)
	}
	file, err := mcpfile.Read(path)
	if err != nil || len(file.Servers) != 1 {
		t.Fatalf("%+v %v; want len(file.Servers) 1", file, err)
	}
	s, err := file.Servers[0].Fill(func(string) string { return "" })
	if err != nil || s.Dir != dir || s.Args[0] != filepath.Join(dir, "src") {
		t.Errorf("%+v %v", s, err)
	}
}

// env parses a file with one variable.
func env(pair string) (mcpfile.File, error) {
	name, value, _ := strings.Cut(pair, "=")
	return mcpfile.Parse([]byte(`{"mcpServers":{"a":{"command":"x","env":{"` + name + `":"` + value + `"}}}}`))
}

// TestSecretReferences distinguishes secrets from references to secrets.
func TestSecretReferences(t *testing.T) {
	for _, pair := range []string{"API_KEY=abc", "DB_PASSWORD=abc", "apiToken=x9", "GITHUB_PERSONAL_ACCESS_TOKEN=ghp_x",
		"OAUTH_SECRET=12345678"} {
		if _, err := env(pair); err == nil {
			t.Errorf("%s is taken", pair)
		}
	}
	for _, pair := range []string{"GITHUB_OAUTH_CALLBACK_PORT=8085", "MAX_TOKENS=4096", "TOKENIZERS_PARALLELISM=false",
		"AWS_SESSION_TOKEN=", "AUTH_URL=https://x", "GOOGLE_APPLICATION_CREDENTIALS=/home/ana/key.json",
		"INCLUSION_TAG_KEY=team", "EKS_AUTH_MODE=IAM", "SECRET_ARN=arn:aws:x", "API_KEY=${TICKETS}"} {
		if _, err := env(pair); err != nil {
			t.Errorf("%s: %v", pair, err)
		}
	}
}

// TestBounds checks the size limits of a file.
func TestBounds(t *testing.T) {
	server := map[string]any{"url": "https://mcp.example.com/mcp"}
	with := func(field string, value any) map[string]any {
		return map[string]any{"a": map[string]any{"url": server["url"], field: value}}
	}
	many, names, headers := map[string]any{}, []string{}, map[string]string{}
	for i := range 200 {
		n := "n" + strings.Repeat("x", i%25) + string(rune('a'+i/25))
		names, headers[n] = append(names, n), "v"
		if i <= 20 {
			many[n] = server
		}
	}
	text := func(servers map[string]any) []byte {
		out, err := json.Marshal(map[string]any{"mcpServers": servers})
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	for field, servers := range map[string]map[string]any{
		"mcpServers/a/readOnly":  with("readOnly", names),
		"mcpServers/a/headers":   with("headers", headers),
		"mcpServers/a/headers/X": with("headers", map[string]string{"X": strings.Repeat("x", 3000)}),
		"mcpServers/a/url":       {"a": map[string]any{"url": "https://x.example/" + strings.Repeat("x", 3000)}},
		"":                       with("deny", []string{strings.Repeat("x", 70<<10)}),
	} {
		if _, err := mcpfile.Parse(text(servers)); err == nil || fault.As(err).Field != field {
			t.Errorf("%s: %v; want an error, fault.As(err).Field %v", field, err, field)
		}
	}
	for what, servers := range map[string]map[string]any{"too many": many, "one name": {"A": server, "a": server}} {
		if file, err := mcpfile.Parse(text(servers)); err != nil || len(file.Servers) != len(servers)-1 ||
			len(file.Notes) != 1 {
			t.Errorf("%s: %d servers, %q, %v", what, len(file.Servers), file.Notes, err)
		}
	}
}

// FuzzParse checks that any file is refused with a ValidationError, or is parsed into the documented form.
func FuzzParse(f *testing.F) {
	f.Add([]byte(whole))
	f.Add([]byte(`{"mcpServers":{"a":null}}`))
	f.Add([]byte(`{"mcpServers":{"a":{"url":"https://x.example","headers":{"A":"${"}}}}`))
	f.Add([]byte("\ufeff{\"mcp\":{\"servers\":[{\"name\":\"a\",\"command\":[\"x\",1]}]},} // end"))
	f.Fuzz(func(t *testing.T, data []byte) {
		file, err := mcpfile.Parse(data)
		if bad := (*fault.Error)(nil); err != nil && (!errors.As(err, &bad) || bad.Class != fault.Validation) {
			t.Fatalf("%v", err)
		}
		for _, s := range file.Servers {
			if strings.Contains(s.Name, "_") || (s.URL == "") == (s.Command == "") {
				t.Fatalf("%+v", s)
			}
			_, _ = s.Fill(func(string) string { return "x" })
		}
	})
}
