package toolstest

import (
	"net/http/httptest"
	"testing"
	"time"

	"github.com/countersign-run/countersign/shared/testkit/fakegithub"
	"github.com/countersign-run/countersign/shared/testkit/fakegithub/octokit"
)

// GitHub is a local GitHub whose operations can be made to fail. If GitHub's description is installed, each request and
// each answer is checked against it. Its user is [GoogleUser], who owns the repository good/site: issues 1 and 2, pull
// request 3 of the branch open, with review comment 6, and the branches fix and next.
type GitHub struct {
	*fakegithub.Server
	URL string
	faults
}

// OpenGitHub starts a local GitHub.
func OpenGitHub(t *testing.T, now func() time.Time) *GitHub {
	t.Helper()
	g := &GitHub{}
	g.Server = fakegithub.New(fakegithub.Options{
		User:  func(b string) (string, bool) { return b, b == GoogleUser || b == "other" },
		Now:   now,
		Fault: g.next,
		Check: octokit.Find(t).Checker(t),
	})
	g.Add(fakegithub.Seed{Owner: GoogleUser, Name: "site", Description: "A site.", Writers: []string{"other"},
		Files: map[string]string{"README.md": "# Site\n", "docs/a.md": "a\n"},
		Issues: []fakegithub.SeedIssue{
			{Author: "eve", Title: "A link is broken", Body: "On the first page.", Labels: []string{"bug"},
				Comments: []string{"Still so."}},
			{Author: GoogleUser, Title: "Two", Body: "b"},
		},
		Branches: map[string]string{"fix": "f\n", "next": "n\n", "open": "o\n"},
		Pulls:    []fakegithub.SeedPull{{Author: GoogleUser, Title: "Mend it", Body: "b", Head: "open", Base: "main"}}})
	g.AddReview(GoogleUser, "site", 3, fakegithub.Review{Author: "other", Path: "open", Line: 1, Body: "Why?"})
	srv := httptest.NewServer(g)
	t.Cleanup(srv.Close)
	g.URL = srv.URL + "/"
	return g
}
