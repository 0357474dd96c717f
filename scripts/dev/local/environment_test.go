package main

import "testing"

// TestBlankVariables uses the local parts for variables that are set to blanks.
func TestBlankVariables(t *testing.T) {
	e := newEnvironment(func(string) string { return " \t" })
	if got := e.get("DATA_DIR"); got != ".data" || !e.own("GEMINI_API_KEY") || !e.own("AGENTS") {
		t.Errorf("DATA_DIR is %q, GEMINI_API_KEY own: %t, AGENTS own: %t; want .data, true, true", got,
			e.own("GEMINI_API_KEY"), e.own("AGENTS"))
	}
}

// TestGitHubsOwnMachines sets the variables of a codespace. The local GitHub must be used all the same.
func TestGitHubsOwnMachines(t *testing.T) {
	theirs := map[string]string{"GITHUB_TOKEN": "ghu_0123456789abcdef", "GITHUB_API_URL": "https://api.github.com"}
	e := newEnvironment(func(name string) string { return theirs[name] })
	e.localParts("http://127.0.0.1:8080")
	if got := e.get("GITHUB_API_URL"); got != "http://127.0.0.1:8080"+githubPath+githubAPI {
		t.Errorf("the API is %q", got)
	}
	theirs["GITHUB_API_URL"] = "https://github.example.com/api/v3"
	if newEnvironment(func(name string) string { return theirs[name] }).localGitHub() {
		t.Error("a configured GitHub is not used")
	}
}
