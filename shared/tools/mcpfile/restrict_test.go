package mcpfile_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/countersign-run/countersign/shared/tools/mcpfile"
)

// TestListsOfTools checks that each client's list of excluded or chosen tools is respected under any name, and
// that a list that cannot be read leaves the server out.
func TestListsOfTools(t *testing.T) {
	for field, want := range map[string]string{
		`"excludedTools":["rm"]`: "deny rm", `"blockedTools":"rm"`: "deny rm", `"disabled_tools":["rm","rm"]`: "deny rm",
		`"toolDenylist":["rm"]`: "deny rm", `"exclude_tools":["*"]`: "only", `"disabledTools":null`: "",
		`"allowed_tools":["ls"]`: "only ls", `"toolAllowlist":["ls"]`: "only ls", `"includedTools":[]`: "only",
		`"includeTools":["ls","rm"],"enabledTools":["ls"]`:                                         "only ls",
		`"includeTools":["ls","rm"],"excludeTools":["rm"]`:                                         "only ls deny rm",
		`"toolFilter":{"allowed":["ls","rm"],"blocked":["rm"]}`:                                    "only ls deny rm",
		`"tools":{"rm":false,"ls":{"enabled":true},"mv":{"enabled":false},"cp":{"disabled":true}}`: "deny cp mv rm",
		`"tools":["*"]`: "", `"readOnly":["rm"],"excludeTools":["rm"]`: "deny rm",
		`"excludeTools":["rm_*"]`: "-", `"blockedTools":{"rm":true}`: "-", `"tools":{"read":["ls"]}`: "-",
		`"autoApproveTools":["rm"],"alwaysAllowTools":["*"],"toolTimeout":[5]`: "",
	} {
		file, err := mcpfile.Parse([]byte(`{"mcpServers":{"a":{"command":"x",` + field + `}}}`))
		got := "-"
		if err == nil {
			s := file.Servers[0]
			slices.Sort(s.Deny)
			got = ""
			if s.Only != nil {
				got = "only " + strings.Join(s.Only, " ")
			}
			got = strings.TrimSpace(got)
			if len(s.Deny) > 0 {
				got = strings.TrimSpace(got + " deny " + strings.Join(s.Deny, " "))
			}
			if len(s.ReadOnly) > 0 || s.Approval != "" {
				t.Errorf("%s permits something: %+v", field, s)
			}
		}
		if got != want {
			t.Errorf("%s: %q, %v; want %q", field, got, err, want)
		}
	}
}

// TestReadOtherForms checks forms of further clients.
func TestReadOtherForms(t *testing.T) {
	const url, program = "http https://x.example/mcp map[]", "stdio x [-y 8080] map[A:1]"
	for entry, want := range map[string]string{
		`"transport":{"type":"streamable-http","url":"https://x.example/mcp"}`:               url,
		`"url":"https://x.example/mcp","transport":{"type":"sse"}`:                           url,
		`"transport":{"type":"stdio","command":"x","args":["-y",8080],"env":{"A":1}}`:        program,
		`"command":"x","args":["-y",8080],"env":["A=1"]`:                                     program,
		`"command":["x","-y"],"args":[8080],"env":[{"name":"A","value":1}]`:                  program,
		`"uri":"https://x.example/mcp"`:                                                      url,
		`"endpoint":" https://x.example/mcp "`:                                               url,
		`"type":"streamableHttp","baseUrl":"https://x.example/mcp"`:                          url,
		`"url":"https://x.example/mcp","bearer_token_env_var":"T"`:                           "http https://x.example/mcp map[Authorization:Bearer ${T}]",
		`"url":"https://x.example/mcp","env_http_headers":{"X":"T"},"http_headers":{"Y":1}`:  "http https://x.example/mcp map[X:${T} Y:1]",
		`"url":"https://x.example/mcp","headers":[{"key":"Authorization","value":"a ${T}"}]`: "http https://x.example/mcp map[Authorization:a ${T}]",
		`"url":"https://x.example/mcp","headers":{"Authorization":"$(cat secret)"}`:          "-",
		`"command":"x","args":["${A:-${B}}"]`:                                                "-",
		`"command":"x","transport":7`:                                                        "-",
	} {
		file, err := mcpfile.Parse([]byte(`{"mcpServers":{"a":{` + entry + `}}}`))
		got := "-"
		if err == nil {
			s := file.Servers[0]
			if got = fmt.Sprint(s.Type, " ", s.URL, " ", s.Headers); s.Command != "" {
				got = fmt.Sprint(s.Type, " ", s.Command, " ", s.Args, " ", s.Env)
			}
		}
		if got != want && got != strings.TrimSpace(want) {
			t.Errorf("%s: %s, %v; want %s", entry, got, err, want)
		}
	}
	for _, text := range []string{"[mcp_servers.a]\ncommand = \"x\"\n", "mcpServers:\n  a:\n    command: x\n"} {
		if _, err := mcpfile.Parse([]byte(text)); err == nil || !strings.Contains(err.Error(), "TOML and YAML") {
			t.Errorf("%q: %v; want an error with “TOML and YAML”", text, err)
		}
	}
}
