// Package fakegithub implements the part of GitHub's REST API that package tools/github uses, in memory. It is as
// strict as GitHub. It refuses unknown tokens, and hides private repositories from other users. It refuses a second
// open pull request with the same head and base, and the move of a branch to a commit that does not descend from its
// head. Package octokit checks its answers against GitHub's own description. It is built from GitHub's reference, and
// does not imitate undocumented behaviour.
package fakegithub

import (
	"cmp"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/countersign-run/countersign/shared/testkit/fakegoogle"
)

// Options of a server.
type Options struct {
	// User returns the login of an access token. Required.
	User func(bearer string) (login string, ok bool)
	// Now is the clock; nil: time.Now.
	Now func() time.Time
	// Web and API are the addresses of GitHub and of this server in answers, without a trailing slash; empty:
	// GitHub's.
	Web, API string
	// Fault returns the fault of an operation, for tests. op is GitHub's name of the operation, such as
	// "issues/create". Nil: none fails.
	Fault func(op string) fakegoogle.Fault
	// Check receives each exchange without a fault. Nil: no check.
	Check func(Exchange)
}

// An Exchange is a request and its answer.
type Exchange struct {
	Op             string
	Request        *http.Request // its body has been read
	Body           []byte
	Status         int
	Header         http.Header
	Answer         []byte
	PathParameters map[string]string
}

// Server is the local GitHub. It serves the paths of api.github.com.
type Server struct {
	opts Options
	mux  *http.ServeMux

	mu      sync.Mutex
	last    int64 // the ID of the newest resource
	repos   []*repository
	before  []*repository  // the earlier state that reads return while they lag
	lags    int            // number of further reads that lag
	effects map[string]int // number of changes, by operation
}

// New returns a server without a repository.
func New(o Options) *Server {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Fault == nil {
		o.Fault = func(string) fakegoogle.Fault { return fakegoogle.Fault{} }
	}
	if o.Check == nil {
		o.Check = func(Exchange) {}
	}
	o.Web, o.API = cmp.Or(o.Web, "https://github.com"), cmp.Or(o.API, "https://api.github.com")
	s := &Server{opts: o, mux: http.NewServeMux(), effects: map[string]int{}}
	for op, r := range s.routes() {
		s.mux.HandleFunc(r.pattern, s.serve(op, r.do))
	}
	s.mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) { missing().write(w) })
	return s
}

// ServeHTTP answers a request of a GitHub client.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.mux.ServeHTTP(w, r) }

// Effects returns how often the operation changed something.
func (s *Server) Effects(op string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.effects[op]
}

// OpenIssue is the listed part of an open issue or pull request.
type OpenIssue struct {
	Number int    `json:"number"`
	Author string `json:"author"`
	Title  string `json:"title"`
	Body   string `json:"body"`
}

// Open returns the repository's open issues and pull requests, oldest first. It returns nil if there is no such
// repository.
func (s *Server) Open(owner, name string) []OpenIssue {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.find(owner, name)
	if r == nil {
		return nil
	}
	out := []OpenIssue{}
	for _, i := range r.issues {
		if i.state == "open" {
			out = append(out, OpenIssue{i.number, i.author, i.title, i.body})
		}
	}
	return out
}

// request is one authorized request.
type request struct {
	*http.Request
	login string
	body  []byte
	repo  *repository // nil if the path names no repository
}

// method runs an operation under the lock.
type method func(r request) (answer, *failure)

// answer is an operation's answer. A zero status means 200.
type answer struct {
	status int
	body   any
	link   string // the header Link
	// location is the header Location of a redirect, which has no body
	location string
}

// route is a path of the API with its operation. A path with a repository is served only to users who may see the
// repository.
type route struct {
	pattern string
	do      method
}

func (s *Server) routes() map[string]route {
	const repo = "/repos/{owner}/{repo}"
	return map[string]route{
		"users/get-authenticated":             {"GET /user", s.getUser},
		"repos/list-for-authenticated-user":   {"GET /user/repos", s.listRepositories},
		"repos/create-for-authenticated-user": {"POST /user/repos", s.createRepository},
		"repos/get":                           {"GET " + repo, s.getRepository},
		"repos/get-content":                   {"GET " + repo + "/contents/{path...}", s.getContent},
		"repos/list-commits":                  {"GET " + repo + "/commits", s.listCommits},
		"issues/list-for-repo":                {"GET " + repo + "/issues", s.listIssues},
		"issues/create":                       {"POST " + repo + "/issues", s.createIssue},
		"issues/get":                          {"GET " + repo + "/issues/{issue_number}", s.getIssue},
		"issues/update":                       {"PATCH " + repo + "/issues/{issue_number}", s.updateIssue},
		"issues/list-comments":                {"GET " + repo + "/issues/{issue_number}/comments", s.listComments},
		"issues/create-comment":               {"POST " + repo + "/issues/{issue_number}/comments", s.createComment},
		"pulls/list":                          {"GET " + repo + "/pulls", s.listPulls},
		"pulls/create":                        {"POST " + repo + "/pulls", s.createPull},
		"pulls/get":                           {"GET " + repo + "/pulls/{pull_number}", s.getPull},
		"pulls/update":                        {"PATCH " + repo + "/pulls/{pull_number}", s.updatePull},
		"pulls/list-review-comments":          {"GET " + repo + "/pulls/{pull_number}/{list}", s.listReviewComments},
		"pulls/get-review-comment":            {"GET " + repo + "/pulls/comments/{comment_id}", s.getReviewComment},
		"pulls/create-reply-for-review-comment": {"POST " + repo + "/pulls/{pull_number}/comments/{comment_id}/replies",
			s.createReply},
		"checks/list-for-ref":                        {"GET " + repo + "/commits/{ref}/check-runs", s.listChecks},
		"actions/download-job-logs-for-workflow-run": {"GET " + repo + "/actions/jobs/{job_id}/logs", s.getJobLog},
		"repos/get-combined-status-for-ref":          {"GET " + repo + "/commits/{ref}/status", s.getStatus},
		"search/issues-and-pull-requests":            {"GET /search/issues", s.searchIssues},
		"git/get-ref":                                {"GET " + repo + "/git/ref/{ref...}", s.getRef},
		"git/create-ref":                             {"POST " + repo + "/git/refs", s.createRef},
		"git/update-ref":                             {"PATCH " + repo + "/git/refs/{ref...}", s.updateRef},
		"git/get-commit":                             {"GET " + repo + "/git/commits/{commit_sha}", s.getCommit},
		"git/create-commit":                          {"POST " + repo + "/git/commits", s.createCommit},
		"git/get-tree":                               {"GET " + repo + "/git/trees/{tree_sha}", s.getTree},
		"git/create-tree":                            {"POST " + repo + "/git/trees", s.createTree},
		"git/get-blob":                               {"GET " + repo + "/git/blobs/{file_sha}", s.getBlob},
		"git/create-blob":                            {"POST " + repo + "/git/blobs", s.createBlob},
	}
}

// Operations returns GitHub's names of the server's operations, sorted.
func Operations() []string {
	var all []string
	for op := range (&Server{}).routes() {
		all = append(all, op)
	}
	slices.Sort(all)
	return all
}

// parameters returns the parameters of a path, by name.
func parameters(r *http.Request) map[string]string {
	all := map[string]string{}
	for _, part := range strings.Split(r.Pattern, "/") {
		if name, ok := strings.CutPrefix(part, "{"); ok {
			name = strings.TrimSuffix(strings.TrimSuffix(name, "}"), "...")
			all[name] = r.PathValue(name)
		}
	}
	return all
}
