package main

import "testing"

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
