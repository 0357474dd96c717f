package emulate

import (
	_ "embed"

	"github.com/countersign-run/countersign/shared/testkit/realpart"
)

// The user of the emulated GitHub, with an access token. The emulator also accepts any other token.
const (
	GitHubUser  = "ada"
	GitHubToken = "emulate-token"
)

//go:embed testdata/github.yaml
var githubSeed []byte

// StartGitHub starts the emulator's GitHub for the test (see [Start]), and returns its address without a trailing
// slash. Its user owns the repository site. Unlike GitHub, it refuses neither a second pull request nor a bad token,
// and it returns 404 for an issue's number that belongs to a pull request.
func StartGitHub(t realpart.Owner) string {
	t.Helper()
	node, script := installed(t)
	answers(t)
	return launch(t, node, script, "github", "/user/repos", githubSeed)
}
