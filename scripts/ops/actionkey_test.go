package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestActionKey(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"plugin.yaml": "name: shop\nactions:\n  - {name: search, action: ./search.jay-action}\n  - {name: " +
			"find, action: ./find.jay-action}\n  - rate\n",
		"search.jay-action": "name: search\ndescription: S.\ninputSchema: {type: object}\nbinding: {url: " +
			"'https://shop.example/search', key: derived}\n",
		"find.jay-action": "name: find\ndescription: F.\ninputSchema: {type: object}\nbinding: {url: " +
			"'https://shop.example/search'}\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const first, second = "0123456789abcdef0123456789abcdef", "second-second-second-second-second"
	for name, tt := range map[string]struct{ actions, key, action, out, err string }{
		// HKDF-SHA-256 of the first key, computed elsewhere
		"its own": {dir, first + "," + second, "search",
			"afea4d3a5913a8edadd8e452086d8f2a4a3a41de88d1aa8cc89719e86bb76130\n", ""},
		"shared":     {dir, first, "find", "", "no key of its own"},
		"none":       {dir, first, "rate", "", "no key of its own"},
		"nothing":    {dir, first, "reta", "", `lists the action "reta"`},
		"no key":     {dir, "", "search", "", "ACTION_KEY is not set"},
		"no folder":  {"", first, "search", "", "ACTIONS is not set"},
		"wrong keys": {dir, first + ",short", "search", "", "ACTION_KEY"},
	} {
		w := &deployment{t: t, env: map[string]string{"STORE": "embedded", "ACTIONS": tt.actions, "ACTION_KEY": tt.key}}
		out, errs, err := w.ops("action-key", tt.action)
		if out != tt.out || (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) ||
			strings.Contains(out+errs, first) {
			t.Errorf("%s: %q, %v", name, out, err)
		}
	}
}
