package github_test

import (
	"encoding/json"
	"testing"

	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/tools/github"
)

// TestOriginOfResults checks the recorded origin of each result. A file counts as the repository's own only on its
// default branch, because a call may name a commit of a fork.
func TestOriginOfResults(t *testing.T) {
	set := github.New(accounts{}, github.Options{Endpoint: "http://github.test/"})
	const web = `"owner":"acme","repo":"web"`
	for _, tt := range []struct {
		name, args, result string
		want               tool.Reading
	}{
		{github.ReadIssue, `{` + web + `,"issueNumber":3}`, `null`, tool.Reading{Origin: "issue 3 of acme/web"}},
		{github.ReadPullRequest, `{` + web + `,"prNumber":4}`, `{}`, tool.Reading{Origin: "pull request 4 of acme/web"}},
		{github.ListIssues, `{` + web + `}`, `{}`, tool.Reading{Origin: "the list of issues of acme/web"}},
		{github.ListPullRequests, `{` + web + `}`, `{}`, tool.Reading{Origin: "the list of pull requests of acme/web"}},
		{github.ListFiles, `{` + web + `}`, `{}`, tool.Reading{Origin: "the list of files of acme/web", File: true}},
		{github.ReadFile, `{` + web + `,"path":"a.go"}`, `{}`,
			tool.Reading{Origin: "the file a.go of acme/web", File: true}},
		{github.ReadFile, `{` + web + `,"path":"a.go","ref":"refs/pull/3/head"}`, `{}`,
			tool.Reading{Origin: "the file a.go of acme/web"}},
		{github.RetrieveRepository, `{` + web + `}`, `{"private":true}`,
			tool.Reading{Origin: "the description of acme/web"}},
		{github.RetrieveRepository, `{` + web + `}`, `{"private":false}`,
			tool.Reading{Origin: "the description of acme/web", Public: true}},
		{github.RetrieveRepository, `{` + web + `}`, `null`, tool.Reading{Origin: "the description of acme/web"}},
		{github.ListRepositories, `{}`, `{"repositories":[{"private":false},{"private":true}]}`,
			tool.Reading{Origin: "the list of your repositories"}},
		{github.ListRepositories, `{}`, `{"repositories":[{"private":false}]}`,
			tool.Reading{Origin: "the list of your repositories", Public: true}},
	} {
		if tt.name != github.ListRepositories {
			tt.want.Repository = "acme/web"
		}
		if got := set[tt.name].Reading(json.RawMessage(tt.args), json.RawMessage(tt.result)); got != tt.want {
			t.Errorf("%s of %s: %+v, want %+v", tt.name, tt.args, got, tt.want)
		}
	}
}
