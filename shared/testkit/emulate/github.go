package emulate

import (
	_ "embed"
)

// The user of the emulated GitHub, with an access token. It takes any other token too.
const (
	GitHubUser  = "ada"
	GitHubToken = "emulate-token"
)

//go:embed testdata/github.yaml
var githubSeed []byte

// StartGitHub starts the emulator's GitHub for the test, where npm has installed it ([Start]), and returns its address
// without a trailing slash. Its user owns the repository site. It has neither GitHub's refusal of a second pull request
// nor of a bad token, and it answers an issue's number for a pull request with 404.
func StartGitHub(t T) string {
	t.Helper()
	node, script := installed(t)
	answers(t)
	base, err := retried(func() (string, error) {
		return launch(t, node, script, "github", "/user/repos", githubSeed)
	})
	if err != nil {
		t.Fatalf("%v", err)
	}
	return base
}
