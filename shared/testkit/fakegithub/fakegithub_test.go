package fakegithub_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	githubapi "github.com/google/go-github/v92/github"

	"github.com/countersign-run/countersign/shared/testkit/fakegithub"
	"github.com/countersign-run/countersign/shared/testkit/fakegithub/octokit"
	"github.com/countersign-run/countersign/shared/testkit/fakegoogle"
)

var seed = fakegithub.Seed{Owner: "demo", Name: "site", Description: "A site.", Writers: []string{"ada"},
	Files: map[string]string{"README.md": "# Site\n", "docs/a.md": "a\n"},
	Issues: []fakegithub.SeedIssue{{Author: "eve", Title: "A link is broken", Body: "On the first page.",
		Labels: []string{"bug"}, Comments: []string{"Still so."}}}}

// world is a server, and the clients of its users.
type world struct {
	*fakegithub.Server
	URL string
}

func open(t *testing.T, o fakegithub.Options) *world {
	t.Helper()
	o.User = func(b string) (string, bool) { return b, slices.Contains([]string{"ada", "demo", "eve"}, b) }
	w := &world{Server: fakegithub.New(o)}
	w.Add(seed)
	w.Add(fakegithub.Seed{Owner: "ada", Name: "secret", Private: true, Files: map[string]string{"a": "a"}})
	srv := httptest.NewServer(w)
	t.Cleanup(srv.Close)
	w.URL = srv.URL
	return w
}

