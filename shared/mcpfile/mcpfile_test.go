package mcpfile_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/countersign-run/countersign/shared/fault"
	"github.com/countersign-run/countersign/shared/mcpfile"
)

const whole = `{"mcpServers": {
	"tickets": {"type": "http", "url": "https://mcp.example.com/mcp", "headers": {"Authorization": "Bearer ${TICKETS}",
		"X-Region": "eu"}, "readOnly": ["search"], "only": ["search", "create"], "deny": ["drop"], "approval": "required"},
	"files": {"command": "npx", "args": ["-y", "server"], "env": {"API_TOKEN": "${TICKETS}-${B}", "MODE": "$5"},
		"named": true},
	"plain": {"url": "http://127.0.0.1:8931/mcp"}}}`

func TestAFileIsRead(t *testing.T) {
	all, err := mcpfile.Parse([]byte(whole))
	if err != nil || len(all) != 3 {
		t.Fatalf("%+v %v", all, err)
	}
	files, plain, tickets := all[0], all[1], all[2]
	if files.Type != mcpfile.Stdio || !files.Named || plain.Type != mcpfile.HTTP || tickets.Prefix() != "tickets_" ||
		tickets.Approval != mcpfile.Required || len(tickets.Only) != 2 {
		t.Errorf("%+v", all)
	}
	lookup := func(name string) string { return map[string]string{"TICKETS": "t", "B": "b"}[name] }
	headers, _, err := tickets.Secrets(lookup)
	if err != nil || headers["Authorization"] != "Bearer t" || headers["X-Region"] != "eu" {
		t.Errorf("%v %v", headers, err)
	}
	_, env, err := files.Secrets(lookup)
	if err != nil || env["API_TOKEN"] != "t-b" || env["MODE"] != "$5" {
		t.Errorf("%v %v", env, err)
	}
	for what, lookup := range map[string]func(string) string{
		"is not set": func(string) string { return "" },
		"two lines":  func(string) string { return "a\nX-Other: b" }} {
		_, _, err := tickets.Secrets(lookup)
		if err == nil || !strings.Contains(err.Error(), "TICKETS is not set, or") ||
			fault.As(err).Field != "mcpServers/tickets/headers/Authorization" {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// TestBounds refuses what is larger than a file has to be.
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
	for field, servers := range map[string]map[string]any{
		"mcpServers":             many,
		"mcpServers/a/readOnly":  with("readOnly", names),
		"mcpServers/a/headers":   with("headers", headers),
		"mcpServers/a/headers/X": with("headers", map[string]string{"X": strings.Repeat("x", 3000)}),
		"mcpServers/a/url":       {"a": map[string]any{"url": "https://x.example/" + strings.Repeat("x", 3000)}},
		"mcpServers/A":           {"a": server, "A": server},
		"":                       with("deny", []string{strings.Repeat("x", 70<<10)}),
	} {
		text, err := json.Marshal(map[string]any{"mcpServers": servers})
		if err != nil {
			t.Fatal(err)
		}
		if field == "mcpServers/A" { // the names come in sorted order
			field = "mcpServers/a"
		}
		if _, err := mcpfile.Parse(text); err == nil || fault.As(err).Field != field {
			t.Errorf("%s: %v", field, err)
		}
	}
}

// FuzzParse checks that whatever a file holds is refused with a ValidationError, or fits what is documented.
func FuzzParse(f *testing.F) {
	f.Add([]byte(whole))
	f.Add([]byte(`{"mcpServers":{"a":null}}`))
	f.Add([]byte(`{"mcpServers":{"a":{"url":"https://x.example","headers":{"A":"${"}}}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		all, err := mcpfile.Parse(data)
		if bad := (*fault.Error)(nil); err != nil && (!errors.As(err, &bad) || bad.Class != fault.Validation) {
			t.Fatalf("%v", err)
		}
		for _, s := range all {
			if strings.Contains(s.Name, "_") || (s.URL == "") == (s.Command == "") {
				t.Fatalf("%+v", s)
			}
			_, _, _ = s.Secrets(func(string) string { return "x" })
		}
	})
}