func (w *world) as(t *testing.T, login string) *githubapi.Client {
	t.Helper()
	base := w.URL + "/"
	c, err := githubapi.NewClient(githubapi.WithHTTPClient(fakegoogle.Bearer(login)), githubapi.WithURLs(&base, &base),
		githubapi.WithDisableRateLimitCheck())
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// refused checks that GitHub refused with a status, and returns the message.
func refused(t *testing.T, err error, status int) string {
	t.Helper()
	var e *githubapi.ErrorResponse
	if !errors.As(err, &e) || e.Response.StatusCode != status {
		t.Fatalf("got %v; want %d", err, status)
	}
	return e.Error()
}

func must[T any](t *testing.T) func(v T, _ *githubapi.Response, err error) T {
	return func(v T, _ *githubapi.Response, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// TestOperationsAsDescribed calls each operation, and checks each exchange against GitHub's description.
func TestOperationsAsDescribed(t *testing.T) {
	described := octokit.Require(t)
	var mu sync.Mutex
	seen := map[string]bool{}
	w := open(t, fakegithub.Options{Check: func(e fakegithub.Exchange) {
		mu.Lock()
		defer mu.Unlock()
		seen[e.Op] = true
		if err := described.Check(e); err != nil {
			t.Errorf("%s %s: %v", e.Request.Method, e.Request.URL, err)
		}
	}})
	work(t, w)
	for _, op := range fakegithub.Operations() {
		if !seen[op] {
			t.Errorf("there was no exchange of %s", op)
		}
	}
}

// work calls each operation as a developer would, also with requests that are refused.
func work(t *testing.T, w *world) {
	t.Helper()
	ctx, c := t.Context(), w.as(t, "ada")
	if me := must[*githubapi.User](t)(c.Users.Get(ctx, "")); me.GetLogin() != "ada" {
		t.Errorf("the user is %s", me.GetLogin())
	}
	made := must[*githubapi.Repository](t)(c.Repositories.Create(ctx, "", &githubapi.Repository{Name: new("new"),
		Description: new("New."), Private: new(true)}))
	if made.GetFullName() != "ada/new" || !made.GetPrivate() {
		t.Errorf("it made %+v", made)
	}
	_, _, err := c.Repositories.Create(ctx, "", &githubapi.Repository{Name: new("NEW")})
	if why := refused(t, err, 422); !strings.Contains(why, "already exists") {
		t.Errorf("a name twice: %s", why)
	}
	all := must[[]*githubapi.Repository](t)(c.Repositories.ListByAuthenticatedUser(ctx, nil))
	if len(all) != 3 {
		t.Errorf("it lists %d repositories", len(all))
	}
	same := must[*githubapi.Repository](t)(c.Repositories.Get(ctx, "DEMO", "Site"))
	if same.GetFullName() != "demo/site" {
		t.Errorf("it is called %s", same.GetFullName())
	}
	issues(t, c)
	commits(t, c)
	pulls(t, w, c)
}

func issues(t *testing.T, c *githubapi.Client) {
	t.Helper()
	ctx := t.Context()
	i := must[*githubapi.Issue](t)(c.Issues.Create(ctx, "demo", "site", githubapi.CreateIssueRequest{Title: "Two",
		Body: new("b"), Labels: []string{"bug"}, Assignees: []string{"ada"}}))
	if i.GetNumber() != 2 || len(i.Labels) != 1 || len(i.Assignees) != 1 {
		t.Errorf("it made %+v", i)
	}
	_, _, err := c.Issues.Create(ctx, "demo", "site", githubapi.CreateIssueRequest{Title: " "})
	refused(t, err, 422)
	i = must[*githubapi.Issue](t)(c.Issues.Update(ctx, "demo", "site", 2, githubapi.UpdateIssueRequest{
		State: new("closed"), Labels: []string{}}))
	if i.GetState() != "closed" || len(i.Labels) != 0 || i.ClosedAt == nil {
		t.Errorf("it is %+v", i)
	}
	must[*githubapi.IssueComment](t)(c.Issues.CreateComment(ctx, "demo", "site", 1, githubapi.IssueCommentRequest{
		Body: "Mine."}))
	said := must[[]*githubapi.IssueComment](t)(c.Issues.ListComments(ctx, "demo", "site", 1, nil))
	if len(said) != 2 || said[1].GetUser().GetLogin() != "ada" {
		t.Errorf("the comments are %v", said)
	}
	open := must[[]*githubapi.Issue](t)(c.Issues.ListByRepo(ctx, "demo", "site", &githubapi.IssueListByRepoOptions{
		Labels: []string{"bug"}}))
	if len(open) != 1 || open[0].GetNumber() != 1 {
		t.Errorf("open bugs are %v", open)
	}
	_, _, err = c.Issues.Get(ctx, "demo", "site", 9)
	refused(t, err, 404)
	must[*githubapi.IssuesSearchResult](t)(c.Search.Issues(ctx, "is:issue", nil))
	_, _, err = c.Search.Issues(ctx, "", nil)
	refused(t, err, 422)
}

func commits(t *testing.T, c *githubapi.Client) {
	t.Helper()
	ctx := t.Context()
	main := must[*githubapi.Reference](t)(c.Git.GetRef(ctx, "demo", "site", "heads/main"))
	parent := must[*githubapi.Commit](t)(c.Git.GetCommit(ctx, "demo", "site", main.GetObject().GetSHA()))
	blob := must[*githubapi.Blob](t)(c.Git.CreateBlob(ctx, "demo", "site", githubapi.Blob{Content: new("c"),
		Encoding: new("utf-8")}))
	if got := must[*githubapi.Blob](t)(c.Git.GetBlob(ctx, "demo", "site", blob.GetSHA())); got.GetSize() != 1 ||
		got.GetContent() != "Yw==\n" {
		t.Errorf("the blob is %+v", got)
	}
	tree := must[*githubapi.Tree](t)(c.Git.CreateTree(ctx, "demo", "site", parent.GetTree().GetSHA(),
		[]*githubapi.TreeEntry{
			{Path: new("b.md"), Mode: new("100644"), Type: new("blob"), Content: new("b\n")},
			{Path: new("docs/a.md"), Mode: new("100644"), Type: new("blob")},
		}))
	next := must[*githubapi.Commit](t)(c.Git.CreateCommit(ctx, "demo", "site", githubapi.Commit{Message: new("Two"),
		Tree: tree, Parents: []*githubapi.Commit{parent}}, nil))
	must[*githubapi.Reference](t)(c.Git.CreateRef(ctx, "demo", "site", githubapi.CreateRef{Ref: "refs/heads/fix",
		SHA: main.GetObject().GetSHA()}))
	must[*githubapi.Reference](t)(c.Git.UpdateRef(ctx, "demo", "site", "heads/fix", githubapi.UpdateRef{
		SHA: next.GetSHA()}))
	_, _, err := c.Git.UpdateRef(ctx, "demo", "site", "heads/fix", githubapi.UpdateRef{SHA: parent.GetSHA()})
	if why := refused(t, err, 422); !strings.Contains(why, "fast forward") {
		t.Errorf("a move back: %s", why)
	}
	files := must[*githubapi.Tree](t)(c.Git.GetTree(ctx, "demo", "site", "fix", true))
	if len(files.Entries) != 2 || files.Entries[1].GetPath() != "b.md" {
		t.Errorf("its files are %v", files.Entries)
	}
	log := must[[]*githubapi.RepositoryCommit](t)(c.Repositories.ListCommits(ctx, "demo", "site",
		&githubapi.CommitsListOptions{SHA: "fix"}))
	if len(log) != 2 || log[0].GetSHA() != next.GetSHA() {
		t.Errorf("its commits are %v", log)
	}
	for path, want := range map[string]string{"README.md": "# Site\n", "docs/a.md": "a\n"} {
		file, _, _, err := c.Repositories.GetContents(ctx, "demo", "site", path, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := file.GetContent(); err != nil || got != want {
			t.Errorf("%s is %q, %v", path, got, err)
		}
	}
	_, folder, _, err := c.Repositories.GetContents(ctx, "demo", "site", "docs", nil)
	if err != nil || len(folder) != 1 {
		t.Errorf("docs is %v, %v", folder, err)
	}
	_, _, _, err = c.Repositories.GetContents(ctx, "demo", "site", "docs/a.md",
		&githubapi.RepositoryContentGetOptions{Ref: "fix"})
	refused(t, err, 404)
}

// reviews reads the checks and the review of a pull request from fix.
func reviews(t *testing.T, w *world, c *githubapi.Client, number int) {
	t.Helper()
	ctx := t.Context()
	w.AddCheck("demo", "site", "fix", fakegithub.Check{Name: "test", Status: "in_progress"})
	w.AddCheck("demo", "site", "fix", fakegithub.Check{Name: "test", Status: "completed", Conclusion: "failure",
		Title: "One failed", Summary: "A", Text: "B", Log: "https://logs.test/1"})
	w.AddCheck("demo", "site", "fix", fakegithub.Check{Name: "lint", State: "success", Description: "Clean."})
	runs := must[*githubapi.ListCheckRunsResults](t)(c.Checks.ListCheckRunsForRef(ctx, "demo", "site", "fix", nil))
	if runs.GetTotal() != 1 || runs.CheckRuns[0].GetConclusion() != "failure" {
		t.Errorf("the checks are %+v", runs)
	}
	log, _, err := c.Actions.GetWorkflowJobLogs(ctx, "demo", "site", runs.CheckRuns[0].GetID(), 0)
	if err != nil || log.String() != "https://logs.test/1" || runs.CheckRuns[0].GetApp().GetSlug() != "github-actions" {
		t.Errorf("the log of %+v is at %v, %v", runs.CheckRuns[0], log, err)
	}
	is := must[*githubapi.CombinedStatus](t)(c.Repositories.GetCombinedStatus(ctx, "demo", "site", "fix", nil))
	if is.GetState() != "success" || len(is.Statuses) != 1 {
		t.Errorf("the status is %+v", is)
	}
	_, _, err = c.Repositories.GetCombinedStatus(ctx, "demo", "site", "none", nil)
	refused(t, err, 404)
	first := w.AddReview("demo", "site", number, fakegithub.Review{Author: "eve", Path: "a", Line: 1, Body: "Why?"})
	w.AddReview("demo", "site", number, fakegithub.Review{Author: "ada", Path: "a", Line: 1, Body: "So.",
		InReplyTo: first})
	reply := func(to int64) error {
		path := fmt.Sprintf("repos/demo/site/pulls/%d/comments/%d/replies", number, to)
		req, err := c.NewRequest(ctx, http.MethodPost, path, map[string]string{"body": "Yes."})
		if err == nil {
			_, err = c.Do(req, nil)
		}
		return err
	}
	if err := reply(first); err != nil {
		t.Error(err)
	}
	refused(t, reply(first+1), 404)
	one := must[*githubapi.PullRequestComment](t)(c.PullRequests.GetComment(ctx, "demo", "site", first))
	if one.GetBody() != "Why?" {
		t.Errorf("the comment is %+v", one)
	}
	all := must[[]*githubapi.PullRequestComment](t)(c.PullRequests.ListComments(ctx, "demo", "site", number, nil))
	if len(all) != 3 || all[1].GetInReplyTo() != first || all[2].GetInReplyTo() != first {
		t.Errorf("the comments are %+v", all)
	}
}

func pulls(t *testing.T, w *world, c *githubapi.Client) {
	t.Helper()
	ctx, wanted := t.Context(), githubapi.CreatePullRequest{Title: new("Mend it"), Head: "fix", Base: "main",
		Body: new("b")}
	p := must[*githubapi.PullRequest](t)(c.PullRequests.Create(ctx, "demo", "site", wanted))
	_, _, err := c.PullRequests.Create(ctx, "demo", "site", wanted)
	if why := refused(t, err, 422); !strings.Contains(why, "already exists") {
		t.Errorf("a second one: %s", why)
	}
	wanted.Base = "fix"
	_, _, err = c.PullRequests.Create(ctx, "demo", "site", wanted)
	refused(t, err, 422)
	got := must[*githubapi.PullRequest](t)(c.PullRequests.Get(ctx, "demo", "site", p.GetNumber()))
	if got.GetHead().GetRef() != "fix" || got.GetBase().GetRef() != "main" {
		t.Errorf("it is %+v", got)
	}
	reviews(t, w, c, p.GetNumber())
	must[*githubapi.PullRequest](t)(c.PullRequests.Edit(ctx, "demo", "site", p.GetNumber(), &githubapi.PullRequest{
		State: new("closed")}))
	closed := must[[]*githubapi.PullRequest](t)(c.PullRequests.List(ctx, "demo", "site",
		&githubapi.PullRequestListOptions{State: "all", Head: "demo:fix", Base: "main"}))
	if len(closed) != 1 || closed[0].GetState() != "closed" {
		t.Errorf("there are %v", closed)
	}
	_, _, err = c.PullRequests.Get(ctx, "demo", "site", 1)
	refused(t, err, 404)
}

func TestPermissions(t *testing.T) {
	w := open(t, fakegithub.Options{})
	_, _, err := w.as(t, "nobody").Users.Get(t.Context(), "")
	refused(t, err, http.StatusUnauthorized)
	eve := w.as(t, "eve")
	_, _, err = eve.Repositories.Get(t.Context(), "ada", "secret")
	refused(t, err, http.StatusNotFound)
	_, _, err = eve.Git.CreateRef(t.Context(), "demo", "site", githubapi.CreateRef{Ref: "refs/heads/x", SHA: "x"})
	refused(t, err, http.StatusForbidden)
	i := must[*githubapi.Issue](t)(eve.Issues.Create(t.Context(), "demo", "site", githubapi.CreateIssueRequest{
		Title: "Hers", Labels: []string{"bug"}}))
	if len(i.Labels) != 0 {
		t.Errorf("labels of somebody who may not write: %v", i.Labels)
	}
}

func TestLinksOfPages(t *testing.T) {
	w := open(t, fakegithub.Options{})
	c := w.as(t, "ada")
	for range 4 {
		must[*githubapi.Issue](t)(c.Issues.Create(t.Context(), "demo", "site",
			githubapi.CreateIssueRequest{Title: "x"}))
	}
	var numbers []int
	o := &githubapi.IssueListByRepoOptions{ListOptions: githubapi.ListOptions{PerPage: 2}}
	for {
		list, res, err := c.Issues.ListByRepo(t.Context(), "demo", "site", o)
		if err != nil {
			t.Fatal(err)
		}
		for _, i := range list {
			numbers = append(numbers, i.GetNumber())
		}
		if o.ListOptions.Page = res.NextPage; res.NextPage == 0 {
			break
		}
	}
	if !slices.Equal(numbers, []int{5, 4, 3, 2, 1}) {
		t.Errorf("the pages have %v", numbers)
	}
}

func TestFaults(t *testing.T) {
	next := fakegoogle.Fault{}
	w := open(t, fakegithub.Options{Fault: func(string) fakegoogle.Fault { return next }})
	c := w.as(t, "ada")
	create := func() error {
		_, _, err := c.Issues.Create(t.Context(), "demo", "site", githubapi.CreateIssueRequest{Title: "x"})
		return err
	}
	next = fakegoogle.Fault{Kind: fakegoogle.StatusBefore, Status: 403, Reason: "rateLimitExceeded"}
	var limited *githubapi.AbuseRateLimitError
	if err := create(); !errors.As(err, &limited) || limited.RetryAfter == nil {
		t.Errorf("limited: %v", err)
	}
	if w.Effects("issues/create") != 0 {
		t.Error("a fault before had an effect")
	}
	next = fakegoogle.Fault{Kind: fakegoogle.StatusAfter}
	refused(t, create(), http.StatusServiceUnavailable)
	next = fakegoogle.Fault{Kind: fakegoogle.ResetAfter}
	if err := create(); err == nil || w.Effects("issues/create") != 2 {
		t.Errorf("cut: %v, with %d effects", err, w.Effects("issues/create"))
	}
	if n := len(w.View()[0].Issues); n != 3 {
		t.Errorf("the view has %d issues", n)
	}
}

// TestLateWrites lists issues right after one was created, which the first lists lack. It also lists folders one by
// one.
func TestLateWrites(t *testing.T) {
	w := open(t, fakegithub.Options{Fault: func(op string) (f fakegoogle.Fault) {
		if op == "issues/create" {
			f.Hidden = 2
		}
		return f
	}})
	ctx, c := t.Context(), w.as(t, "ada")
	must[*githubapi.Issue](t)(c.Issues.Create(ctx, "demo", "site", githubapi.CreateIssueRequest{Title: "Two"}))
	for _, want := range []int{1, 1, 2} {
		if all := must[[]*githubapi.Issue](t)(c.Issues.ListByRepo(ctx, "demo", "site", nil)); len(all) != want {
			t.Errorf("it lists %d issues; want %d", len(all), want)
		}
	}
	root := must[*githubapi.Tree](t)(c.Git.GetTree(ctx, "demo", "site", "main", false))
	if len(root.Entries) != 2 || root.Entries[1].GetPath() != "docs" || root.Entries[1].GetMode() != "040000" {
		t.Fatalf("the root has %v", root.Entries)
	}
	docs := must[*githubapi.Tree](t)(c.Git.GetTree(ctx, "demo", "site", root.Entries[1].GetSHA(), false))
	if len(docs.Entries) != 1 || docs.Entries[0].GetPath() != "a.md" || docs.Entries[0].GetMode() != "100644" {
		t.Errorf("docs has %v", docs.Entries)
	}
}

// TestLateSearch creates an issue. Lists have it at once, but the search only after a while, so a search proves nothing
// about a recent creation.
func TestLateSearch(t *testing.T) {
	now := time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC)
	w := open(t, fakegithub.Options{Now: func() time.Time { return now }})
	ctx, c := t.Context(), w.as(t, "ada")
	must[*githubapi.Issue](t)(c.Issues.Create(ctx, "demo", "site", githubapi.CreateIssueRequest{Title: "Lost link"}))
	const query = "repo:demo/site author:ada is:issue is:open LOST"
	for _, want := range []int{0, 1} {
		if list := must[[]*githubapi.Issue](t)(c.Issues.ListByRepo(ctx, "demo", "site",
			&githubapi.IssueListByRepoOptions{Creator: "ada"})); len(list) != 1 {
			t.Errorf("it lists %d issues", len(list))
		}
		found := must[*githubapi.IssuesSearchResult](t)(c.Search.Issues(ctx, query, nil))
		if found.GetTotal() != want || len(found.Issues) != want {
			t.Errorf("at %s it finds %d issues; want %d", now.Format(time.TimeOnly), found.GetTotal(), want)
		}
		now = now.Add(fakegithub.SearchLag)
	}
	for _, other := range []string{"is:pr LOST", "repo:demo/other LOST", "author:eve LOST", "is:closed LOST", "found"} {
		if got := must[*githubapi.IssuesSearchResult](t)(c.Search.Issues(ctx, other, nil)); got.GetTotal() != 0 {
			t.Errorf("%q finds %d issues", other, got.GetTotal())
		}
	}
}
